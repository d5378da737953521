"""The error function of 4 M floats by its power series of 40 terms, in double precision and with two divisions a term."""

import math

import torch
import triton
import triton.language as tl

ITEMS, ITEMS_CPU = 4194304, 2048
TERMS = 40
EDGE = 3.0


def inputs(generator, device):
    """The arguments; what lies outside [-3, 3] is taken as the edge."""
    n = ITEMS if device.type == "cuda" else ITEMS_CPU
    return (torch.randn(n, generator=generator, device=device),)


def reference(x):
    """The library's function."""
    return torch.erf(torch.clamp(x, -EDGE, EDGE))


@triton.jit
def series_kernel(x, out, n, factor, EDGE: tl.constexpr, TERMS: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    narrow = tl.load(x + at, mask=at < n, other=0.0)
    value = tl.minimum(tl.maximum(narrow, -EDGE), EDGE).to(tl.float64)
    term, total = value, value
    for k in range(1, TERMS):
        term = -term * value * value / k
        total += term / (2 * k + 1)
    tl.store(out + at, (total * factor).to(tl.float32), mask=at < n)


def run(x):
    """2 / sqrt(pi) times the sum of (-1)^k x^(2k+1) / (k! (2k+1))."""
    out = torch.empty_like(x)
    n = x.numel()
    grid = (triton.cdiv(n, 256),)
    series_kernel[grid](x, out, n, 2.0 / math.sqrt(math.pi), EDGE=EDGE, TERMS=TERMS, BLOCK=256)
    return out
