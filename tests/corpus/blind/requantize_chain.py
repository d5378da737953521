"""Fixed-point requantization of 8 M accumulators (int32): scale, round, shift, add a zero point, clamp, and back."""

import torch

ITEMS, ITEMS_CPU = 8388608, 4096
MULTIPLIER, SHIFT, ZERO_POINT = 20973, 22, 11


def inputs(generator, device):
    """Accumulators of 17 bits."""
    n = ITEMS if device.type == "cuda" else ITEMS_CPU
    return (torch.randint(-65536, 65536, (n,), generator=generator, device=device, dtype=torch.int32),)


def reference(x):
    """Quantized to [-128, 127] about the zero point, then back to multiples of 200."""
    scaled = (x.long() * MULTIPLIER + 2 ** (SHIFT - 1)).div(2**SHIFT, rounding_mode="floor")
    return ((torch.clamp(scaled + ZERO_POINT, -128, 127) - ZERO_POINT) * 200).int()


def run(x):
    """Each step an operator, most of them on 64-bit numbers."""
    wide = x.to(torch.int64)
    product = torch.mul(wide, MULTIPLIER)
    rounded = torch.add(product, 1 << (SHIFT - 1))
    shifted = torch.bitwise_right_shift(rounded, SHIFT)
    moved = torch.add(shifted, ZERO_POINT)
    low = torch.maximum(moved, torch.full_like(moved, -128))
    clamped = torch.minimum(low, torch.full_like(low, 127))
    narrow = clamped.to(torch.int8)
    back = torch.sub(narrow.to(torch.int64), ZERO_POINT)
    return torch.mul(back, 200).to(torch.int32)
