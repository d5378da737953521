"""Lists the kernels of one call in launch order: Triton's and the driver's from their launchers, all of them from a captured CUDA graph."""

from __future__ import annotations

import contextlib
import hashlib
import math
import re
from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import torch

from .device import AnyDevice
from .driver_launches import driver_launches

Blobs = tuple[tuple[str, bytes], ...]


def record_launches(device: AnyDevice, call: Callable[[], Any]) -> tuple[bytes, Blobs]:
    """The `launches` artifact of a call, and the machine code and Triton IR that it refers to."""
    with _triton_launches() as seen, driver_launches(lambda kernel: seen.append((kernel, {}))):
        call()
        device.synchronize()
    blobs = {digest: blob for _, found in seen for digest, blob in found.items()}
    launched = [kernel for kernel, _ in seen]
    nodes = _graph_kernels(device, call)
    kernels = launched if nodes is None else _merge(nodes, [k for k in launched if k["language"] == "triton"])
    content = {"complete": nodes is not None, "kernels": kernels}
    return msgspec.json.encode(content), tuple(blobs.values())


@contextlib.contextmanager
def _triton_launches() -> Iterator[list[tuple[dict[str, Any], dict[str, tuple[str, bytes]]]]]:
    """Collect every launch that goes through Triton's JIT while the block runs."""
    seen: list[tuple[dict[str, Any], dict[str, tuple[str, bytes]]]] = []
    try:
        from triton.runtime.jit import JITFunction
    except ImportError:
        yield seen
        return
    original = JITFunction.run

    def run(self: Any, *args: Any, grid: Any, warmup: bool, **kwargs: Any) -> Any:
        compiled = original(self, *args, grid=grid, warmup=warmup, **kwargs)
        if not warmup and hasattr(compiled, "asm"):
            seen.append(_triton_kernel(self, compiled, args, grid, kwargs))
        return compiled

    JITFunction.run = run
    try:
        yield seen
    finally:
        JITFunction.run = original


def _triton_kernel(
    function: Any, compiled: Any, args: tuple[Any, ...], grid: Any, kwargs: dict[str, Any]
) -> tuple[dict[str, Any], dict[str, tuple[str, bytes]]]:
    bound = dict(zip(function.arg_names, args, strict=False)) | {
        k: v for k, v in kwargs.items() if k in function.arg_names
    }
    size: Any = grid(bound | kwargs) if callable(grid) else grid
    blobs = {
        hashlib.sha256(blob).hexdigest(): (media, blob)
        for media, blob in (
            ("application/x-cubin", compiled.asm["cubin"]),
            ("text/x-ttir", _without_places(str(compiled.asm["ttir"])).encode()),
        )
    }
    code, ttir = blobs
    constants = {name for name, p in zip(function.arg_names, function.params, strict=True) if p.is_constexpr}
    passed = [bound[k] for k in function.arg_names if k not in constants and isinstance(bound.get(k), (int, float))]
    # JSON has no infinity: as null, inf and -inf would look like the same argument.
    scalars = [v if math.isfinite(v) else str(v) for v in passed]
    kernel = {
        "name": compiled.metadata.name,
        "language": "triton",
        "code": code,
        "ttir": ttir,
        "grid": [*(int(n) for n in size), 1, 1][:3],
        "block": [32 * compiled.metadata.num_warps, 1, 1],
        "shared": int(compiled.metadata.shared),
        "static_shared": 0,  # Triton asks for all of its shared memory at launch
        "scalars": scalars,
        "registers": getattr(compiled, "n_regs", None),
        # ptxas counts spilled 32-bit registers; the graph's local_bytes replaces it where there is a graph.
        "local_bytes": None,
    }
    return kernel, blobs


def _without_places(ir: str) -> str:
    """Triton IR without source locations: they hold file paths, which are no part of the kernel."""
    lines = (line for line in ir.splitlines() if not line.startswith("#loc"))
    return "\n".join(re.sub(r" loc\(.*\)$", "", line) for line in lines) + "\n"


def _merge(nodes: list[dict[str, Any]], triton_kernels: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The graph's kernels, those of Triton replaced by the richer record of their launch, in order."""
    waiting = list(triton_kernels)
    merged = []
    for node in nodes:
        if waiting and node["name"] == waiting[0]["name"]:
            kernel = waiting.pop(0)
            merged.append({**kernel, "registers": node["registers"], "local_bytes": node["local_bytes"]})
        else:
            merged.append(node)
    return merged


def _graph_kernels(device: AnyDevice, call: Callable[[], Any]) -> list[dict[str, Any]] | None:
    """Kernel nodes of the call captured as a CUDA graph, or None where it cannot be captured."""
    if device.name != "cuda":
        return None
    try:
        graph = torch.cuda.CUDAGraph(keep_graph=True)
        inputs_ready = torch.cuda.Stream()
        inputs_ready.wait_stream(torch.cuda.current_stream())
        with torch.cuda.graph(graph, stream=inputs_ready):
            call()
        return _nodes(graph.raw_cuda_graph())
    except Exception:
        device.synchronize()
        return None


def _nodes(raw: int) -> list[dict[str, Any]]:
    from cuda.bindings import driver  # pyright: ignore[reportAttributeAccessIssue]

    graph = driver.CUgraph(raw)
    _, _, count = _checked(driver.cuGraphGetNodes(graph, 0))
    _, nodes, _ = _checked(driver.cuGraphGetNodes(graph, count))
    kernels = []
    for node in nodes:
        kind = _checked(driver.cuGraphNodeGetType(node))[1]
        if kind == driver.CUgraphNodeType.CU_GRAPH_NODE_TYPE_KERNEL:
            kernels.append(_node_kernel(driver, _checked(driver.cuGraphKernelNodeGetParams(node))[1]))
    return kernels


def _node_kernel(driver: Any, p: Any) -> dict[str, Any]:
    function = p.func
    if int(function) == 0:
        function = _checked(driver.cuKernelGetFunction(p.kern))[1]
    name = _checked(driver.cuFuncGetName(function))[1]
    attribute = driver.CUfunction_attribute
    registers, local, static = (
        _checked(driver.cuFuncGetAttribute(asked, function))[1]
        for asked in (
            attribute.CU_FUNC_ATTRIBUTE_NUM_REGS,
            attribute.CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES,
            attribute.CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES,
        )
    )
    return {
        "name": name.decode() if isinstance(name, bytes) else str(name),
        "language": "library",
        "code": None,
        "ttir": None,
        "grid": [p.gridDimX, p.gridDimY, p.gridDimZ],
        "block": [p.blockDimX, p.blockDimY, p.blockDimZ],
        "shared": p.sharedMemBytes,
        "static_shared": static,
        "scalars": [],
        "registers": registers,
        "local_bytes": local,
    }


def _checked(result: tuple[Any, ...]) -> tuple[Any, ...]:
    if int(result[0]) != 0:
        raise RuntimeError(f"CUDA driver call failed: {result[0]!r}")
    return result
