"""The device's measured ceilings as an event: what every later fraction is a fraction of. Measures through an executor only."""

from __future__ import annotations

from ..events.errors import BadInput
from ..events.model import DeviceCalibrated
from ..profilers import artifacts as shapes
from ..profilers.calibration import copy_gbps
from ..profilers.chips import chip_for
from .executor import Executor
from .records import Draft


def calibrated(executor: Executor, run: str) -> Draft:
    """The device's ceilings as an event with its artifact; BadInput where they cannot be measured."""
    seen, facts, draft = executor.calibrate(), executor.facts(), Draft()
    name = draft.keep_role(seen, "calibration")
    if name is None:
        raise BadInput(
            f"calibration: {seen.status}: {seen.text[:500]}. Free the device and run the same command again."
        )
    draft.add(
        DeviceCalibrated(
            run=run,
            device=facts["device"],
            chip=chip_for(facts["device"], facts["compute_capability"]),
            copy_gbps=copy_gbps(shapes.decode(shapes.Calibration, draft.artifacts[name][0])),
            calibration=name,
            origin_seq=seen.origin_seq,
        )
    )
    return draft
