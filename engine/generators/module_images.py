"""Text that the rewrites of convolutions and pools share: sizes as depth, height and width, and one element a thread. Builds text, runs nothing."""

from __future__ import annotations

THREE = """

def _three(value, dims, default):
    \"\"\"An argument of a convolution or pool as depth, height and width.\"\"\"
    value = [value] if isinstance(value, int) else list(value)
    value = value * dims if len(value) == 1 else value
    return tuple([default] * (3 - dims) + value) if value else None


def _sizes(value, dims):
    return tuple([1] * (3 - dims) + [int(size) for size in value.shape[-dims:]])
"""

TRITON = """

import triton
import triton.language as tl


def _planes(node):
    \"\"\"Whether a node's value is float32 images, rows without gaps, that 32-bit offsets in a plane reach.\"\"\"
    value = node.meta.get("val") if isinstance(node, _torch.fx.Node) else None
    kept = value is not None and value.dtype == _torch.float32 and value.is_contiguous() and value.numel() > 0
    return kept and value[:1, :1].numel() < 2**30


def _grid(planes, lanes):
    # One element a thread: neighbours then read neighbours in every load, which a wide store would spread over four lines.
    block = min(256, max(32, 1 << (lanes - 1).bit_length()))
    blocks = -(-lanes // block)
    return planes * blocks, block, blocks, block // 32
"""
