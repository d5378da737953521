"""The command `gpusolver new`: writes a file to start from, which `gpusolver run` takes as it is. Runs nothing."""

from __future__ import annotations

import pathlib
import re

import click

from ..events.errors import BadInput

_TEMPLATE = '''"""{name}: what is computed, on what, and how far an answer may be off. Run it: gpusolver run {file}"""

import torch


def inputs(generator, device):
    """Fresh inputs of one call. Without a GPU (--device cpu) they are small: that tries the machinery and measures nothing."""
    rows = 8192 if device.type == "cuda" else 32
    return (torch.randn(rows, rows, generator=generator, device=device),)


def reference(x):
    """The answer in plain PyTorch. It is called with float64 for the truth, and with the inputs' own dtype as PyTorch's time to beat."""
    return torch.softmax(x, dim=-1)


def run(x):
    """The kernel to make faster: PyTorch, Triton, or CUDA. It returns a new tensor and leaves its inputs alone."""
    e = torch.exp(x - x.max(dim=-1, keepdim=True).values)
    return e / e.sum(dim=-1, keepdim=True)


# Optional: the largest accepted (relative L2 error, error over the RMS of the answer) by contract. Left out, they follow from the
# error that fp32, TF32 and bf16 make in `reference`.
# LIMITS = {{"fp32-strict": (2e-5, 2e-3), "tf32-allowed": (2e-5, 2e-3), "bf16-allowed": (2e-5, 2e-3)}}
'''


@click.command("new")
@click.argument("name")
def new_command(name: str) -> None:
    """Write NAME.py: a kernel, its inputs and its reference, ready for gpusolver run NAME.py."""
    stem = name.removesuffix(".py")
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_-]*", pathlib.Path(stem).name):
        raise click.ClickException(
            str(BadInput(f"{name}: expected a name of letters, digits, dashes and underscores, found another"))
        )
    path = pathlib.Path(f"{stem}.py")
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(_TEMPLATE.format(name=path.stem, file=path))
    except FileExistsError:
        raise click.ClickException(
            f"{path}: expected no such file, found one; it is left as it is. Name another."
        ) from None
    except OSError as error:
        raise click.ClickException(f"{path}: cannot be written: {error.strerror}") from None
    click.echo(f"wrote {path}. Next: gpusolver run {path} (without a GPU: add --device cpu)")
