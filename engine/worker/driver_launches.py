"""Notes the kernels that a call launches by cuda.bindings' driver, in order: what a graph would show, where none can be captured. Launches nothing."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any


@contextlib.contextmanager
def driver_launches(note: Callable[[dict[str, Any]], None]) -> Iterator[None]:
    """Call `note` with each launch by `driver.cuLaunchKernel` or `driver.cuLaunchKernelEx` while the block runs.

    A launch by a name that was imported from the driver's module beforehand is not seen here; a captured graph shows it.
    """
    try:
        from cuda.bindings import driver  # pyright: ignore[reportAttributeAccessIssue]
    except ImportError:
        yield
        return
    plain, extended = driver.cuLaunchKernel, driver.cuLaunchKernelEx

    def launch(function: Any, *args: Any, **kwargs: Any) -> Any:
        result = plain(function, *args, **kwargs)
        if len(args) >= 7:
            note(_kernel(driver, function, list(args[0:3]), list(args[3:6]), args[6]))
        else:
            note(_kernel(driver, function, None, None, None))
        return result

    def launch_extended(config: Any, function: Any, *args: Any, **kwargs: Any) -> Any:
        result = extended(config, function, *args, **kwargs)
        grid = [config.gridDimX, config.gridDimY, config.gridDimZ]
        block = [config.blockDimX, config.blockDimY, config.blockDimZ]
        note(_kernel(driver, function, grid, block, config.sharedMemBytes))
        return result

    driver.cuLaunchKernel, driver.cuLaunchKernelEx = launch, launch_extended
    try:
        yield
    finally:
        driver.cuLaunchKernel, driver.cuLaunchKernelEx = plain, extended


def _kernel(driver: Any, function: Any, grid: list[int] | None, block: list[int] | None, shared: Any) -> dict[str, Any]:
    status, name = driver.cuFuncGetName(function)
    text = name.decode(errors="replace") if isinstance(name, bytes) else str(name)
    return {
        "name": text if int(status) == 0 else "unnamed",
        "language": "library",
        "code": None,
        "ttir": None,
        "grid": None if grid is None else [int(size) for size in grid],
        "block": None if block is None else [int(size) for size in block],
        "shared": None if shared is None else int(shared),
        "scalars": [],
        "registers": None,
        "local_bytes": None,
    }
