"""Texts of a problem that was made from a user's file with `inputs`, `reference` and `run`. Never imports torch or runs a source."""

from __future__ import annotations

from .module_source import MARK, SCOPED
from .sources import PRECISION_LINES

_START = """
import torch as _torch
{line}
_run = run
"""

_EAGER = """
import torch as _torch

PRECISION = "ieee"
operation = reference
"""

_REFERENCE = '''
import torch as _torch

OUTPUT_DTYPE = "{dtype}"
_inputs, _reference = inputs, reference


def inputs(shape, generator, device):
    """The file's own inputs, from the seed of the draw."""
    given = _inputs(generator, _torch.device(device))
    return given if isinstance(given, (tuple, list)) else (given,)


def reference(*tensors):
    """The file's own answer on the same values in float64."""
    before = _torch.get_default_dtype()
    _torch.set_default_dtype(_torch.float64)
    try:
        with _torch.no_grad():
            wide = [value.double() if value.is_floating_point() else value for value in tensors]
            return _reference(*wide).double()
    finally:
        _torch.set_default_dtype(before)
'''


def start(user: str) -> str:
    """The user's kernel; one without a precision line gets one, which then sets torch's switches around its `run`."""
    if any(line in PRECISION_LINES for line in user.split("\n")):
        return user
    head = f"{user.rstrip()}\n\n\n{MARK}\n" + _START.format(line='\nPRECISION = "ieee"').lstrip()
    return head + SCOPED.format(before="", call="_run(*tensors)")


def eager(user: str) -> str:
    """The user's reference in the dtype of its inputs: PyTorch's own answer."""
    others = "\n".join("" if line in PRECISION_LINES else line for line in user.rstrip().split("\n"))
    head = f"{others}\n\n\n{MARK}\n" + _EAGER.lstrip()
    return head + SCOPED.format(before="", call="operation(*tensors)")


def reference(user: str, dtype: str) -> str:
    """The reference file."""
    return f"{user.rstrip()}\n\n\n{MARK}\n" + _REFERENCE.format(dtype=dtype).lstrip()
