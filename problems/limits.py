"""Error limits of a problem that was imported, from errors that were measured. Never imports torch.

The hand-made problems put each limit between its own precision and the next by what is known of one product. Of a whole module
only measurement tells: rounded operands of its products, all else in float64, give the error that TF32 and bf16 make there.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from ..events.errors import BadInput
from ..events.model import Limits
from .contract import CONTRACTS

LEAST, TIMES_FP32, TIMES_ORDER, TIMES_ROUNDED, TIMES_SHOWN, MOST = 2e-5, 8.0, 16.0, 5.0, 1.5, 0.2
_ROOM_ROUNDED, _ROOM_SHOWN = 2.5, 1.2
"""How many times what was seen limits must leave, or a kind of inputs gets its own."""
ANY = 0.9
"""Where rounding decides the answer the limit is nearly that of the answer 0: only what is no number is refused there."""
APART = (0.8, 0.9)
"""Times the spread: a mean is off by the whole of it, and some element by more."""
Errors = tuple[float, float]
EXACT = Limits(rel_l2=1e-12, max_rms=1e-9)


class Seen(msgspec.Struct, frozen=True, kw_only=True):
    """Errors against float64: of eager fp32, and of operands rounded to TF32 and bf16 (0 where there is no product); `peak` = max / RMS of the answer.

    `tf32_worst` and `bf16_worst` are the largest of those over several draws. `tf32_shown` is the worst of what an honest TF32 kernel may show besides: of
    operands that were cut, and of eager on the device with TF32 on. Between terms of one sign rounding cancels, and these do not: units that
    cut operands, or the running sum, err to one side.
    """

    fp32: tuple[float, float]
    tf32: tuple[float, float]
    bf16: tuple[float, float]
    tf32_worst: tuple[float, float]
    bf16_worst: tuple[float, float]
    tf32_shown: tuple[float, float] = (0.0, 0.0)
    peak: float
    whole: bool = False


def limits(seen: Seen) -> dict[str, Limits]:
    """Limits by contract; BadInput where eager fp32 itself is too far from float64 for any kernel to be judged.

    `fp32-strict`: 8 times what eager fp32 shows, at least 2e-5, and at most half of what TF32 would show, so that it refuses TF32, but
    no less than 4 times eager's own, or 16 times up to 5e-6: so far off is a long sum of positive terms in another order.
    `tf32-allowed`, `bf16-allowed`: 5 times the worst that rounded operands show, of TF32 also 1.5 times what cut ones and the device show,
    never closer than the contract before. Whole numbers must be equal.
    """
    if seen.whole:
        return dict.fromkeys(CONTRACTS, EXACT)
    if TIMES_FP32 * seen.fp32[0] > MOST:
        raise BadInput(
            f"expected a module whose fp32 answer is near its float64 answer, found a relative error of {seen.fp32[0]:.3g}: "
            "no kernel could be told right from wrong there. Scale its inputs or weights so that it computes in fp32."
        )
    strict = max(LEAST, TIMES_FP32 * seen.fp32[0])
    if seen.tf32[0] > 0:
        another_order = max(4 * seen.fp32[0], min(TIMES_ORDER * seen.fp32[0], LEAST / 4))
        strict = max(min(strict, seen.tf32[0] / 2), another_order)
    tf32 = max(strict, min(MOST, max(TIMES_ROUNDED * seen.tf32_worst[0], TIMES_SHOWN * seen.tf32_shown[0])))
    bf16 = max(tf32, min(MOST, TIMES_ROUNDED * seen.bf16_worst[0]))
    return {
        "fp32-strict": _both(strict, seen.fp32, seen.peak),
        "tf32-allowed": _both(tf32, seen.tf32_worst, seen.peak),
        "bf16-allowed": _both(bf16, seen.bf16_worst, seen.peak),
    }


def apart(found: Mapping[str, Limits], spread: float) -> dict[str, Limits]:
    """Those limits, but for `fp32-strict` no wider than the mean of an answer is from it: `spread` is its standard deviation over its RMS.

    Long sums of one sign hardly differ from each other, and TF32 may be off by as much as they differ: within its limits every element
    could be the mean. So close together, an element that is the mean is to show.
    """
    strict = found["fp32-strict"]
    if not spread:  # a single number is its own mean
        return dict(found)
    most = Limits(rel_l2=APART[0] * spread, max_rms=APART[1] * spread)
    return {
        name: strict if name == "fp32-strict" else _wider(strict, _closer(one, most)) for name, one in found.items()
    }


def of_kind(plain: Mapping[str, Limits], seen: Seen) -> dict[str, Limits]:
    """Limits on inputs of another kind, `seen` on them; empty where those of plain ones leave room for what is seen.

    A sum that small inputs leave to its constant terms is all product where they are large, and a softmax of large numbers picks one of
    two that are nearly equal as rounding has it. `fp32-strict` stays as it is: what eager fp32 does there is known at a gate.
    """
    strict, tf32, bf16 = (plain[contract] for contract in CONTRACTS)
    if seen.whole or (
        _room(tf32, seen.tf32_worst, _ROOM_ROUNDED)
        and _room(tf32, seen.tf32_shown, _ROOM_SHOWN)
        and _room(bf16, seen.bf16_worst, _ROOM_ROUNDED)
    ):
        return {}
    wide = max(tf32.rel_l2, TIMES_ROUNDED * seen.tf32_worst[0], TIMES_SHOWN * seen.tf32_shown[0])
    wider = max(wide, bf16.rel_l2, TIMES_ROUNDED * seen.bf16_worst[0])
    found = (
        _both(min(ANY, wide), max(seen.tf32_worst, seen.tf32_shown), seen.peak),
        _both(min(ANY, wider), seen.bf16_worst, seen.peak),
    )
    kept = (_wider(tf32, found[0]), _wider(bf16, found[1]))
    return dict(zip(CONTRACTS, (strict, *kept), strict=True))


def _room(limits: Limits, seen: Errors, times: float) -> bool:
    return times * seen[0] <= limits.rel_l2 and times * seen[1] <= limits.max_rms


def _wider(one: Limits, other: Limits) -> Limits:
    return Limits(rel_l2=max(one.rel_l2, other.rel_l2), max_rms=max(one.max_rms, other.max_rms))


def _closer(one: Limits, other: Limits) -> Limits:
    return Limits(rel_l2=min(one.rel_l2, other.rel_l2), max_rms=min(one.max_rms, other.max_rms))


def stated(given: Mapping[str, object]) -> dict[str, Limits]:
    """Limits that a user's file states: `LIMITS = {contract: (rel_l2, max_rms)}` for all three contracts."""
    found: dict[str, Limits] = {}
    for contract in CONTRACTS:
        pair = given.get(contract)
        fits = isinstance(pair, (tuple, list)) and len(pair) == 2 and all(isinstance(n, (int, float)) for n in pair)
        if not fits or not isinstance(pair, (tuple, list)) or not 0 < pair[0] < 1 or pair[1] <= 0:
            raise BadInput(
                f"LIMITS: expected {contract!r}: (rel_l2, max_rms) with 0 < rel_l2 < 1 and max_rms > 0, found {pair!r}"
            )
        found[contract] = Limits(rel_l2=float(pair[0]), max_rms=float(pair[1]))
    return found


def _both(rel_l2: float, seen: tuple[float, float], peak: float) -> Limits:
    """Largest errors go with the largest values (`peak`), or as they were seen to, and are six times the RMS of normal errors."""
    ratio = seen[1] / seen[0] if seen[0] > 0 else 0.0
    return Limits(rel_l2=rel_l2, max_rms=rel_l2 * max(6.0, 2 * peak, 2 * ratio))
