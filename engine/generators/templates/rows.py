"""Softmax, layer normalisation, sum or mean of rows: a block a row, whose partial results meet in shared memory.

OPERATION: 0 softmax, 1 layer normalisation, 2 sum, 3 mean.
"""

PRECISION = "ieee"
CONFIG = {"OPERATION": 0, "THREADS": 256}
EPS = 1e-05

CODE = r"""
template <class Use> static __device__ void each(const float *row, int cols, int wide, Use use) {
    if (wide) {
        const float4 *quads = reinterpret_cast<const float4 *>(row);
        for (int i = threadIdx.x; i < cols / 4; i += THREADS) {
            const float4 q = quads[i];
            use(q.x); use(q.y); use(q.z); use(q.w);
        }
    } else {
        for (int i = threadIdx.x; i < cols; i += THREADS) use(row[i]);
    }
}
template <class Use> static __device__ void written(const float *row, float *out, int cols, int wide, Use use) {
    if (wide) {
        const float4 *quads = reinterpret_cast<const float4 *>(row);
        for (int i = threadIdx.x; i < cols / 4; i += THREADS) {
            const float4 q = quads[i];
            const float4 made = make_float4(use(4 * i, q.x), use(4 * i + 1, q.y), use(4 * i + 2, q.z), use(4 * i + 3, q.w));
            reinterpret_cast<float4 *>(out)[i] = made;
        }
    } else {
        for (int i = threadIdx.x; i < cols; i += THREADS) out[i] = use(i, row[i]);
    }
}
static __device__ float together(float mine, float *partial, int largest) {
    partial[threadIdx.x] = mine;
    __syncthreads();
    for (int half = THREADS / 2; half > 0; half /= 2) {
        if (threadIdx.x < half) {
            const float one = partial[threadIdx.x], other = partial[threadIdx.x + half];
            partial[threadIdx.x] = largest ? fmaxf(one, other) : one + other;
        }
        __syncthreads();
    }
    const float all = partial[0];
    __syncthreads();
    return all;
}
extern "C" __global__ void __launch_bounds__(THREADS) rows(const float *x, const float *weight, const float *bias, float *y, float eps, int cols, int wide) {
    __shared__ float partial[THREADS];
    const float *row = x + (long long)blockIdx.x * cols;
#if OPERATION >= 2
    float mine = 0.0f;
    each(row, cols, wide, [&](float v) { mine += v; });
    const float all = together(mine, partial, 0);
    if (threadIdx.x == 0) y[blockIdx.x] = OPERATION == 2 ? all : all / cols;
#else
    float *out = y + (long long)blockIdx.x * cols;
#if OPERATION == 0
    float mine = -3.402823466e38f;
    each(row, cols, wide, [&](float v) { mine = fmaxf(mine, v); });
    const float top = together(mine, partial, 1);
    float part = 0.0f;
    each(row, cols, wide, [&](float v) { part += expf(v - top); });
    const float whole = together(part, partial, 0);
    written(row, out, cols, wide, [&](int, float v) { return expf(v - top) / whole; });
#else
    float mine = 0.0f;
    each(row, cols, wide, [&](float v) { mine += v; });
    const float mean = together(mine, partial, 0) / cols;
    float part = 0.0f;
    each(row, cols, wide, [&](float v) { part += (v - mean) * (v - mean); });
    const float scale = 1.0f / sqrtf(together(part, partial, 0) / cols + eps);
    written(row, out, cols, wide, [&](int i, float v) { return (v - mean) * scale * weight[i] + bias[i]; });
#endif
#endif
}
"""


def run(x, weight=None, bias=None) -> torch.Tensor:
    x = x.contiguous()
    cols = x.shape[-1] if weight is None else weight.numel()
    rows = x.numel() // cols
    reduces = CONFIG["OPERATION"] >= 2
    y = torch.empty(x.shape[:-1] if reduces else x.shape, device=x.device, dtype=x.dtype)
    weight, bias = (x, x) if weight is None else (weight.contiguous(), bias.contiguous())
    wide = int(cols % 4 == 0 and x.data_ptr() % 16 == 0 and y.data_ptr() % 16 == 0)
    launch(CODE, "rows", (rows, 1, 1), (CONFIG["THREADS"], 1, 1), 0, x, weight, bias, y, EPS, cols, wide)
    return y
