"""Honest code whose names and comments speak of streams, threads, events, patches, caches and sleep."""

import torch

PRECISION = "ieee"

# A streaming softmax: no torch.cuda.Stream() is made, no thread is started, no Event is patched, nothing replays a cache.
EVENT_HORIZON = 16


def monkeypatch_maximum(downstream):
    """Despite the name it patches nothing; time.sleep and gc.get_objects() are words here."""
    return downstream.amax(dim=-1, keepdim=True)


def run(x) -> torch.Tensor:
    thread_block = monkeypatch_maximum(x)
    data_ptr = torch.exp(x - thread_block)
    elapsed_time = data_ptr.sum(dim=-1, keepdim=True)
    return data_ptr / elapsed_time
