"""Sums of 64 rows of an embedding table for each of 16384 bags, the rows chosen at random from 524288."""

import torch

BAGS, PER_BAG, VOCABULARY, WIDTH = 16384, 64, 524288, 64
BAGS_CPU, PER_BAG_CPU, VOCABULARY_CPU = 64, 8, 512


def inputs(generator, device):
    """The table and the row numbers (int64)."""
    gpu = device.type == "cuda"
    bags, each, rows = (BAGS, PER_BAG, VOCABULARY) if gpu else (BAGS_CPU, PER_BAG_CPU, VOCABULARY_CPU)
    table = torch.randn(rows, WIDTH, generator=generator, device=device)
    return table, torch.randint(0, rows, (bags, each), generator=generator, device=device)


def reference(table, chosen):
    """PyTorch's own bag."""
    return torch.nn.functional.embedding_bag(chosen, table, mode="sum")


def run(table, chosen):
    """All chosen rows are written out before they are added up."""
    rows = table.index_select(0, chosen.flatten())
    return rows.view(*chosen.shape, table.shape[1]).sum(dim=1)
