"""Launches by cuda.bindings' driver are listed by name where no graph can be captured. The driver is a stand-in: nothing is launched."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

pytestmark = pytest.mark.torch_cpu


@pytest.fixture
def driver(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The real module with calls that need a GPU replaced."""
    from cuda.bindings import driver  # pyright: ignore[reportAttributeAccessIssue]

    monkeypatch.setattr(driver, "cuLaunchKernel", lambda *args: (0,))
    monkeypatch.setattr(driver, "cuLaunchKernelEx", lambda *args: (0,))
    monkeypatch.setattr(driver, "cuFuncGetName", lambda function: (0, function.encode()))
    return driver


def test_driver_launches_are_listed_in_order_and_the_list_is_said_to_be_incomplete(driver: Any) -> None:
    from gpusolver.engine.worker.device import CpuDevice
    from gpusolver.engine.worker.launches import record_launches
    from gpusolver.profilers import artifacts as shapes

    before = driver.cuLaunchKernel, driver.cuLaunchKernelEx
    config = SimpleNamespace(
        gridDimX=9, gridDimY=1, gridDimZ=1, blockDimX=32, blockDimY=2, blockDimZ=1, sharedMemBytes=64
    )

    def call() -> None:
        driver.cuLaunchKernel("rows", 512, 1, 1, 256, 1, 1, 0, None, ((), ()), 0)
        driver.cuLaunchKernelEx(config, "product", ((), ()), 0)

    content, blobs = record_launches(CpuDevice(), call)
    listed = shapes.decode(shapes.Launches, content)
    assert [(k.name, k.language, k.grid, k.block, k.shared) for k in listed.kernels] == [
        ("rows", "library", (512, 1, 1), (256, 1, 1), 0),
        ("product", "library", (9, 1, 1), (32, 2, 1), 64),
    ]
    assert not listed.complete and blobs == () and all(k.code is None for k in listed.kernels)
    assert (driver.cuLaunchKernel, driver.cuLaunchKernelEx) == before


def test_the_functions_come_back_after_an_error(driver: Any) -> None:
    from gpusolver.engine.worker.driver_launches import driver_launches

    before = driver.cuLaunchKernel
    with pytest.raises(RuntimeError), driver_launches(lambda kernel: None):
        raise RuntimeError
    assert driver.cuLaunchKernel is before


def test_a_name_that_cannot_be_had_is_said(driver: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from gpusolver.engine.worker.driver_launches import driver_launches

    monkeypatch.setattr(driver, "cuFuncGetName", lambda function: (1, None))
    seen: list[dict[str, Any]] = []
    with driver_launches(seen.append):
        driver.cuLaunchKernel("rows", 1, 1, 1, 32, 1, 1, 0, None, ((), ()), 0)
    assert seen[0]["name"] == "unnamed" and msgspec.json.encode(seen)
