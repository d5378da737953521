"""How far a computation's answer moves when its products take rounded operands, as TF32 and bf16 units do. Used by the importer alone."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

BITS = {"tf32": 10, "bf16": 7}
RECURRENT = {"_cudnn_rnn", "mkldnn_rnn_layer", "lstm", "gru", "rnn_tanh", "rnn_relu"}
"""Whole layers of products, step by step, as one operator."""
_PRODUCTS = {
    "mm", "bmm", "addmm", "baddbmm", "convolution", "addbmm", "addmv", "mv", "dot", "vdot", "linear", "matmul", "conv_tbc",
    "_addmm_activation", "_euclidean_dist", "_native_multi_head_attention", *RECURRENT,
}  # fmt: skip
_ATTENTION = "scaled_dot_product"
_OWN = ("aten", "prims", "prim")
# What may have products inside that no rounding of operands stands for: factorizations, solvers, sparse and quantized kernels.
_MAYBE = re.compile(
    r"linalg_|cholesky|(^|_)lu_|_lu$|triangular_solve|_spsolve|matrix_exp|inverse|lstsq|ormqr|orgqr|geqrf|sparse|cdist|attention|"
    r"transformer|conv(?!ert)|linear_|_linear|rnn|_mm|mm$"
)
_NEVER = {"linalg_vector_norm", "linalg_cross", "linalg_diagonal", "_linalg_check_errors", "upsample_linear1d"}


def rounded(value: torch.Tensor, bits: int, cut: bool = False) -> torch.Tensor:
    """float64 values with `bits` of mantissa behind the point: the nearest, where ties go to even, or what is left after the rest is cut off."""
    mantissa, exponent = torch.frexp(value)
    scale = 2.0 ** (bits + 1)
    kept = torch.trunc(mantissa * scale) if cut else torch.round(mantissa * scale)
    return torch.ldexp(kept / scale, exponent)


def _is_product(name: str) -> bool:
    return name in _PRODUCTS or _ATTENTION in name


def may_multiply(name: str) -> bool:
    """Whether an operator, as `Traffic` names it, is a product or may have one inside: all that is not torch's own may."""
    return _is_product(name) or "::" in name or (name not in _NEVER and _MAYBE.search(name) is not None)


class Rounding(TorchDispatchMode):
    """Inside, every product of float64 tensors takes operands of `bits` mantissa bits; `seen` counts the products."""

    def __init__(self, bits: int, cut: bool = False) -> None:
        super().__init__()
        self._bits, self._cut, self.seen = bits, cut, 0

    def __torch_dispatch__(
        self, function: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        name = function.overloadpacket.__name__
        if _is_product(name):
            self.seen += 1
            args = tuple(self._narrow(value) for value in args)
        return function(*args, **(kwargs or {}))

    def _narrow(self, value: Any) -> Any:
        if isinstance(value, (tuple, list)):
            return type(value)(self._narrow(each) for each in value)
        if isinstance(value, torch.Tensor) and value.dtype == torch.float64 and value.dim() > 1:
            return rounded(value, self._bits, self._cut)
        return value


class Traffic(TorchDispatchMode):
    """Inside, bytes of all outputs are added up, and the operators named, with `namespace::` where they are not torch's own: what a
    call moves at least once, before any fusion.
    """

    def __init__(self) -> None:
        super().__init__()
        self.bytes = 0
        self.names: set[str] = set()

    def __torch_dispatch__(
        self, function: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        out = function(*args, **(kwargs or {}))
        name = function.overloadpacket.__name__
        self.names.add(name if function.namespace in _OWN else f"{function.namespace}::{name}")
        for value in out if isinstance(out, (tuple, list)) else (out,):
            if isinstance(value, torch.Tensor):
                self.bytes += value.numel() * value.element_size()
        return out


def moved(call: Callable[[], torch.Tensor], precision: str, cut: bool = False) -> tuple[torch.Tensor, int]:
    """The answer with the operands of its products rounded, or cut, and how many products there were."""
    with Rounding(BITS[precision], cut) as mode:
        answer = call()
    return answer, mode.seen
