"""A chain of operations on the elements of up to four tensors, in one pass over memory: four elements a load."""

PRECISION = "ieee"
CONFIG = {"QUADS": 1, "THREADS": 256}

CODE = r"""
static __device__ float sigmoid(float v) { return 1.0f / (1.0f + expf(-v)); }
static __device__ float silu(float v) { return v / (1.0f + expf(-v)); }
static __device__ float relu(float v) { return v < 0.0f ? 0.0f : v; }
static __device__ float gelu(float v) { return 0.5f * v * (1.0f + erff(v * 0.70710678118654752f)); }
static __device__ float square(float v) { return v * v; }
#define ELEMENT x0
static __device__ float element(float x0, float x1, float x2, float x3) { return ELEMENT; }
extern "C" __global__ void __launch_bounds__(THREADS) elementwise(const float *a, const float *b, const float *c, const float *d, float *y, int size, int wide) {
    for (int q = 0; q < QUADS; ++q) {
        const long long at = 4LL * (((long long)blockIdx.x * QUADS + q) * THREADS + threadIdx.x);
        if (wide && at + 4 <= size) {
            const float4 u = *reinterpret_cast<const float4 *>(a + at), v = *reinterpret_cast<const float4 *>(b + at);
            const float4 w = *reinterpret_cast<const float4 *>(c + at), z = *reinterpret_cast<const float4 *>(d + at);
            *reinterpret_cast<float4 *>(y + at) = make_float4(
                element(u.x, v.x, w.x, z.x), element(u.y, v.y, w.y, z.y), element(u.z, v.z, w.z, z.z), element(u.w, v.w, w.w, z.w));
        } else {
            for (long long i = at; i < at + 4 && i < size; ++i) y[i] = element(a[i], b[i], c[i], d[i]);
        }
    }
}
"""


def run(*tensors) -> torch.Tensor:
    tensors = [each.contiguous() for each in torch.broadcast_tensors(*tensors)]
    y = torch.empty(tensors[0].shape, device=tensors[0].device, dtype=tensors[0].dtype)
    size = y.numel()
    if size >= 2**31:
        raise ValueError(f"expected fewer than 2**31 elements, found {size}")
    wide = int(all(each.data_ptr() % 16 == 0 for each in (*tensors, y)))
    four = (tensors + tensors[:1] * 3)[:4]
    blocks = -(-size // (4 * CONFIG["QUADS"] * CONFIG["THREADS"]))
    launch(CODE, "elementwise", (blocks, 1, 1), (CONFIG["THREADS"], 1, 1), 0, *four, y, size, wide)
    return y
