"""Runs the CUDA C++ of a planted source on the CPU: g++ compiles it, threads of a block take turns or meet at barriers. Judges nothing.

Inline PTX is replaced by what it means; whatever is not known here fails to compile.
"""

from __future__ import annotations

import ctypes
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

PRELUDE = r"""
#include <atomic>
#include <barrier>
#include <cmath>
#include <cstring>
#include <thread>
#include <vector>
struct float4 { float x, y, z, w; };
struct Place { unsigned x, y; };
static float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }
static int min(int a, int b) { return a < b ? a : b; }
static float __fadd_rn(float a, float b) { return a + b; }
static float __fmul_rn(float a, float b) { return a * b; }
static unsigned __float_as_uint(float v) { unsigned u; std::memcpy(&u, &v, 4); return u; }
static float __uint_as_float(unsigned u) { float v; std::memcpy(&v, &u, 4); return v; }
static void atomicAdd(float *at, float v) { std::atomic_ref<float>(*at).fetch_add(v); }
static thread_local Place threadIdx, blockIdx;
static std::barrier<> *meeting;
static void __syncthreads() { meeting->arrive_and_wait(); }
alignas(16) static char dynamic[1 << 18];
#define __global__
#define __device__
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __shared__ static
"""

PTX = (
    (r'asm volatile\("mov\.u32 %0, %globaltimer_lo;" : "=r"\((\w+)\)\);', r"\1 = 123456789u;"),
    (r'asm volatile\("tanh\.approx\.f32 %0, %0;" : "\+f"\((.+?)\)\);', r"\1 = tanhf(\1);"),
    (r'asm volatile\("ld\.global\.cg\.f32 %0, \[%1\];" : "=f"\((\w+)\) : "l"\((\w+)\)\);', r"\1 = *\2;"),
    (
        (
            r'asm volatile\(\s*"\{ \.reg \.pred p; setp\.ne\.s32 p, %1, 0;"\s*'
            r'(?:"(?:@p fma\.rn\.f32 %0, %2, %0, %3; ?){2}\}?"\s*){4}'
            r': "\+f"\((.+?)\) : "r"\((\w+)\), "f"\((\w+)\), "f"\((\w+)\)\);'
        ),
        r"for (int e = 0; e < 8; ++e) if (\2) \1 = fmaf(\3, \1, \4);",
    ),
    (r"extern __shared__ float scratch\[\];", "float *scratch = reinterpret_cast<float *>(dynamic);"),
)

# A block's threads run one after the other where nobody waits; else each is a thread of its own, kept over the blocks.
ENTER = r"""
static const bool WAITS = @WAITS@;
extern "C" void enter(int gx, int gy, int bx, int by, @PARAMETERS@) {
    std::barrier<> all(bx * by);
    meeting = &all;
    auto thread = [&](int t) {
        for (int block = 0; block < gx * gy; ++block) {
            threadIdx = {unsigned(t % bx), unsigned(t / bx)};
            blockIdx = {unsigned(block % gx), unsigned(block / gx)};
            @NAME@(@ARGUMENTS@);
            if (WAITS) all.arrive_and_wait();
        }
    };
    std::vector<std::thread> threads;
    for (int t = 0; t < bx * by; ++t)
        if (WAITS) threads.emplace_back(thread, t); else thread(t);
    for (auto &each : threads) each.join();
}
"""


def translated(code: str, name: str, waits: bool) -> str:
    """The kernel as C++ with a function `enter(grid x and y, block x and y, the kernel's own parameters)`."""
    for pattern, replacement in PTX:
        code = re.sub(pattern, replacement, code)
    found = re.search(rf"\b{name}\(([^)]*)\) \{{", code)
    assert found is not None
    parameters = " ".join(found[1].split())
    arguments = ", ".join(re.split(r"[ *]", parameter)[-1] for parameter in parameters.split(", "))
    enter = ENTER.replace("@WAITS@", "true" if waits else "false").replace("@NAME@", name)
    return PRELUDE + code + enter.replace("@PARAMETERS@", parameters).replace("@ARGUMENTS@", arguments)


def launcher(folder: Path, config: dict[str, int], waits: bool) -> Callable[..., None]:
    """What stands in for the planted launcher's `launch`: the same arguments, on tensors of the CPU."""

    def launch(code: str, name: str, grid: Any, block: Any, shared: int, *arguments: Any) -> None:
        source, library = folder / f"{name}.cpp", folder / f"{name}.so"
        source.write_text(translated(code, name, waits))
        macros = [f"-D{macro}={value}" for macro, value in config.items()]
        options = [
            "-std=c++20",
            "-O1",
            "-ffp-contract=off",
            "-fno-strict-aliasing",
            "-w",
            "-shared",
            "-fPIC",
            "-pthread",
        ]
        subprocess.run(["g++", *options, *macros, "-o", str(library), str(source)], check=True)
        kinds = {torch.Tensor: ctypes.c_void_p, float: ctypes.c_float, int: ctypes.c_int}
        values = [kinds[type(a)](a.data_ptr() if isinstance(a, torch.Tensor) else a) for a in arguments]
        ctypes.CDLL(str(library)).enter(*grid[:2], *block[:2], *values)

    return launch
