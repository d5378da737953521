"""Sums of the rows of x: PER elements a thread, added to the row's sum one by one (MODE 0) or once for each block (MODE 1)."""

PRECISION = "ieee"
CONFIG = {}

CODE = r"""
extern "C" __global__ void __launch_bounds__(BLOCK) row_sums(const float *x, float *y, int cols) {
    const float *row = x + (long long)blockIdx.y * cols;
    const int first = blockIdx.x * BLOCK * PER + threadIdx.x;
#if MODE == 0
#pragma unroll
    for (int j = 0; j < PER; ++j)
        if (first + j * BLOCK < cols) atomicAdd(y + blockIdx.y, row[first + j * BLOCK]);
#else
    __shared__ float part[BLOCK];
    float sum = 0.0f;
#pragma unroll
    for (int j = 0; j < PER; ++j)
        if (first + j * BLOCK < cols) sum += row[first + j * BLOCK];
    part[threadIdx.x] = sum;
    __syncthreads();
    for (int half = BLOCK / 2; half > 0; half /= 2) {
        if (threadIdx.x < half) part[threadIdx.x] += part[threadIdx.x + half];
        __syncthreads();
    }
    if (threadIdx.x == 0) atomicAdd(y + blockIdx.y, part[0]);
#endif
}
"""


def run(x) -> torch.Tensor:
    rows, cols = x.shape
    y = torch.empty((rows,), device=x.device, dtype=x.dtype)
    y.zero_()
    grid = -(-cols // (CONFIG["BLOCK"] * CONFIG["PER"])), rows, 1
    launch(CODE, "row_sums", grid, (CONFIG["BLOCK"], 1, 1), 0, x, y, cols)
    return y
