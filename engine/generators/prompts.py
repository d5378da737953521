"""What a language model is told about a kernel. Holds words only: the model rewrites, and judges nothing."""

from __future__ import annotations

from .base import Asked

_SYSTEM = """You rewrite GPU kernels. You are given a whole Python source file, what was measured of it on the GPU, and one prescription \
that follows from the measurement. Apply the prescription and answer with the whole new file in one fenced Python block, nothing left out.

The file must
- define `run` at module level with the parameters that it has now, returning a tensor of the same shape and type;
- import only the standard library, torch, triton and cuda.bindings, and read no file and no network;
- leave its inputs and torch's global settings as they are, and launch on torch's current stream;
- hold exactly one line `PRECISION = "ieee"`, `PRECISION = "tf32"` or `PRECISION = "tf32x3"` (each float32 product split into three of TF32), \
by which its matrix products go;
- compute anew at each call: results kept from call to call, tests of the harness and constant answers are found and refused.

Another program checks the result against float64 and times it. Do not claim or estimate a speed-up."""

_CONTRACTS = {
    "fp32-strict": 'float32 accuracy, measured against float64: PRECISION is "ieee", or "tf32x3" where products are split; no plain TF32 or half precision.',
    "tf32-allowed": "float32, in which matrix products may run in TF32.",
    "bf16-allowed": "float32 outputs; matrix products may run in TF32 or bfloat16 with float32 accumulation.",
}


def messages(asked: Asked) -> list[dict[str, str]]:
    """The conversation that a proposal begins with."""
    return [{"role": "system", "content": _SYSTEM}, {"role": "user", "content": _question(asked)}]


def correction(status: str, found: str) -> str:
    """What is said to an answer with nothing to try in it."""
    if status == "wrong_names":
        return f"No block defines `run` at its left margin; found {found or 'no definition'}. Answer with the whole file in one block."
    return "There was no closed fenced Python block in that answer. Answer with the whole file in one block."


def _question(asked: Asked) -> str:
    problem, signals = asked.problem, sorted(asked.signals.items())
    shape = ", ".join(f"{name} = {size}" for name, size in problem.shape.items())
    least = f"{problem.flops} floating-point operations and {problem.min_bytes} bytes"
    parts = [
        f"Problem {problem.name} ({problem.family}, {problem.dtype}): {shape}. At least {least} a call.",
        f"GPU: {asked.chip or 'unknown'}.",
        f"Precision contract {asked.contract}: {_CONTRACTS.get(asked.contract, '')}",
        f"What it computes, in PyTorch:\n{_fenced(problem.eager)}",
        f"Rule {asked.rule} fired. Prescription: {asked.prescription}.",
        "Measured signals (fractions of measured ceilings):\n"
        + "\n".join(f"{name} = {value:.6g}" for name, value in signals),
    ]
    if asked.failure:
        parts.append(f"The last candidate for this file was not kept:\n{asked.failure}")
    parts.append(f"The file:\n{_fenced(asked.source)}")
    return "\n\n".join(parts)


def _fenced(text: str) -> str:
    fence = "```"
    while fence in text:
        fence += "`"
    return f"{fence}python\n{text.rstrip()}\n{fence}"
