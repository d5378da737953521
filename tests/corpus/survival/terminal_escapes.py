"""Raises an exception whose text holds terminal escapes, carriage returns and markup."""

import torch

PRECISION = "ieee"


def run(x) -> torch.Tensor:
    raise RuntimeError("\x1b[2J\x1b[31mred\x1b[0m\r\rPASS\x07 [bold]{0}%s</script>\u202eflip\u0000")
