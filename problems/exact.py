"""Answers in float64, of convolutions by whichever is faster on the device: cudnn, or torch's own kernels, which multiply matrices.

A card's units that multiply matrices in float64 are used by products; whether a convolution of cudnn's uses them is its own choice. Either
is exact to float64's last digits, and no time of a kernel is taken of it.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator

import torch

from .rounding import RECURRENT, Traffic

LONG_S = 0.02
"""Shorter calls are left to cudnn: there is little to win."""
Call = Callable[[], torch.Tensor]


class Exact:
    """One reference at one size: `__call__` gives its answer, and finds out at the first call who is faster."""

    def __init__(self) -> None:
        self.apart: bool | None = None
        """Whether cudnn is left out; None before the first call."""

    def __call__(self, call: Call) -> torch.Tensor:
        """The answer of `call`, whose errors pass through."""
        if self.apart is None:
            return self._chosen(call)
        with _cudnn(torch.backends.cudnn.enabled and not self.apart):
            return call()

    def _chosen(self, call: Call) -> torch.Tensor:
        self.apart = False
        with Traffic() as traffic:
            answer = call()
        if not answer.is_cuda or "convolution" not in traffic.names or traffic.names & RECURRENT:
            return answer
        with contextlib.suppress(torch.OutOfMemoryError):  # of a second answer, or of what theirs write beside it
            by_cudnn = _seconds(call)
            if by_cudnn >= LONG_S:
                with _cudnn(False):
                    call()
                    self.apart = _seconds(call) < by_cudnn
        return answer


def quick(reference: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
    """The same function, answered by whoever is faster; for inputs of one size."""
    by = Exact()
    return lambda *tensors: by(lambda: reference(*tensors))


def _seconds(call: Call) -> float:
    torch.cuda.synchronize()
    began = time.perf_counter()
    call()
    torch.cuda.synchronize()
    return time.perf_counter() - began


@contextlib.contextmanager
def _cudnn(enabled: bool) -> Iterator[None]:
    before = torch.backends.cudnn.enabled
    torch.backends.cudnn.enabled = enabled
    try:
        yield
    finally:
        torch.backends.cudnn.enabled = before
