"""Cross-entropy of 1024 tokens over a vocabulary of 50257, every step of the log-softmax written to memory."""

import torch

TOKENS, VOCABULARY = 1024, 50257
TOKENS_CPU, VOCABULARY_CPU = 16, 501


def inputs(generator, device):
    """Logits and targets (int64)."""
    tokens, words = (TOKENS, VOCABULARY) if device.type == "cuda" else (TOKENS_CPU, VOCABULARY_CPU)
    logits = torch.randn(tokens, words, generator=generator, device=device)
    return logits, torch.randint(0, words, (tokens,), generator=generator, device=device)


def reference(logits, target):
    """The library's loss for each token."""
    return torch.nn.functional.cross_entropy(logits, target, reduction="none")


def run(logits, target):
    """All log-probabilities, then one of each row."""
    top = logits.max(dim=1, keepdim=True).values
    shifted = logits - top
    weights = torch.exp(shifted)
    total = weights.sum(dim=1, keepdim=True)
    log_probability = shifted - torch.log(total)
    return -log_probability.gather(1, target[:, None]).squeeze(1)
