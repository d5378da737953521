"""CUPTI's host side: which metrics a chip knows, their passes, configuration and values. Never touches a GPU."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Sequence
from contextlib import ExitStack
from types import TracebackType
from typing import Any, Self

from . import cupti_abi as abi
from .cupti_library import CountersUnavailable, Cupti, load

CHIPS = ("TU104", "GA100", "GA102", "AD104", "AD102", "GH100", "GB100")


def metric_names(metrics: Sequence[str]) -> Any:
    """The names as a C array of C strings."""
    return (ctypes.c_char_p * len(metrics))(*(name.encode() for name in metrics))


class Host:
    """One configuration for one chip: metrics in, image, passes and later values out. A context, or close()."""

    def __init__(self, chip: str, cupti: Cupti | None = None) -> None:
        """Raises CountersUnavailable: `unsupported` where this CUPTI does not know the chip."""
        self._cupti = cupti or load()
        params = abi.HostInitialize(profilerType=abi.RANGE_PROFILER, pChipName=chip.encode())
        self._cupti.call("cuptiProfilerHostInitialize", params)
        self._object = params.pHostObject

    def add(self, metrics: Sequence[str]) -> bool:
        """Schedule the metrics; False where one is unknown, after which the object is spoiled and must be closed."""
        params = abi.AddMetrics(pHostObject=self._object, ppMetricNames=metric_names(metrics), numMetrics=len(metrics))
        return self._cupti.attempt("cuptiProfilerHostConfigAddMetrics", params) == 0

    def config_image(self) -> Any:
        """The configuration as a C byte array."""
        size = abi.ConfigImageSize(pHostObject=self._object)
        self._cupti.call("cuptiProfilerHostGetConfigImageSize", size)
        image = (ctypes.c_uint8 * size.configImageSize)()
        params = abi.ConfigImage(pHostObject=self._object, configImageSize=len(image), pConfigImage=image)
        self._cupti.call("cuptiProfilerHostGetConfigImage", params)
        return image

    def passes(self, image: Any) -> int:
        """How often the work must be run to fill the configuration's counters."""
        params = abi.NumOfPasses(configImageSize=len(image), pConfigImage=image)
        self._cupti.call("cuptiProfilerHostGetNumOfPasses", params)
        return int(params.numOfPasses)

    def evaluate(self, counter_data: Any, metrics: Sequence[str], index: int = 0) -> dict[str, float | None]:
        """Metrics of range `index` in CUPTI's base units (ns, bytes, percent); None for what is no finite number."""
        values = (ctypes.c_double * len(metrics))()
        params = abi.Evaluate(
            pHostObject=self._object,
            pCounterDataImage=counter_data,
            counterDataImageSize=len(counter_data),
            rangeIndex=index,
            ppMetricNames=metric_names(metrics),
            numMetrics=len(metrics),
            pMetricValues=values,
        )
        self._cupti.call("cuptiProfilerHostEvaluateToGpuValues", params)
        return {name: value if math.isfinite(value) else None for name, value in zip(metrics, values, strict=True)}

    def close(self) -> None:
        """Free the object."""
        self._cupti.call("cuptiProfilerHostDeinitialize", abi.HostDeinitialize(pHostObject=self._object))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()


def supported(chip: str, metrics: Sequence[str], cupti: Cupti | None = None) -> list[str]:
    """Those of the metrics that the chip knows, in their order. Raises CountersUnavailable for an unknown chip."""
    if _knows(chip, metrics, cupti):
        return list(metrics)
    return [name for name in metrics if _knows(chip, [name], cupti)]


def _knows(chip: str, metrics: Sequence[str], cupti: Cupti | None) -> bool:
    with Host(chip, cupti) as host:
        return host.add(metrics)


def passes(chip: str, metrics: Sequence[str], cupti: Cupti | None = None) -> int:
    """Replays that the metrics need together on the chip. Raises CountersUnavailable where the chip lacks one."""
    with ExitStack() as stack:
        host = stack.enter_context(Host(chip, cupti))
        if not host.add(metrics):
            lacking = sorted(set(metrics) - set(supported(chip, metrics, cupti)))
            raise CountersUnavailable(
                f"{chip} does not know {', '.join(lacking)}: ask supported() first", "unsupported"
            )
        return host.passes(host.config_image())
