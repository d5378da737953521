"""Decoder block whose attention is the library's fused operator: the scores are never written to memory."""

import torch

PRECISION = "ieee"


def rms_norm(x):
    return x * torch.rsqrt((x * x).mean(dim=-1, keepdim=True) + 1e-5)


def rotated(x, cos, sin):
    first, second = x.chunk(2, dim=-1)
    return torch.cat((first * cos - second * sin, second * cos + first * sin), dim=-1)


def heads_of(x, weight):
    heads, size, _ = weight.shape
    return torch.matmul(x, weight.flatten(0, 1).t()).unflatten(-1, (heads, size)).transpose(1, 2)


def attention(q, k, v):
    return torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)


def operation(x, cos, sin, attention_norm, wq, wk, wv, wo, mlp_norm, w_gate, w_up, w_down):
    h = rms_norm(x) * attention_norm
    q = rms_norm(rotated(heads_of(h, wq), cos, sin))
    k = rms_norm(rotated(heads_of(h, wk), cos, sin))
    x = x + torch.matmul(attention(q, k, heads_of(h, wv)).transpose(1, 2).flatten(2), wo.t())
    h = rms_norm(x) * mlp_norm
    gate, up = torch.matmul(h, w_gate.t()), torch.matmul(h, w_up.t())
    return x + torch.matmul(torch.nn.functional.silu(gate) * up, w_down.t())


def run(x, cos, sin, attention_norm, wq, wk, wv, wo, mlp_norm, w_gate, w_up, w_down) -> torch.Tensor:
    before = torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32
    torch.backends.cuda.matmul.allow_tf32 = PRECISION == "tf32"
    torch.backends.cudnn.allow_tf32 = PRECISION == "tf32"
    try:
        return operation(x, cos, sin, attention_norm, wq, wk, wv, wo, mlp_norm, w_gate, w_up, w_down)
    finally:
        torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32 = before
