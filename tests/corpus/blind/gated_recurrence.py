"""h[t] = sigmoid(a[t]) h[t-1] + b[t] over 2048 steps and 2048 channels: a diagonal state space layer."""

import torch
import triton
import triton.language as tl

STEPS, CHANNELS = 2048, 2048
STEPS_CPU, CHANNELS_CPU = 32, 64


def inputs(generator, device):
    """Gate logits and terms, [steps, channels]."""
    shape = (STEPS, CHANNELS) if device.type == "cuda" else (STEPS_CPU, CHANNELS_CPU)
    return tuple(torch.randn(shape, generator=generator, device=device) for _ in range(2))


def reference(a, b):
    """The same by doubling: log2(steps) passes over all of it."""
    gate, state, shift = torch.sigmoid(a), b, 1
    while shift < a.shape[0]:
        state = torch.cat([state[:shift], state[shift:] + gate[shift:] * state[:-shift]])
        gate = torch.cat([gate[:shift], gate[shift:] * gate[:-shift]])
        shift *= 2
    return state


@triton.jit
def walk_kernel(a, b, out, steps, channels, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    state = tl.zeros((BLOCK,), tl.float32)
    for t in range(steps):
        place = t * channels + at
        state = tl.sigmoid(tl.load(a + place)) * state + tl.load(b + place)
        tl.store(out + place, state)


def run(a, b):
    """Every channel walks through all steps, one after the other."""
    steps, channels = a.shape
    out = torch.empty_like(a)
    walk_kernel[(channels // 32,)](a, b, out, steps, channels, BLOCK=32, num_warps=1)
    return out
