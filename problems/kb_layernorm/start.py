"""Layer normalisation in one pass: a program holds one whole row in registers."""

import torch
import triton
import triton.language as tl

PRECISION = "ieee"
CONFIG = {"num_warps": 4}


@triton.jit
def layernorm_row(
    x_ptr, weight_ptr, bias_ptr, y_ptr, N, stride_x, stride_y, eps,
    BLOCK: tl.constexpr, INPUT_PRECISION: tl.constexpr,
):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    inside = cols < N
    x = tl.load(x_ptr + row * stride_x + cols, mask=inside, other=0.0)
    centred = tl.where(inside, x - tl.sum(x, axis=0) / N, 0.0)
    scale = 1.0 / tl.sqrt(tl.sum(centred * centred, axis=0) / N + eps)
    weight = tl.load(weight_ptr + cols, mask=inside, other=0.0)
    bias = tl.load(bias_ptr + cols, mask=inside, other=0.0)
    tl.store(y_ptr + row * stride_y + cols, centred * scale * weight + bias, mask=inside)


def run(x, weight, bias) -> torch.Tensor:
    m, n = x.shape
    y = torch.empty((m, n), device=x.device, dtype=x.dtype)
    layernorm_row[(m,)](
        x, weight, bias, y, n, x.stride(0), y.stride(0), 1e-5,
        BLOCK=triton.next_power_of_2(n), INPUT_PRECISION=PRECISION, **CONFIG
    )
    return y
