"""Process-wide precision switches: set to strict before every call, read back into the record. Decides nothing."""

from __future__ import annotations

import torch


def reset() -> None:
    """Strict fp32 everywhere: a candidate that wants TF32 sets it inside its own `run`."""
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    torch.backends.cudnn.benchmark = False


def read() -> dict[str, bool]:
    """The switches as they stand."""
    return {
        "cuda.matmul.allow_tf32": bool(torch.backends.cuda.matmul.allow_tf32),
        "cudnn.allow_tf32": bool(torch.backends.cudnn.allow_tf32),
        "cudnn.benchmark": bool(torch.backends.cudnn.benchmark),
    }
