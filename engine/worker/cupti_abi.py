"""CUPTI 13.0's parameter structs as ctypes. Never loads the library and never calls it.

Source of the layouts: `cupti_range_profiler.h`, `cupti_profiler_host.h` and `cupti_profiler_target.h` of CUDA 13.0.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from ctypes import POINTER, c_char_p, c_double, c_int, c_size_t, c_uint8, c_uint16, c_uint32, c_void_p
from typing import Any, ClassVar

RANGE_PROFILER = 0
AUTO_RANGE = 1
USER_RANGE = 2
KERNEL_REPLAY = 2
USER_REPLAY = 3


class Params(ctypes.Structure):
    """Base of CUPTI's parameter structs; fills `structSize`, which ends with the last field, before any padding."""

    _fields_: ClassVar[Sequence[tuple[str, Any]]] = (("structSize", c_size_t), ("pPriv", c_void_p))  # pyright: ignore[reportIncompatibleVariableOverride]

    def __init__(self, **fields: object) -> None:
        super().__init__(**fields)
        self.structSize = struct_size(type(self))


def struct_size(kind: type[Params]) -> int:
    """Bytes from the start to the end of the last field, as CUPTI_PROFILER_STRUCT_SIZE counts them."""
    last = getattr(kind, kind._fields_[-1][0])
    return int(last.offset + last.size)


_Names = POINTER(c_char_p)
_Image = POINTER(c_uint8)


class Initialize(Params):
    """CUpti_Profiler_Initialize_Params; CUpti_Profiler_DeInitialize_Params is the same."""


class ChipName(Params):
    """CUpti_Device_GetChipName_Params."""

    _fields_ = (("deviceIndex", c_size_t), ("pChipName", c_char_p))


class HostInitialize(Params):
    """CUpti_Profiler_Host_Initialize_Params."""

    _fields_ = (
        ("profilerType", c_int),
        ("pChipName", c_char_p),
        ("pCounterAvailabilityImage", _Image),
        ("pHostObject", c_void_p),
    )


class HostDeinitialize(Params):
    """CUpti_Profiler_Host_Deinitialize_Params."""

    _fields_ = (("pHostObject", c_void_p),)


class AddMetrics(Params):
    """CUpti_Profiler_Host_ConfigAddMetrics_Params."""

    _fields_ = (("pHostObject", c_void_p), ("ppMetricNames", _Names), ("numMetrics", c_size_t))


class ConfigImageSize(Params):
    """CUpti_Profiler_Host_GetConfigImageSize_Params."""

    _fields_ = (("pHostObject", c_void_p), ("configImageSize", c_size_t))


class ConfigImage(Params):
    """CUpti_Profiler_Host_GetConfigImage_Params."""

    _fields_ = (("pHostObject", c_void_p), ("configImageSize", c_size_t), ("pConfigImage", _Image))


class NumOfPasses(Params):
    """CUpti_Profiler_Host_GetNumOfPasses_Params."""

    _fields_ = (("configImageSize", c_size_t), ("pConfigImage", _Image), ("numOfPasses", c_size_t))


class Evaluate(Params):
    """CUpti_Profiler_Host_EvaluateToGpuValues_Params."""

    _fields_ = (
        ("pHostObject", c_void_p),
        ("pCounterDataImage", _Image),
        ("counterDataImageSize", c_size_t),
        ("rangeIndex", c_size_t),
        ("ppMetricNames", _Names),
        ("numMetrics", c_size_t),
        ("pMetricValues", POINTER(c_double)),
    )


class Enable(Params):
    """CUpti_RangeProfiler_Enable_Params; a null `ctx` is the current context."""

    _fields_ = (("ctx", c_void_p), ("pRangeProfilerObject", c_void_p))


class RangeObject(Params):
    """CUpti_RangeProfiler_{Disable,Start,PopRange}_Params."""

    _fields_ = (("pRangeProfilerObject", c_void_p),)


class SetConfig(Params):
    """CUpti_RangeProfiler_SetConfig_Params."""

    _fields_ = (
        ("pRangeProfilerObject", c_void_p),
        ("configSize", c_size_t),
        ("pConfig", _Image),
        ("counterDataImageSize", c_size_t),
        ("pCounterDataImage", _Image),
        ("range", c_int),
        ("replayMode", c_int),
        ("maxRangesPerPass", c_size_t),
        ("numNestingLevels", c_uint16),
        ("minNestingLevel", c_uint16),
        ("passIndex", c_size_t),
        ("targetNestingLevel", c_uint16),
    )


class PushRange(Params):
    """CUpti_RangeProfiler_PushRange_Params."""

    _fields_ = (("pRangeProfilerObject", c_void_p), ("pRangeName", c_char_p))


class Stop(Params):
    """CUpti_RangeProfiler_Stop_Params."""

    _fields_ = (
        ("pRangeProfilerObject", c_void_p),
        ("passIndex", c_size_t),
        ("targetNestingLevel", c_size_t),
        ("isAllPassSubmitted", c_uint8),
    )


class DecodeData(Params):
    """CUpti_RangeProfiler_DecodeData_Params."""

    _fields_ = (("pRangeProfilerObject", c_void_p), ("numOfRangeDropped", c_size_t))


class CounterDataSize(Params):
    """CUpti_RangeProfiler_GetCounterDataSize_Params."""

    _fields_ = (
        ("pRangeProfilerObject", c_void_p),
        ("pMetricNames", _Names),
        ("numMetrics", c_size_t),
        ("maxNumOfRanges", c_size_t),
        ("maxNumRangeTreeNodes", c_uint32),
        ("counterDataSize", c_size_t),
    )


class CounterDataInitialize(Params):
    """CUpti_RangeProfiler_CounterDataImage_Initialize_Params."""

    _fields_ = (("pRangeProfilerObject", c_void_p), ("counterDataSize", c_size_t), ("pCounterData", _Image))


class CounterDataInfo(Params):
    """CUpti_RangeProfiler_GetCounterDataInfo_Params."""

    _fields_ = (("pCounterDataImage", _Image), ("counterDataImageSize", c_size_t), ("numTotalRanges", c_size_t))
