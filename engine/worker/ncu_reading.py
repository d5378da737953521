"""Nsight Compute's report files as artifacts: counters, and what its own rules say. Never runs ncu or makes a missing value 0."""

from __future__ import annotations

import contextlib
import importlib
import math
import shutil
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import msgspec

from ...events.errors import BadInput, ToolFailed
from ...profilers.metrics import CHIPS
from ...profilers.ncu_calls import AUXILIARY, aggregate
from ...profilers.ncu_csv import Kernel

_PASSES = "profiler__replayer_passes"
_CAPABILITY = tuple(f"device__attribute_compute_capability_{part}" for part in ("major", "minor"))


class Launch(NamedTuple):
    """One profiled kernel: the push/pop ranges around it, its metrics (None = not there), passes, and ncu's rule results."""

    ranges: frozenset[str]
    kernel: Kernel
    passes: int
    rules: list[dict[str, Any]]


def range_name(number: int) -> str:
    """The NVTX range of a batch's entry."""
    return f"gpusolver:{number}"


def read_report(path: Path, metrics: Sequence[str]) -> dict[str, bytes]:
    """The `counters` and `ncu_rules` artifacts of a report, all its kernels as one call; how its caches were is not known.

    Raises BadInput for a file that is no report or holds no kernel, ToolFailed where `ncu_report` is not installed.
    """
    return artifacts(launches(path, metrics), metrics, "unknown")


def artifacts(
    found: Sequence[Launch], metrics: Sequence[str], cache: str, wall_s: float | None = None
) -> dict[str, bytes]:
    """The `counters` artifact over these kernels and ncu's answers for each of them; `wall_s` is their share of ncu's time."""
    kernels = [launch.kernel for launch in found]
    # The largest and smallest over several kernels is not that of the call: not listed, for nothing was read.
    metrics = [name for name in metrics if len(kernels) == 1 or (".max" not in name and ".min" not in name)]
    counters = {
        "collector": "ncu",
        "passes": max(launch.passes for launch in found),
        "chip": CHIPS.get(kernels[0].capability, ""),
        "cache": cache,
        "metrics": aggregate(kernels, metrics),
        "kernels": [kernel.name for kernel in kernels],
    }
    if wall_s is not None:
        counters["wall_s"] = wall_s
    rules = {"tool": "ncu", "kernels": [{"kernel": launch.kernel.name, "rules": launch.rules} for launch in found]}
    return {"counters": msgspec.json.encode(counters), "ncu_rules": msgspec.json.encode(rules)}


def launches(path: Path, metrics: Sequence[str]) -> list[Launch]:
    """Every kernel of a report in order, with the asked metrics and those that aggregation needs. Errors: read_report."""
    if not path.is_file():
        raise BadInput(f"{path}: expected an Nsight Compute report (.ncu-rep), found no such file. Check the path.")
    try:
        context = reader().load_report(str(path))
        actions = [action for index in range(context.num_ranges()) for action in _actions(context.range_by_idx(index))]
    except ToolFailed:
        raise
    except Exception as error:
        raise BadInput(
            f"{path}: expected an Nsight Compute report, found what ncu_report cannot read ({error}). "
            "A reader must be as new as the ncu that wrote the file."
        ) from error
    if not actions:
        raise BadInput(
            f"{path}: expected an Nsight Compute report with profiled kernels, found none. "
            "Record one with ncu --set full -o FILE, with a reader as new as that ncu."
        )
    asked = tuple(dict.fromkeys((*metrics, *AUXILIARY)))
    return [_launch(action, asked) for action in actions]


def _actions(profiled: Any) -> Iterator[Any]:
    for index in range(profiled.num_actions()):
        yield profiled.action_by_idx(index)


def _launch(action: Any, metrics: Sequence[str]) -> Launch:
    values = {name: _value(action, name) for name in metrics}
    major, minor = (_value(action, name) for name in _CAPABILITY)
    capability = "" if major is None or minor is None else f"{major:.0f}.{minor:.0f}"
    passes = _value(action, _PASSES)
    return Launch(
        ranges=frozenset(_ranges(action)),
        kernel=Kernel(str(action.name()), capability, values),
        passes=1 if passes is None else max(1, round(passes)),
        rules=[_rule(result) for result in action.rule_results_as_dicts()],
    )


def _value(action: Any, name: str) -> float | None:
    """A metric in ncu's base units; None where it was not collected or is no finite number."""
    metric = action.metric_by_name(name)
    value = None if metric is None or not metric.has_value() else metric.value()
    return float(value) if isinstance(value, (int, float)) and math.isfinite(value) else None


def _ranges(action: Any) -> Iterator[str]:
    state: Any = action.nvtx_state()
    if state is None:
        return
    for domain in state.domains():
        yield from state.domain_by_id(domain).push_pop_ranges()


def _rule(result: dict[str, Any]) -> dict[str, Any]:
    message, speedup = result.get("rule_message") or {}, result.get("speedup_estimation") or {}
    estimate = speedup.get("speedup")
    return {
        "id": result.get("rule_identifier"),
        "name": result.get("name"),
        "section": result.get("section_identifier"),
        "type": _word(message.get("type")),
        "title": message.get("title"),
        "message": message.get("message"),
        "speedup_type": _word(speedup.get("type")),
        "speedup": estimate if isinstance(estimate, (int, float)) and math.isfinite(estimate) else None,
    }


def _word(value: Any) -> str | None:
    return None if value is None else str(getattr(value, "name", value))


def reader() -> ModuleType:
    """NVIDIA's `ncu_report` module: the installed package, else the one that ncu brings along."""
    with contextlib.suppress(ImportError):
        return importlib.import_module("ncu_report")
    for folder in _beside(shutil.which("ncu")):
        sys.path.append(str(folder))
        try:
            return importlib.import_module("ncu_report")
        except ImportError:
            sys.path.remove(str(folder))
    raise ToolFailed(
        "ncu_report: expected NVIDIA's report reader, found neither the package ncu-report nor an ncu on PATH with "
        "extras/python. Install ncu-report, as new as the ncu that wrote the report."
    )


def _beside(ncu: str | None) -> Iterator[Path]:
    """Folders of ncu's Python module: above its real path, or in the toolkit's nsight-compute folder beside its wrapper."""
    if ncu is None:
        return
    for parent in Path(ncu).resolve().parents:
        folders = [parent / "extras" / "python", *sorted(parent.glob("nsight-compute*/extras/python"), reverse=True)]
        yield from (folder for folder in folders if folder.is_dir())
    yield from sorted(Path("/opt/nvidia/nsight-compute").glob("*/extras/python"), reverse=True)
