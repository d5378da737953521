"""A made-up Nsight Compute report with the interface of NVIDIA's `ncu_report`; nothing in it was measured."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

RULE = {
    "rule_identifier": "SOLBottleneck",
    "name": "Bottleneck",
    "section_identifier": "SpeedOfLight",
    "rule_message": {"title": "Latency Issue", "message": "made up", "type": SimpleNamespace(name="OPTIMIZATION")},
    "focus_metrics": [{"name": "x", "value": 1.0}],
    "speedup_estimation": {"type": SimpleNamespace(name="GLOBAL"), "speedup": 12.5},
}
QUIET = {
    "rule_identifier": "LaunchConfiguration",
    "name": "Launch",
    "section_identifier": "LaunchStats",
    "rule_message": {},
}


class Metric:
    def __init__(self, content: Any) -> None:
        self._content = content

    def has_value(self) -> bool:
        return self._content is not None

    def value(self) -> Any:
        return self._content


class Action:
    """One kernel: `metrics` by name (None = without a value), and the push/pop ranges around it (None = no NVTX)."""

    def __init__(self, name: str, metrics: dict[str, Any], ranges: tuple[str, ...] | None = ()) -> None:
        facts = {"device__attribute_compute_capability_major": 9, "device__attribute_compute_capability_minor": 0}
        self._name, self._metrics, self._ranges = name, {**facts, "profiler__replayer_passes": 38, **metrics}, ranges

    def name(self) -> str:
        return self._name

    def metric_by_name(self, name: str) -> Metric | None:
        return Metric(self._metrics[name]) if name in self._metrics else None

    def rule_results_as_dicts(self) -> list[dict[str, Any]]:
        return [RULE, QUIET]

    def nvtx_state(self) -> Any:
        if self._ranges is None:
            return None
        return SimpleNamespace(
            domains=lambda: (0,), domain_by_id=lambda key: SimpleNamespace(push_pop_ranges=lambda: self._ranges)
        )


def module(*ranges: tuple[Action, ...]) -> Any:
    """`ncu_report`, whose every report holds these ranges of actions."""
    made = [SimpleNamespace(num_actions=lambda r=r: len(r), action_by_idx=lambda i, r=r: r[i]) for r in ranges]
    context = SimpleNamespace(num_ranges=lambda: len(made), range_by_idx=lambda i: made[i])
    return SimpleNamespace(load_report=lambda path: context)
