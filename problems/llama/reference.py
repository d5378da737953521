"""One decoder block: root-mean-square norm, rotary causal attention, SwiGLU, in float64. Never measures and never judges."""

import torch

EPS = 1e-5


def inputs(shape, generator, device):
    """x (batch, seq, dim), a tenth of what the block adds to it, so that its products are what an answer is judged by; cos and sin (seq, pairs) of the rotary angles; then the block's weights. All float32.

    dim = heads * 2 * pairs. Weights are normal with a variance of 1 / (terms of their sums), so that every step keeps its scale;
    those of the two norms (dim) lie around 1. wq, wk, wv: (heads, 2 * pairs, dim); wo: (dim, dim); w_gate, w_up: (hidden, dim);
    w_down: (dim, hidden).
    """
    batch, seq, heads, size, hidden = shape["batch"], shape["seq"], shape["heads"], 2 * shape["pairs"], shape["hidden"]
    dim = heads * size

    def normal(*sizes):
        return torch.randn(*sizes, generator=generator, device=device)

    speeds = 10000.0 ** -(torch.arange(shape["pairs"], dtype=torch.float64, device=device) / shape["pairs"])
    angles = torch.arange(seq, dtype=torch.float64, device=device)[:, None] * speeds
    x = 0.1 * normal(batch, seq, dim)
    norms = [1 + 0.1 * normal(dim) for _ in range(2)]
    wq, wk, wv = (normal(heads, size, dim) * dim**-0.5 for _ in range(3))
    wo = normal(dim, dim) * dim**-0.5
    w_gate, w_up = (normal(hidden, dim) * dim**-0.5 for _ in range(2))
    w_down = normal(dim, hidden) * hidden**-0.5
    return x, angles.cos().float(), angles.sin().float(), norms[0], wq, wk, wv, wo, norms[1], w_gate, w_up, w_down


def reference(x, cos, sin, attention_norm, wq, wk, wv, wo, mlp_norm, w_gate, w_up, w_down):
    """x + attention + MLP; (batch, seq, dim) float64.

    Queries and keys are normalised after the rotation, as Llama 4 has it: scores keep their scale whatever the inputs' is.
    """
    x, cos, sin = x.double(), cos.double(), sin.double()
    h = _norm(x) * attention_norm.double()
    q, k, v = (torch.einsum("bsd,hed->bhse", h, weight.double()) for weight in (wq, wk, wv))
    q, k = _norm(_rotated(q, cos, sin)), _norm(_rotated(k, cos, sin))
    # Head by head: the scores of all heads at once take gigabytes in float64.
    attended = torch.stack([_attended(q[:, i], k[:, i], v[:, i]) for i in range(q.shape[1])], dim=2).flatten(2)
    x = x + attended @ wo.double().t()
    h = _norm(x) * mlp_norm.double()
    gate, up = h @ w_gate.double().t(), h @ w_up.double().t()
    return x + (gate * torch.sigmoid(gate) * up) @ w_down.double().t()


def _norm(x):
    return x / torch.sqrt((x * x).mean(dim=-1, keepdim=True) + EPS)


def _rotated(x, cos, sin):
    first, second = x.chunk(2, dim=-1)
    return torch.cat((first * cos - second * sin, first * sin + second * cos), dim=-1)


def _attended(q, k, v):
    scores = q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5
    later = torch.ones(scores.shape[-2:], dtype=torch.bool, device=q.device).triu(1)
    return torch.softmax(scores.masked_fill(later, float("-inf")), dim=-1) @ v
