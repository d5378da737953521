"""The rule table from its TOML form: a packaged table by name, or a user's own. Never decides which rule fires."""

from __future__ import annotations

import math
import tomllib
from importlib.resources import files
from pathlib import Path
from typing import Any

import msgspec

from ..events.errors import BadInput
from ..events.model import Gain, Rule
from ..problems.contract import CONTRACTS

# TOML has no null, and most rules need no entry for these.
_DEFAULTS: dict[str, Any] = {"stop": False, "prescription": None, "guards": (), "contracts": ()}
_GAIN_FIELDS = {
    "constant": set[str](),
    "signal": {"signal"},
    "inverse_signal": {"signal"},
    "peak_ratio": {"over", "under"},
    "amdahl": {"signal"},
}
TABLES = ("seed", "full")
_LARGEST = 1_000_000


def rules(table: str) -> tuple[Rule, ...]:
    """The table `seed` (nine rules), `full` (those and more), or that of a TOML file, in its order; BadInput on anything else."""
    if table in TABLES:
        where = f"{table}_rules.toml"
        return parse_rules(
            files("gpusolver.engine").joinpath(where).read_text(encoding="utf-8"), where=where, origin=table
        )
    if not table.endswith(".toml"):
        raise BadInput(
            f"unknown rule table {table!r}; expected one of {', '.join(TABLES)}, or a file that ends in .toml"
        )
    text = read_text(Path(table), f"rule table {table}", "a TOML file in UTF-8")
    return parse_rules(text, where=table, origin=Path(table).name)


def read_text(path: Path, what: str, expected: str) -> str:
    """A person's text file; BadInput, with `what` and `expected`, where it cannot be read, is no UTF-8 or is past 1 MB."""
    try:
        with path.open("rb") as file:
            raw = file.read(_LARGEST + 1)  # a device or a pipe has no size to ask for
        if len(raw) > _LARGEST:
            raise BadInput(f"{what}: expected {expected} of at most {_LARGEST} bytes, found more. Check the path.")
        return raw.decode("utf-8")
    except (OSError, ValueError) as error:  # a path with a NUL, bytes that are no UTF-8
        raise BadInput(f"{what}: expected {expected}, found {error}") from None


def seed_rules() -> tuple[Rule, ...]:
    """The nine rules of engine/seed_rules.toml, in its order."""
    return rules("seed")


def parse_rules(text: str, where: str, origin: str) -> tuple[Rule, ...]:
    """Rules from TOML text with one `[[rule]]` table each; `position` is the order in the file, from 1.

    An entry `seed = "<name>"` alone is that seed rule, at this position and with `seed` for its origin.
    BadInput, naming `where`, the entry and the field, for whatever could never be meant: unknown or missing fields, no
    clause, a stop with a prescription, a number that is not finite, an unknown contract, the same name twice.
    """
    try:
        document = tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # TOML's own, an integer of too many digits, tables nested too deep
        raise BadInput(f"{where}: not TOML: {error}; correct the file") from error
    entries = document.get("rule")
    if set(document) != {"rule"} or not isinstance(entries, list) or not entries:
        raise BadInput(f"{where}: expected [[rule]] tables and nothing else, found {sorted(document) or 'nothing'}")
    rules = tuple(_rule(entry, position, where, origin) for position, entry in enumerate(entries, start=1))
    names = [rule.name for rule in rules]
    for name in names:
        if names.count(name) > 1:
            raise BadInput(
                f"{where}: rule {name!r} stands there {names.count(name)} times; keep one version of each rule"
            )
    return rules


def _rule(entry: Any, position: int, where: str, origin: str) -> Rule:
    if not isinstance(entry, dict):
        raise BadInput(f"{where}: rule {position}: expected a [[rule]] table, found {entry!r}")
    if "seed" in entry:
        return _seed_rule(entry, position, where)
    at = f"{where}: rule {position} ({entry.get('name', 'without a name')})"
    for field in ("position", "origin"):
        if field in entry:
            raise BadInput(f"{at}: {field} follows from the file and is not stated in it; take the line out")
    try:
        rule = msgspec.convert(_DEFAULTS | entry | {"position": position, "origin": origin}, Rule)
    except msgspec.ValidationError as error:
        raise BadInput(f"{at}: {error}; see the other entries for the shape of a rule") from error
    rule = msgspec.structs.replace(rule, rationale=" ".join(rule.rationale.split()))
    fault = _fault(rule)
    if fault is not None:
        raise BadInput(f"{at}: {fault}")
    return rule


def _seed_rule(entry: dict[str, Any], position: int, where: str) -> Rule:
    seeds = {rule.name: rule for rule in seed_rules()}
    if set(entry) != {"seed"} or str(entry["seed"]) not in seeds:
        raise BadInput(
            f"{where}: rule {position}: expected `seed` alone and one of {', '.join(seeds)}, found {entry!r}; "
            "a changed rule takes a name of its own"
        )
    return msgspec.structs.replace(seeds[entry["seed"]], position=position)


def _fault(rule: Rule) -> str | None:
    """Why a well-formed entry still makes no sense, or None."""
    if not rule.name or not rule.name.isprintable() or rule.version < 1 or rule.tier < 0:
        return (
            f"expected a printable name, version >= 1 and tier >= 0, found {rule.name!r}, {rule.version}, {rule.tier}"
        )
    if not rule.clauses:
        return "expected at least one clause; a rule without clauses would fire on every kernel"
    if rule.stop == (rule.prescription is not None):
        return f"expected either stop = true or a prescription, found stop {rule.stop} and {rule.prescription!r}"
    unknown = sorted(set(rule.contracts) - set(CONTRACTS))
    if unknown:
        return f"contracts: expected some of {sorted(CONTRACTS)}, found {unknown}"
    numbers = (
        [clause.threshold for clause in rule.clauses] + [guard.at_least for guard in rule.guards] + [rule.gain.cap]
    )
    if not all(math.isfinite(number) for number in numbers):
        return f"expected finite thresholds and caps, found {numbers}"
    return _gain_fault(rule.gain)


def _gain_fault(gain: Gain) -> str | None:
    stated = {field for field in ("signal", "over", "under") if getattr(gain, field) is not None}
    if gain.share is not msgspec.UNSET and gain.form != "amdahl":
        return f"gain: share belongs to form 'amdahl' alone, found it with {gain.form!r}; take it out"
    if stated != _GAIN_FIELDS[gain.form]:
        return f"gain: form {gain.form!r} needs exactly {sorted(_GAIN_FIELDS[gain.form])} beside cap, found {sorted(stated)}"
    return None
