"""Matrix product, or one of each pair of a batch: tiles through shared memory, a patch of the tile a thread, all in IEEE float32."""

PRECISION = "ieee"
CONFIG = {"BLOCK_K": 16, "BLOCK_M": 64, "BLOCK_N": 64, "THREAD_M": 4, "THREAD_N": 4}

CODE = r"""
#define ACROSS (BLOCK_N / THREAD_N)
#define DOWN (BLOCK_M / THREAD_M)
#define THREADS (ACROSS * DOWN)
extern "C" __global__ void __launch_bounds__(THREADS) product(const float *a, const float *b, float *c, int m, int n, int k) {
    __shared__ float left[BLOCK_K][BLOCK_M + 1], right[BLOCK_K][BLOCK_N];
    const int tiles = (m + BLOCK_M - 1) / BLOCK_M;
    const long long pair = blockIdx.y / tiles;
    const int top = blockIdx.y % tiles * BLOCK_M, start = blockIdx.x * BLOCK_N;
    const int row = threadIdx.x / ACROSS, col = threadIdx.x % ACROSS;
    a += pair * m * k;
    b += pair * k * n;
    c += pair * m * n;
    float sum[THREAD_M][THREAD_N] = {};
    for (int first = 0; first < k; first += BLOCK_K) {
        for (int i = threadIdx.x; i < BLOCK_M * BLOCK_K; i += THREADS) {
            const int r = i / BLOCK_K, d = i % BLOCK_K;
            left[d][r] = top + r < m && first + d < k ? a[(long long)(top + r) * k + first + d] : 0.0f;
        }
        for (int i = threadIdx.x; i < BLOCK_K * BLOCK_N; i += THREADS) {
            const int d = i / BLOCK_N, r = i % BLOCK_N;
            right[d][r] = first + d < k && start + r < n ? b[(long long)(first + d) * n + start + r] : 0.0f;
        }
        __syncthreads();
#pragma unroll
        for (int d = 0; d < BLOCK_K; ++d) {
            float u[THREAD_M], v[THREAD_N];
            for (int i = 0; i < THREAD_M; ++i) u[i] = left[d][row + i * DOWN];
            for (int j = 0; j < THREAD_N; ++j) v[j] = right[d][col + j * ACROSS];
            for (int i = 0; i < THREAD_M; ++i)
                for (int j = 0; j < THREAD_N; ++j) sum[i][j] = fmaf(u[i], v[j], sum[i][j]);
        }
        __syncthreads();
    }
    for (int i = 0; i < THREAD_M; ++i)
        for (int j = 0; j < THREAD_N; ++j) {
            const int r = top + row + i * DOWN, s = start + col + j * ACROSS;
            if (r < m && s < n) c[(long long)r * n + s] = sum[i][j];
        }
}
"""


def run(a, b) -> torch.Tensor:
    if a.dim() != b.dim() or a.dim() not in (2, 3):
        raise ValueError(f"expected two matrices or two batches of them, found {tuple(a.shape)} and {tuple(b.shape)}")
    a, b = a.contiguous(), b.contiguous()
    m, k, n = a.shape[-2], a.shape[-1], b.shape[-1]
    pairs = a.shape[0] if a.dim() == 3 else 1
    c = torch.empty((*a.shape[:-1], n), device=a.device, dtype=a.dtype)
    block_m, block_n = CONFIG["BLOCK_M"], CONFIG["BLOCK_N"]
    threads = block_m // CONFIG["THREAD_M"] * (block_n // CONFIG["THREAD_N"])
    launch(CODE, "product", (-(-n // block_n), pairs * -(-m // block_m), 1), (threads, 1, 1), 0, a, b, c, m, n, k)
    return c
