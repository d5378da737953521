"""y = 0.75 - x, by an odd number of steps v <- a v + b with a = -1 and b = 0.75, which undo each other in pairs.

OP: 0 fused steps, 1 multiply then add, 2 first hyperbolic tangents that count for nothing, 3 steps in double, 4 eight steps at a time predicated
on every PREDICATE-th lane, 5 thirty-two steps of the first warp alone, with a barrier after each turn where BARRIER is 1, 6 and 7 a
value through shared memory by bytes and by words, 8 b from a TABLE in memory, past the L1, 9 sixteen values by an index with factor KEY,
known at run time only where KEY is 0.
HEAVY: who takes HEAVY_STEPS instead of STEPS: 1 every eighth lane, 2 every eighth warp, 3 the first block.
GRID: blocks; 0 as many as BLOCK x LIVE x VEC elements each need, -1 one for each row. SHARED: bytes that are asked for.
MIN_BLOCKS: blocks for which an SM shall have registers.
"""

PRECISION = "ieee"
CONFIG = {}

CODE = r"""
#if KEY
#define FACTOR KEY
#else
#define FACTOR key
#endif

__device__ __forceinline__ void steps_of(float (&v)[LIVE * VEC], int count, float a, float b) {
#pragma unroll 4
    for (int s = 0; s < count; ++s) {
#pragma unroll
        for (int j = 0; j < LIVE * VEC; ++j) {
#if OP == 1
            v[j] = __fadd_rn(__fmul_rn(a, v[j]), b);
#else
            v[j] = fmaf(a, v[j], b);
#endif
        }
    }
}

extern "C" __global__ void __launch_bounds__(BLOCK, MIN_BLOCKS) elementwise(
    const float *x, float *y, const float *table, float a, float b, int n, int chunk, int steps, int heavy_steps, int key) {
    extern __shared__ float scratch[];
    int count = steps;
#if HEAVY == 1
    if (threadIdx.x % 8 == 0) count = heavy_steps;
#elif HEAVY == 2
    if (threadIdx.x / 32 % 8 == 0) count = heavy_steps;
#elif HEAVY == 3
    if (blockIdx.x == 0) count = heavy_steps;
#endif
#if RANDOM
    unsigned now;
    asm volatile("mov.u32 %0, %globaltimer_lo;" : "=r"(now));
    count = count / 2 * (64 + ((now >> 16) * 2654435761u >> 24)) / 64 * 2 + 1;
#endif
    const int begin = blockIdx.x * chunk, end = min(begin + chunk, n);
#pragma unroll 1
    for (int base = begin; base < end; base += BLOCK * LIVE * VEC) {
        const int first = base + threadIdx.x * VEC;
        float v[LIVE * VEC];
#pragma unroll
        for (int j = 0; j < LIVE; ++j) {
            const int at = first + j * BLOCK * VEC;
#if VEC == 4
            const float4 four = at < end ? *reinterpret_cast<const float4 *>(x + at) : make_float4(0, 0, 0, 0);
            v[4 * j] = four.x, v[4 * j + 1] = four.y, v[4 * j + 2] = four.z, v[4 * j + 3] = four.w;
#else
            v[j] = at < end ? x[at] : 0.0f;
#endif
        }
#if OP == 0 || OP == 1
        steps_of(v, count, a, b);
#elif OP == 2
        float w[LIVE * VEC];
#pragma unroll
        for (int j = 0; j < LIVE * VEC; ++j) w[j] = v[j];
#pragma unroll 4
        for (int s = 0; s < count; ++s) {
#pragma unroll
            for (int j = 0; j < LIVE * VEC; ++j) asm volatile("tanh.approx.f32 %0, %0;" : "+f"(w[j]));
        }
#pragma unroll
        for (int j = 0; j < LIVE * VEC; ++j) v[j] = fmaf(a + 1.0f, w[j], v[j]);  // 0, which only the caller knows
        steps_of(v, 1, a, b);
#elif OP == 3
#pragma unroll
        for (int j = 0; j < LIVE * VEC; ++j) {
            double w = v[j];
#pragma unroll 4
            for (int s = 0; s < count; ++s) w = fma((double)a, w, (double)b);
            v[j] = (float)w;
        }
#elif OP == 4
        const int on = threadIdx.x % PREDICATE == 0;
#pragma unroll 4
        for (int s = 0; s < count; ++s)
            asm volatile(
                "{ .reg .pred p; setp.ne.s32 p, %1, 0;"
                "@p fma.rn.f32 %0, %2, %0, %3; @p fma.rn.f32 %0, %2, %0, %3;"
                "@p fma.rn.f32 %0, %2, %0, %3; @p fma.rn.f32 %0, %2, %0, %3;"
                "@p fma.rn.f32 %0, %2, %0, %3; @p fma.rn.f32 %0, %2, %0, %3;"
                "@p fma.rn.f32 %0, %2, %0, %3; @p fma.rn.f32 %0, %2, %0, %3; }"
                : "+f"(v[0]) : "r"(on), "f"(a), "f"(b));
        steps_of(v, 1, a, b);
#elif OP == 5
        for (int s = 0; s < count; ++s) {
            if (threadIdx.x < 32) steps_of(v, 32, a, b);
#if BARRIER
            __syncthreads();
#endif
        }
        steps_of(v, 1, a, b);
#elif OP == 6
        volatile unsigned char *byte = reinterpret_cast<unsigned char *>(scratch) + threadIdx.x;
        for (int s = 0; s < count; ++s) {
            const unsigned u = __float_as_uint(v[0]);
            byte[0] = u, byte[BLOCK] = u >> 8, byte[2 * BLOCK] = u >> 16, byte[3 * BLOCK] = u >> 24;
            const unsigned low = byte[0] | byte[BLOCK] << 8, high = byte[2 * BLOCK] | byte[3 * BLOCK] << 8;
            v[0] = __uint_as_float(low | high << 16);
        }
        steps_of(v, 1, a, b);
#elif OP == 7
        volatile float *word = scratch + threadIdx.x;
        for (int s = 0; s < count; ++s) {
            word[0] = v[0];
            v[0] = word[0];
        }
        steps_of(v, 1, a, b);
#elif OP == 8
        for (int s = 0; s < count; ++s) {
#pragma unroll
            for (int j = 0; j < LIVE; ++j) {
                float from;
                const float *where = table + (first + j * BLOCK + s * 4096) % TABLE;
                asm volatile("ld.global.cg.f32 %0, [%1];" : "=f"(from) : "l"(where));
                v[j] = fmaf(a, v[j], from);
            }
        }
#elif OP == 9
        for (int s = 0; s < count; ++s) {
            int k = 0;
#pragma unroll
            for (int j = 0; j < 16; ++j) {
                k = (k * FACTOR + 1) & 15;
                v[k] = fmaf(a, v[k], b);
            }
        }
#endif
#pragma unroll
        for (int j = 0; j < LIVE; ++j) {
            const int at = first + j * BLOCK * VEC;
#if VEC == 4
            if (at < end) *reinterpret_cast<float4 *>(y + at) = make_float4(v[4 * j], v[4 * j + 1], v[4 * j + 2], v[4 * j + 3]);
#else
            if (at < end) y[at] = v[j];
#endif
        }
    }
}
"""

TABLES = {}


def table_of(x):
    """CONFIG["TABLE"] times 0.75, in the device's memory or in pinned host memory (TABLE_HOST); made once."""
    if not CONFIG["TABLE"]:
        return x
    if not TABLES:
        where = {"pin_memory": True} if CONFIG["TABLE_HOST"] else {"device": x.device}
        TABLES[0] = torch.full((CONFIG["TABLE"],), 0.75, **where)
    return TABLES[0]


def run(x) -> torch.Tensor:
    c, n = CONFIG, x.numel()
    grid = x.shape[0] if c["GRID"] == -1 else c["GRID"] or -(-n // (c["BLOCK"] * c["LIVE"] * c["VEC"]))
    chunk = -(-n // (4 * grid)) * 4
    y = torch.empty_like(x)
    if c["HOST_WAIT"] and not torch.cuda.is_current_stream_capturing():
        torch.cuda.current_stream().synchronize()
    numbers = -1.0, 0.75, n, chunk, c["STEPS"], c["HEAVY_STEPS"], 5
    launch(CODE, "elementwise", (grid, 1, 1), (c["BLOCK"], 1, 1), c["SHARED"], x, y, table_of(x), *numbers)
    return y
