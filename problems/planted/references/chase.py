"""Where chains through a table of nodes end, in exact integers. Never measures and never judges."""

import torch


def inputs(shape, generator, device):
    """x of (chains,), float32, standard normal; table of (nodes, 8), int32, column 0 the next node; the number of steps, int32.

    The next node is (1664525 i + c) mod nodes with c odd: one cycle through all nodes, of which there are a power of two.
    """
    nodes = shape["nodes"]
    x = torch.randn(shape["chains"], generator=generator, device=device)
    shift = 2 * torch.randint(nodes // 2, (1,), generator=generator, device=device) + 1
    table = torch.zeros((nodes, 8), dtype=torch.int32, device=device)
    table[:, 0] = (1664525 * torch.arange(nodes, device=device) + shift) % nodes
    return x, table, torch.full((1,), shape["steps"], dtype=torch.int32, device=device)


def reference(x, table, steps):
    """x + (last node) / nodes, chain i from node (40503 i) mod nodes; (chains,) float64."""
    nodes = table.shape[0]
    following = table[:, 0].long()
    at = torch.arange(x.numel(), device=x.device) * 40503 % nodes
    for _ in range(int(steps)):
        at = following[at]
    return x.double() + at.double() / nodes
