"""What a problem promises: counts, limits, sources and variants, read from its folder. Never imports torch or runs a source."""

from __future__ import annotations

import difflib
import hashlib
from importlib.resources import files
from pathlib import Path
from typing import Literal, get_args

import msgspec
from msgspec import UNSET, UnsetType

from ..events.errors import BadInput
from ..events.model import Limits, ProblemDeclared
from .sources import Precision, config_of, strict_twin, with_precision

Pool = Literal["flags", "dot"]
Family = Literal["matmul", "norm", "reduce", "elementwise", "conv", "network"]
CONTRACTS = ("fp32-strict", "tf32-allowed", "bf16-allowed")
WITHOUT_PRODUCTS = ("reduce", "norm", "elementwise")
"""Families of imported problems in which no operator multiplies matrices: TF32 changes nothing there."""
KINDS = ("large", "small", "one_sign", "denormal")
"""What a gate does to inputs of every problem (replay/FORMAT.md 5)."""


class _Closed(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    pass


class _Entry(_Closed, frozen=True):
    """A variant as it stands in problem.toml."""

    pool: Literal["any", "flags", "dot"]
    kind: Literal["flag", "template", "file"]
    file: str | None = None
    precision: Precision | Literal["incumbent"] = "ieee"
    configs: tuple[dict[str, int], ...] = ()


class _Toml(_Closed, frozen=True):
    """problem.toml."""

    name: str
    family: Family
    dtype: Literal["float32", "float16", "bfloat16", "float64", "int64", "int32", "bool"]
    weight: float
    flops: int
    min_bytes: int
    shape: dict[str, int]
    small: dict[str, int]
    limits: dict[str, Limits]
    prescriptions: dict[str, tuple[_Entry, ...]]
    mixed_limits: dict[str, Limits] | UnsetType = UNSET
    kind_limits: dict[str, dict[str, Limits]] | UnsetType = UNSET
    mixed_inputs: tuple[int, ...] = ()


class Variant(_Closed, frozen=True):
    """One way to follow a prescription.

    `flag` sets the parent's precision line to tf32 and has no source; `template` is swept over `configs`; `file` is taken as it is.
    `source` has its precision line set already; where `follows`, to ieee, and it takes the incumbent's.
    """

    prescription: str
    pool: Literal["any", "flags", "dot"]
    kind: Literal["flag", "template", "file"]
    file: str | None
    source: str | None
    configs: tuple[dict[str, int], ...]
    follows: bool = False


class Problem(_Closed, frozen=True):
    """A problem with its sources as text. `flops` and `min_bytes` are algorithmic minima of one call at `shape`.

    `reference` is the absolute path of the reference module, for the worker. `files` are those of an imported problem.
    """

    name: str
    reference: str
    digest: str
    family: Family
    dtype: str
    weight: float
    flops: int
    min_bytes: int
    shape: dict[str, int]
    small: dict[str, int]
    limits: dict[str, Limits]
    start: str
    eager: str
    variants: tuple[Variant, ...]
    files: dict[str, bytes] = {}
    mixed_limits: dict[str, Limits] | UnsetType = UNSET
    kind_limits: dict[str, dict[str, Limits]] | UnsetType = UNSET
    mixed_inputs: tuple[int, ...] = ()

    def variant(self, prescription: str, pool: str) -> Variant | None:
        """The variant that `pool` offers for `prescription`, or None."""
        offered = (v for v in self.variants if v.prescription == prescription and v.pool in ("any", pool))
        return next(offered, None)


def names() -> tuple[str, ...]:
    """The problems at hand, sorted: every folder of this room that holds a problem.toml."""
    return tuple(sorted(path.parent.name for path in _room().glob("*/problem.toml")))


def load(name: str) -> Problem:
    """Read and check the folder of a problem; raises BadInput with the file and the field that cannot be used."""
    return load_folder(_folder(name))


def load_folder(folder: Path) -> Problem:
    """The same of a folder anywhere."""
    toml = _read_toml(folder)
    variants = tuple(
        _variant(folder, prescription, entry)
        for prescription, entries in toml.prescriptions.items()
        for entry in entries
    )
    _check(folder / "problem.toml", toml, variants)
    return Problem(
        **{field: getattr(toml, field) for field in _Toml.__struct_fields__ if field != "prescriptions"},
        digest=digest(folder),
        reference=str(folder / "reference.py"),
        start=_source(folder, "start.py"),
        eager=_source(folder, "eager.py"),
        variants=variants,
    )


def declared(problem: Problem, pool: str) -> ProblemDeclared:
    """The problem as a run registers it, with the prescriptions that `pool` offers; raises BadInput on an unknown pool."""
    if pool not in get_args(Pool):
        raise BadInput(f"unknown pool {pool!r} for problem {problem.name}; expected one of {', '.join(get_args(Pool))}")
    shared = {f: getattr(problem, f) for f in ProblemDeclared.__struct_fields__ if f not in ("prescriptions", "files")}
    offered = {v.prescription for v in problem.variants if v.pool in ("any", pool)}
    files = {path: hashlib.sha256(content).hexdigest() for path, content in problem.files.items()}
    return ProblemDeclared(**shared, prescriptions=tuple(sorted(offered)), files=files or UNSET)


def digest(folder: Path) -> str:
    """SHA-256, lower-case hex, over every file of the folder in the order of its relative path's UTF-8 bytes.

    Preimage: `gpusolver-problem-1`, newline; per file `<N>:<relative path with />`, newline, `<N>:<bytes>`, newline; N counts bytes.
    Left out are names that start with a dot and `__pycache__`: neither is in an installed copy, which must give the same digest.
    """
    total = hashlib.sha256(b"gpusolver-problem-1\n")
    found = {path.relative_to(folder).as_posix().encode(): path for path in folder.rglob("*") if path.is_file()}
    for name in sorted(found):
        if any(part.startswith(b".") or part == b"__pycache__" for part in name.split(b"/")):
            continue
        for field in (name, found[name].read_bytes()):
            total.update(b"%d:%b\n" % (len(field), field))
    return total.hexdigest()


def _room() -> Path:
    return Path(str(files(__package__)))


def _folder(name: str) -> Path:
    known = names()
    if name not in known:
        closest = difflib.get_close_matches(name, known, n=1, cutoff=0)
        hint = f"; did you mean {closest[0]}?" if closest else ""
        raise BadInput(f"unknown problem {name!r}; expected one of {', '.join(known)}{hint}")
    return _room() / name


def _read_toml(folder: Path) -> _Toml:
    path = folder / "problem.toml"
    try:
        return msgspec.toml.decode(path.read_bytes(), type=_Toml)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise BadInput(f"{path}: {error}; see problems/README.md for the fields of a problem") from None


def _source(folder: Path, file: str) -> str:
    path = folder / file
    try:
        text = path.read_bytes().decode()
        strict_twin(text)
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(f"{path}: expected a Python source in UTF-8, found {error}; add the file") from None
    except BadInput as error:
        raise BadInput(f"{path}: {error}") from None
    return text


def _variant(folder: Path, prescription: str, entry: _Entry) -> Variant:
    where = f"{folder / 'problem.toml'}: prescriptions.{prescription} ({entry.pool}, {entry.kind})"
    if (entry.file is None) != (entry.kind == "flag"):
        raise BadInput(f"{where}: `file` belongs to kinds template and file and to no other; found {entry.file!r}")
    if bool(entry.configs) != (entry.kind == "template"):
        raise BadInput(f"{where}: `configs` belongs to kind template, at least one; found {len(entry.configs)}")
    follows = entry.precision == "incumbent"
    if follows and entry.kind == "flag":
        raise BadInput(f"{where}: `precision` belongs to kinds template and file; found {entry.precision!r}")
    stated: Precision = "tf32" if entry.precision == "tf32" else "ieee"
    source = None if entry.file is None else with_precision(_source(folder, entry.file), stated)
    if entry.kind == "template" and source is not None:
        _check_configs(where, source, entry.configs)
    return Variant(
        prescription=prescription,
        pool=entry.pool,
        kind=entry.kind,
        file=entry.file,
        source=source,
        configs=entry.configs,
        follows=follows,
    )


def _check_configs(where: str, template: str, configs: tuple[dict[str, int], ...]) -> None:
    try:
        keys = set(config_of(template))
    except BadInput as error:
        raise BadInput(f"{where}: {error}") from None
    for number, config in enumerate(configs):
        if set(config) != keys:
            raise BadInput(
                f"{where}: configs[{number}] has keys {sorted(config)}, the template's CONFIG has {sorted(keys)}"
            )
        if config in configs[:number]:
            raise BadInput(f"{where}: configs[{number}] repeats an earlier one: {config}; remove it")


def _check(path: Path, toml: _Toml, variants: tuple[Variant, ...]) -> None:
    if toml.name != path.parent.name:
        raise BadInput(f"{path}: name is {toml.name!r}, its folder is {path.parent.name!r}; make them equal")
    kinds = {} if isinstance(toml.kind_limits, UnsetType) else toml.kind_limits
    if strange := set(kinds) - set(KINDS):
        raise BadInput(f"{path}: kind_limits are given for {sorted(strange)}, expected some of {sorted(KINDS)}")
    every = {
        "limits": toml.limits,
        "mixed_limits": toml.mixed_limits,
        **{f"kind_limits.{k}": v for k, v in kinds.items()},
    }
    for name, limits in every.items():
        if limits is not UNSET and set(limits) != set(CONTRACTS):
            raise BadInput(f"{path}: {name} are given for {sorted(limits)}, expected {sorted(CONTRACTS)}")
    if toml.mixed_inputs and (toml.mixed_limits is UNSET or min(toml.mixed_inputs) < 0):
        raise BadInput(f"{path}: mixed_inputs are places from 0 beside mixed_limits, found {list(toml.mixed_inputs)}")
    if toml.shape.keys() != toml.small.keys():
        raise BadInput(
            f"{path}: shape has sizes {sorted(toml.shape)}, small has {sorted(toml.small)}; name the same ones"
        )
    for pool in get_args(Pool):
        offered = [v.prescription for v in variants if v.pool in ("any", pool)]
        twice = sorted({name for name in offered if offered.count(name) > 1})
        if twice:
            raise BadInput(f"{path}: pool {pool} offers {', '.join(twice)} more than once; keep one entry each")
