"""y = (0.75 - x) transposed, in tiles of 32 x 32.

MODE: 0 lanes along a column of x (strided loads), 1 lanes along a row of x (strided stores), 2 through a tile in shared memory whose
rows have PAD words more than 32.
"""

PRECISION = "ieee"
CONFIG = {}

CODE = r"""
extern "C" __global__ void __launch_bounds__(256) transpose(const float *x, float *y, float b, int rows, int cols) {
    const int left = blockIdx.x * 32, top = blockIdx.y * 32, lane = threadIdx.x;
#if MODE == 2
    __shared__ float tile[32][32 + PAD];
    for (int k = threadIdx.y; k < 32; k += 8)
        if (top + k < rows && left + lane < cols) tile[k][lane] = b - x[(top + k) * cols + left + lane];
    __syncthreads();
    for (int k = threadIdx.y; k < 32; k += 8)
        if (left + k < cols && top + lane < rows) y[(left + k) * rows + top + lane] = tile[lane][k];
#else
    for (int k = threadIdx.y; k < 32; k += 8) {
        const int row = top + (MODE == 0 ? lane : k), col = left + (MODE == 0 ? k : lane);
        if (row < rows && col < cols) y[col * rows + row] = b - x[row * cols + col];
    }
#endif
}
"""


def run(x) -> torch.Tensor:
    rows, cols = x.shape
    y = torch.empty((cols, rows), device=x.device, dtype=x.dtype)
    grid = -(-cols // 32), -(-rows // 32), 1
    launch(CODE, "transpose", grid, (32, 8, 1), 0, x, y, 0.75, rows, cols)
    return y
