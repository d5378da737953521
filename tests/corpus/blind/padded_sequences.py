"""Weighted sums over sequences of very unequal length, all padded to 2048 steps: of 512 only some are longer than 128."""

import torch

SEQUENCES, PADDED, WIDTH, USUAL = 512, 2048, 64, 128
SEQUENCES_CPU, PADDED_CPU, WIDTH_CPU, USUAL_CPU = 8, 64, 16, 8


def inputs(generator, device):
    """States [sequence, step, width], scores [sequence, step], lengths (int64); every 64th sequence fills its padding."""
    gpu = device.type == "cuda"
    n, steps, width, usual = (
        (SEQUENCES, PADDED, WIDTH, USUAL) if gpu else (SEQUENCES_CPU, PADDED_CPU, WIDTH_CPU, USUAL_CPU)
    )
    states = torch.randn(n, steps, width, generator=generator, device=device)
    scores = torch.randn(n, steps, generator=generator, device=device)
    lengths = torch.randint(1, usual + 1, (n,), generator=generator, device=device)
    lengths[::64] = steps
    return states, scores, lengths


def kept(scores, lengths):
    return torch.arange(scores.shape[1], device=scores.device) < lengths[:, None]


def reference(states, scores, lengths):
    """The valid steps of all sequences packed together, and summed by sequence."""
    mask = kept(scores, lengths)
    packed = torch.tanh(states[mask]) * torch.sigmoid(scores[mask])[:, None]
    return torch.segment_reduce(packed, "sum", lengths=lengths, axis=0)


def run(states, scores, lengths):
    """All steps, padding as well, and a mask at the end."""
    weighted = torch.tanh(states) * torch.sigmoid(scores)[..., None]
    return (weighted * kept(scores, lengths)[..., None]).sum(dim=1)
