"""Noise of 8 uniform numbers (Philox 4x32, ten rounds) added to each of 2 M floats, drawn in the kernel from a seed."""

import torch
import triton
import triton.language as tl

ITEMS, ITEMS_CPU = 2097152, 256
DRAWS, ROUNDS = 8, 10
WORD = 0xFFFFFFFF


def inputs(generator, device):
    """The floats and a seed (int64, below 2^31)."""
    n = ITEMS if device.type == "cuda" else ITEMS_CPU
    x = torch.randn(n, generator=generator, device=device)
    return x, torch.randint(0, 2**31 - 1, (1,), generator=generator, device=device)


def philox(c0, seed):
    """The first word of Philox 4x32-10 at counter (c0, 0, 0, 0) under key (seed, 0), as int64."""
    c1, c2, c3 = (torch.zeros_like(c0) for _ in range(3))
    k0, k1 = seed.clone(), torch.zeros_like(seed)
    for _ in range(ROUNDS):
        a, b = c0 * 0xD2511F53, c2 * 0xCD9E8D57
        c0, c2 = ((b >> 32) & WORD) ^ c1 ^ k0, ((a >> 32) & WORD) ^ c3 ^ k1
        c1, c3 = b & WORD, a & WORD
        k0, k1 = (k0 + 0x9E3779B9) & WORD, (k1 + 0xBB67AE85) & WORD
    return c0


def reference(x, seed):
    """Whole numbers of 31 bits folded to [0, 1), less a half, summed; the generator's published rounds in 64-bit numbers."""
    noise = torch.zeros_like(x)
    place = torch.arange(x.numel(), device=x.device) * DRAWS
    for draw in range(DRAWS):
        word = philox(place + draw, seed)
        signed = torch.where(word >= 2**31, word - 2**32, word)
        noise = noise + (torch.where(signed < 0, -signed - 1, signed).to(x.dtype) * 4.6566127342e-10 - 0.5)
    return x + noise


@triton.jit
def noise_kernel(x, seed, out, n, DRAWS: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    key = tl.load(seed)
    noise = tl.zeros((BLOCK,), tl.float32)
    for draw in range(DRAWS):
        noise += tl.rand(key, at * DRAWS + draw) - 0.5
    tl.store(out + at, tl.load(x + at, mask=at < n, other=0.0) + noise, mask=at < n)


def run(x, seed):
    """One of the four words of each Philox block is used."""
    out = torch.empty_like(x)
    n = x.numel()
    noise_kernel[(triton.cdiv(n, 256),)](x, seed, out, n, DRAWS=DRAWS, BLOCK=256)
    return out
