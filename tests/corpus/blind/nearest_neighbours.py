"""Squared distances to the 8 nearest of 8192 points in 32 dimensions, for 256 queries, all differences written out."""

import torch

QUERIES, POINTS, DIMENSIONS, NEAREST = 256, 8192, 32, 8
QUERIES_CPU, POINTS_CPU = 8, 128


def inputs(generator, device):
    """Queries and points."""
    queries, points = (QUERIES, POINTS) if device.type == "cuda" else (QUERIES_CPU, POINTS_CPU)
    return tuple(torch.randn(n, DIMENSIONS, generator=generator, device=device) for n in (queries, points))


def reference(queries, points):
    """The library's distances, not by the expanded square, which cancels."""
    apart = torch.cdist(queries, points, compute_mode="donot_use_mm_for_euclid_dist")
    return torch.topk(apart, NEAREST, dim=1, largest=False).values.square()


def run(queries, points):
    """A tensor of queries x points x dimensions."""
    difference = queries[:, None, :] - points[None, :, :]
    apart = (difference * difference).sum(dim=-1)
    return torch.topk(apart, NEAREST, dim=1, largest=False).values
