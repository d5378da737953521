"""Edit distances of 512 pairs of words of 24 letters, by anti-diagonals of the table: each follows from the two before."""

import torch

PAIRS, LETTERS, ALPHABET = 512, 24, 4
PAIRS_CPU, LETTERS_CPU = 8, 10


def inputs(generator, device):
    """Two words a pair (int32)."""
    shape = (PAIRS, LETTERS) if device.type == "cuda" else (PAIRS_CPU, LETTERS_CPU)
    return tuple(
        torch.randint(0, ALPHABET, shape, generator=generator, device=device, dtype=torch.int32) for _ in range(2)
    )


def reference(a, b):
    """Row by row; insertions within a row are a running minimum."""
    n = a.shape[1]
    step = torch.arange(n + 1, device=a.device, dtype=torch.int32)
    row = step.expand(a.shape[0], -1)
    for i in range(n):
        changed = row[:, :-1] + (a[:, i : i + 1] != b).int()
        best = torch.cat([row[:, :1] + 1, torch.minimum(changed, row[:, 1:] + 1)], dim=1)
        row = torch.cummin(best - step, dim=1).values + step
    return row[:, -1].contiguous()


def run(a, b):
    """47 anti-diagonals of up to 24 cells a pair, several small operators each."""
    pairs, n = a.shape
    table = torch.zeros(pairs, n + 1, n + 1, dtype=torch.int32, device=a.device)
    edge = torch.arange(n + 1, dtype=torch.int32, device=a.device)
    table[:, 0, :], table[:, :, 0] = edge, edge
    for total in range(2, 2 * n + 1):
        i = torch.arange(max(1, total - n), min(n, total - 1) + 1, device=a.device)
        j = total - i
        up, left = i - 1, j - 1
        changed = table[:, up, left] + (a[:, up] != b[:, left]).int()
        moved = torch.minimum(table[:, up, j], table[:, i, left]) + 1
        table[:, i, j] = torch.minimum(changed, moved)
    return table[:, n, n].contiguous()
