"""Text of the module generator's way for norms: kernels that take a row's statistics and divide by them. Builds text, runs nothing.

Sums of squares are taken around running means (Welford 1962, doi:10.1080/00401706.1962.10490022), a lane each, and joined as
Chan, Golub and LeVeque (1979) do, so that a mean far from 0 costs no digits. Nothing is added up in an order that could change.
"""

from __future__ import annotations

KERNELS = '''

import os as _os

import triton
import triton.language as tl


@triton.jit
def _stepped(v, STEP: tl.constexpr, LOW: tl.constexpr, HIGH: tl.constexpr):
    """An elementwise operator by its number in _STEPS; what is no number stays none."""
    if STEP == 1:
        v = tl.where(v < LOW, LOW, tl.where(v > HIGH, HIGH, v))
    if STEP == 2:
        v = 1.0 / (1.0 + tl.exp(-v))
    if STEP == 3:
        v = v / (1.0 + tl.exp(-v))
    if STEP == 4:
        v = tl.where(v < 0, v * LOW, v)
    if STEP == 5:
        v = 0.5 * v * (1.0 + tl.erf(v * 0.7071067811865476))
    if STEP == 6:
        v = v * LOW
    return v


@triton.jit
def _power(v, MOMENT: tl.constexpr):
    return tl.abs(v) if MOMENT == 1 else v * v


@triton.jit
def _divisor(total, OVER: tl.constexpr, EPS: tl.constexpr, ROOT: tl.constexpr, FLOOR: tl.constexpr):
    found = total * OVER + EPS
    if ROOT:
        found = tl.sqrt(found)
    if FLOOR > 0:
        found = tl.where(found < FLOOR, FLOOR, found)
    return found


@triton.jit
def _statistics_of(x, length, MOMENT: tl.constexpr, STEP: tl.constexpr, LOW: tl.constexpr, HIGH: tl.constexpr, BLOCK: tl.constexpr):
    """Mean (0 where MOMENT is one around 0) and sum of the powers around it of `length` elements."""
    lanes = tl.arange(0, BLOCK)
    mean, total = tl.zeros((BLOCK,), tl.float32), tl.zeros((BLOCK,), tl.float32)
    met = 0.0
    for start in range(0, length, BLOCK):
        there = start + lanes < length
        v = tl.load(x + start + lanes, mask=there, other=0.0)
        v = tl.where(there, _stepped(v, STEP, LOW, HIGH), 0.0)
        if MOMENT == 0:
            met += 1.0
            apart = v - mean
            moved = mean + apart * (1.0 / met)
            total = tl.where(there, total + apart * (v - moved), total)
            mean = tl.where(there, moved, mean)
        else:
            total += _power(v, MOMENT)
    whole = 0.0
    if MOMENT == 0:
        counted = tl.maximum((length - lanes + BLOCK - 1) // BLOCK, 0).to(tl.float32)
        whole = tl.sum(counted * mean, 0) / length
        total += counted * (mean - whole) * (mean - whole)
    return whole, tl.sum(total, 0)


@triton.jit
def _written(
    v, y, there, at, of, mean, by, weight, bias, PER: tl.constexpr, MOMENT: tl.constexpr, WEIGHTED: tl.constexpr,
    BIASED: tl.constexpr, STEP: tl.constexpr, LOW: tl.constexpr, HIGH: tl.constexpr,
):
    v = (v - mean) * (1.0 / by) if MOMENT == 0 else v / by
    if WEIGHTED:
        v = v * tl.load(weight + of + at // PER, mask=there, other=0.0)
    if BIASED:
        v = v + tl.load(bias + of + at // PER, mask=there, other=0.0)
    tl.store(y + at, _stepped(v, STEP, LOW, HIGH), mask=there)


@triton.jit
def _part_kernel(
    x, parts, width, length, MOMENT: tl.constexpr, STEP: tl.constexpr, LOW: tl.constexpr, HIGH: tl.constexpr, BLOCK: tl.constexpr
):
    row, part, count = tl.program_id(0), tl.program_id(1), tl.num_programs(1)
    start = part * length
    at = x + row.to(tl.int64) * width + start
    mean, total = _statistics_of(at, tl.minimum(length, width - start), MOMENT, STEP, LOW, HIGH, BLOCK)
    tl.store(parts + (row * count + part) * 2, mean)
    tl.store(parts + (row * count + part) * 2 + 1, total)


@triton.jit
def _norm_kernel(
    x, y, parts, weight, bias, width, length, count, groups, channels, OVER: tl.constexpr, EPS: tl.constexpr, ROOT: tl.constexpr,
    FLOOR: tl.constexpr, PER: tl.constexpr, MOMENT: tl.constexpr, WEIGHTED: tl.constexpr, BIASED: tl.constexpr,
    STEP: tl.constexpr, LOW: tl.constexpr, HIGH: tl.constexpr, LAST: tl.constexpr, LAST_LOW: tl.constexpr,
    LAST_HIGH: tl.constexpr, HELD: tl.constexpr, PARTS: tl.constexpr, BLOCK: tl.constexpr,
):
    # From the end: what was read last may still lie in the cache.
    program = tl.num_programs(0) - 1 - tl.program_id(0)
    row, part = program // count, program % count
    of = row % groups * channels
    x += row.to(tl.int64) * width
    y += row.to(tl.int64) * width
    lanes = tl.arange(0, BLOCK)
    if HELD:
        there = lanes < width
        v = tl.where(there, _stepped(tl.load(x + lanes, mask=there, other=0.0), STEP, LOW, HIGH), 0.0)
        mean = 0.0
        if MOMENT == 0:
            v = tl.where(there, v - tl.sum(v, 0) / width, 0.0)
            # What the first mean lost in rounding.
            mean = tl.sum(v, 0) / width
            apart = tl.where(there, v - mean, 0.0)
            total = tl.sum(apart * apart, 0)
        else:
            total = tl.sum(_power(v, MOMENT), 0)
        by = _divisor(total, OVER, EPS, ROOT, FLOOR)
        _written(v, y, there, lanes, of, mean, by, weight, bias, PER, MOMENT, WEIGHTED, BIASED, LAST, LAST_LOW, LAST_HIGH)
    else:
        if PARTS == 1:
            mean, total = _statistics_of(x, width, MOMENT, STEP, LOW, HIGH, BLOCK)
        else:
            each = tl.arange(0, PARTS)
            taken = parts + (row * count + each) * 2
            totals = tl.load(taken + 1, mask=each < count, other=0.0)
            mean = 0.0
            if MOMENT == 0:
                means = tl.load(taken, mask=each < count, other=0.0)
                counted = tl.maximum(tl.minimum(length, width - each * length), 0).to(tl.float32)
                mean = tl.sum(counted * means, 0) / width
                totals += counted * (means - mean) * (means - mean)
            total = tl.sum(totals, 0)
        by = _divisor(total, OVER, EPS, ROOT, FLOOR)
        first, last = part * length, tl.minimum(part * length + length, width)
        blocks = tl.cdiv(last - first, BLOCK)
        for number in range(0, blocks):
            at = first + (blocks - 1 - number) * BLOCK + lanes
            there = at < last
            v = _stepped(tl.load(x + at, mask=there, other=0.0), STEP, LOW, HIGH)
            _written(v, y, there, at, of, mean, by, weight, bias, PER, MOMENT, WEIGHTED, BIASED, LAST, LAST_LOW, LAST_HIGH)
'''

CALLS = '''

@triton.jit
def _across_kernel(
    x, y, high, wide, OVER: tl.constexpr, EPS: tl.constexpr, ROOT: tl.constexpr, FLOOR: tl.constexpr, MOMENT: tl.constexpr,
    LAST: tl.constexpr, LAST_LOW: tl.constexpr, LAST_HIGH: tl.constexpr, HIGH: tl.constexpr, WIDE: tl.constexpr,
):
    across = tl.cdiv(wide, WIDE)
    program = tl.program_id(0)
    down, over = tl.arange(0, HIGH), program % across * WIDE + tl.arange(0, WIDE)
    there = (down[:, None] < high) & (over[None, :] < wide)
    at = (program // across).to(tl.int64) * high * wide + down[:, None] * wide + over[None, :]
    v = tl.load(x + at, mask=there, other=0.0)
    by = _divisor(tl.sum(_power(v, MOMENT), 0), OVER, EPS, ROOT, FLOOR)
    tl.store(y + at, _stepped(v / by[None, :], LAST, LAST_LOW, LAST_HIGH), mask=there)


def _norm_of(x, weight, bias, sizes, groups, per, moment, divisor, before, after):
    """x as sizes (outer, reduced, inner) by its norm: of moment 1 or 2 around 0, or 2 around the mean (0), after and before a step."""
    outer, width, inner = sizes
    y = _torch.empty_like(x, memory_format=_torch.contiguous_format)
    if inner > 1:
        high = triton.next_power_of_2(width)
        wide = min(triton.next_power_of_2(inner), max(16, 8192 // high))
        grid = (outer * -(-inner // wide),)
        _across_kernel[grid](x, y, width, inner, *divisor, moment, *after, high, wide, num_warps=8 if high * wide > 2048 else 4)
        return y
    held = width <= 16384
    block = max(16, triton.next_power_of_2(width)) if held else 2048
    parts = 1
    # Slices of 32768 or, of few rows, as many as the device has places for.
    if width > 131072 or not held and outer < 264:
        parts = min(2048, max(-(-width // 32768), min(-(-528 // outer), -(-width // 4096))))
    length = -(-width // (parts * block)) * block
    parts = -(-width // length)
    found = _torch.empty((outer, parts, 2), dtype=_torch.float32, device=x.device) if parts > 1 else x
    if parts > 1:
        _part_kernel[(outer, parts)](x, found, width, length, moment, *before, block, num_warps=4)
    warps = min(16, max(1, block // 512)) if held else 4 if parts > 1 else 16
    _norm_kernel[(outer * parts,)](
        x, y, found, x if weight is None else weight, x if bias is None else bias, width, length, parts, groups, width // per,
        *divisor, per, moment, weight is not None, bias is not None, *before, *after, held, triton.next_power_of_2(parts),
        8192 if parts == 1 and not held else block, num_warps=warps,
    )
    return y
'''
