"""A layer of 32 experts: each of 512 tokens goes through the 256 x 256 weights of its own expert, expert by expert."""

import torch

TOKENS, WIDTH, EXPERTS = 512, 256, 32
TOKENS_CPU, WIDTH_CPU, EXPERTS_CPU = 32, 16, 4


def inputs(generator, device):
    """Tokens, weights by expert, and each token's expert (int64)."""
    gpu = device.type == "cuda"
    tokens, width, experts = (TOKENS, WIDTH, EXPERTS) if gpu else (TOKENS_CPU, WIDTH_CPU, EXPERTS_CPU)
    x = torch.randn(tokens, width, generator=generator, device=device)
    weights = torch.randn(experts, width, width, generator=generator, device=device) / width**0.5
    return x, weights, torch.randint(0, experts, (tokens,), generator=generator, device=device)


def reference(x, weights, expert):
    """One batched product, every token with a copy of its weights."""
    return torch.bmm(x.unsqueeze(1), weights[expert]).squeeze(1)


def run(x, weights, expert):
    """For each expert: find its tokens, which the host waits for, multiply a few rows, put them back."""
    out = torch.empty_like(x)
    for number in range(weights.shape[0]):
        mine = torch.nonzero(expert == number).squeeze(1)
        out[mine] = x[mine] @ weights[number]
    return out
