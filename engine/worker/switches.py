"""Process-wide switches: set to strict before every call, read back after it, put back as they were. Decides nothing."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import torch

State = dict[str, Any]


class Switch(NamedTuple):
    """One switch: how it is read and set, and its strict value."""

    get: Callable[[], Any]
    set: Callable[[Any], None]
    strict: Any


def _attribute(owner: Any, name: str, strict: Any) -> Switch:
    return Switch(lambda: getattr(owner, name), lambda value: setattr(owner, name, value), strict)


def _set_grad(on: bool) -> None:
    torch.set_grad_enabled(on)


# In the order in which they are set: the later ones are the parts that the earlier ones speak of as a whole.
_SWITCHES = {
    "fp32_precision": _attribute(torch.backends, "fp32_precision", "none"),
    "float32_matmul_precision": Switch(
        torch.get_float32_matmul_precision, torch.set_float32_matmul_precision, "highest"
    ),
    "cuda.matmul.allow_tf32": _attribute(torch.backends.cuda.matmul, "allow_tf32", False),
    "cuda.matmul.allow_fp16_reduced_precision_reduction": _attribute(
        torch.backends.cuda.matmul, "allow_fp16_reduced_precision_reduction", False
    ),
    "cuda.matmul.allow_bf16_reduced_precision_reduction": _attribute(
        torch.backends.cuda.matmul, "allow_bf16_reduced_precision_reduction", False
    ),
    "cudnn.allow_tf32": _attribute(torch.backends.cudnn, "allow_tf32", False),
    "cudnn.benchmark": _attribute(torch.backends.cudnn, "benchmark", False),
    "cudnn.deterministic": _attribute(torch.backends.cudnn, "deterministic", False),
    "autocast": Switch(
        lambda: torch.is_autocast_enabled("cuda"), lambda on: torch.set_autocast_enabled("cuda", on), False
    ),
    "deterministic": Switch(torch.are_deterministic_algorithms_enabled, torch.use_deterministic_algorithms, False),
    "flash_sdp": Switch(torch.backends.cuda.flash_sdp_enabled, torch.backends.cuda.enable_flash_sdp, True),
    "mem_efficient_sdp": Switch(
        torch.backends.cuda.mem_efficient_sdp_enabled, torch.backends.cuda.enable_mem_efficient_sdp, True
    ),
    "math_sdp": Switch(torch.backends.cuda.math_sdp_enabled, torch.backends.cuda.enable_math_sdp, True),
    "default_dtype": Switch(torch.get_default_dtype, torch.set_default_dtype, torch.float32),
    "grad_mode": Switch(torch.is_grad_enabled, _set_grad, True),
}
_MIXED = "mixed"
"""Read where torch refuses to answer: parts of a switch were set apart from each other."""


def read() -> State:
    """The switches as they stand."""
    return {name: _read(switch) for name, switch in _SWITCHES.items()}


def write(state: State) -> None:
    """Set every switch; one that was `mixed` is set to strict, for there is no whole value to go back to."""
    for name, switch in _SWITCHES.items():
        switch.set(switch.strict if state[name] == _MIXED else state[name])


def reset() -> None:
    """Strict fp32 everywhere: a candidate that wants TF32 sets it inside its own `run`."""
    write({name: switch.strict for name, switch in _SWITCHES.items()})


@contextlib.contextmanager
def strict(left: State | None = None) -> Iterator[None]:
    """Strict switches inside, afterwards those of before. What the block left otherwise than strict is put into `left`."""
    before = read()
    reset()
    try:
        yield
    finally:
        if left is not None:
            left |= {name: value for name, value in read().items() if value != _SWITCHES[name].strict}
        write(before)


def strict_values() -> State:
    """What every arm starts from."""
    return {name: switch.strict for name, switch in _SWITCHES.items()}


def words(state: State) -> State:
    """The state as JSON: names for what JSON has no value for."""
    return {name: value if isinstance(value, (bool, str)) else str(value) for name, value in state.items()}


def _read(switch: Switch) -> Any:
    try:
        return switch.get()
    except RuntimeError:
        return _MIXED
