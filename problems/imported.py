"""Problems that are made from a file that the user has: a KernelBench clone's, or their own. Runs nothing itself; probing.py has a process do it.

An imported problem is a folder like the others, in a temporary place. Its files are kept as artifacts of the ledger, so that whoever has
the ledger has the problem, and a run goes on where the user's file is no more.
"""

from __future__ import annotations

import ast
import atexit
import hashlib
import json
import pathlib
import re
import shutil
import tempfile
from collections.abc import Callable, Mapping
from functools import cache

import msgspec
from msgspec import UnsetType

from ..events.errors import BadInput, ToolFailed
from ..events.model import ProblemDeclared
from .contract import WITHOUT_PRODUCTS, Problem, load_folder
from .probing import Answer, Budget, Form, Prober

KERNELBENCH = "kernelbench:"
HIDDEN = "# Not told: "
_MODULE_NAMES = ("Model", "get_inputs", "get_init_inputs")
_FUNCTION_NAMES = ("inputs", "reference", "run")
_OURS = ("run", "operation", "inputs", "reference", "PRECISION", "CONFIG", "OUTPUT_DTYPE")


def find(word: str, clone: pathlib.Path | None) -> tuple[pathlib.Path, ...]:
    """The files that `kernelbench:level1/23`, `kernelbench:level1/first24`, `kernelbench:level1` or `my_kernel.py` means. BadInput says what there is."""
    if not word.startswith(KERNELBENCH):
        path = pathlib.Path(word)
        if not path.is_file():
            raise BadInput(
                f"{word}: expected a Python file, found none. gpusolver new {path.stem} writes one to start from."
            )
        return (path,)
    if clone is None:
        raise BadInput(
            f"{word}: expected --kernelbench DIR, the folder of your KernelBench clone; found no such option"
        )
    level, _, number = word.removeprefix(KERNELBENCH).partition("/")
    folder = next((f for f in (clone / "KernelBench" / level, clone / level) if f.is_dir()), None)
    if folder is None or not re.fullmatch(r"level\d", level):
        raise BadInput(
            f"{word}: expected a folder KernelBench/{level} in {clone}, found none; write kernelbench:level1/23"
        )
    files = {int(p.name.split("_")[0]): p for p in folder.glob("*_*.py") if p.name.split("_")[0].isdigit()}
    if not number:
        return tuple(files[n] for n in sorted(files))
    if first := re.fullmatch(r"first(\d+)", number):
        return tuple(sorted(files.values(), key=_order)[: int(first[1])])
    if not number.isdigit() or int(number) not in files:
        raise BadInput(f"{word}: expected one of {min(files, default=0)} to {max(files, default=0)}, found {number!r}")
    return (files[int(number)],)


def _order(path: pathlib.Path) -> str:
    """A choice that nobody makes: SHA-256 of the file's path within the clone."""
    return hashlib.sha256(f"KernelBench/{path.parent.name}/{path.name}".encode()).hexdigest()


def name_of(path: pathlib.Path) -> str:
    """The problem's name: the file's, with its level where it has one. Letters, digits, dots, dashes and underscores."""
    level = path.parent.name
    stem = f"kernelbench.{level}.{path.stem}" if re.fullmatch(r"level\d", level) else path.stem
    return re.sub(r"[^A-Za-z0-9._-]+", "_", stem).strip("_.")


def import_file(path: pathlib.Path, prober: Prober, budget: Budget) -> Problem:
    """The problem of one file. BadInput names the file and what is wrong with it; ToolFailed, that its process ended."""
    try:
        text = path.read_text(encoding="utf-8")
        tree = ast.parse(text)
    except (OSError, UnicodeDecodeError, SyntaxError, ValueError) as error:
        raise BadInput(f"{path}: expected a Python file in UTF-8, found {error}") from None
    named = _named(tree)
    form = _form(path, named)
    if form == "module" and (clash := sorted(named & set(_OURS))):
        raise BadInput(f"{path}: gpusolver puts {', '.join(clash)} into the file; rename what has these names there")
    try:
        answer = prober.probe(text, form, budget)
    except (BadInput, ToolFailed) as error:
        raise type(error)(f"{path}: {error}") from None
    return materialised(name_of(path), _files(path, text, answer))


def materialised(name: str, files: Mapping[str, bytes]) -> Problem:
    """The problem whose files these are, written where the worker finds its reference."""
    folder = _scratch() / hashlib.sha256(msgspec.json.encode(sorted(files.items()))).hexdigest()[:16] / name
    if not folder.is_dir():
        folder.mkdir(parents=True)
        for relative, content in files.items():
            target = folder / relative
            if not target.resolve().is_relative_to(folder.resolve()):
                raise BadInput(f"problem {name}: expected files within its folder, found {relative!r}")
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content)
    return msgspec.structs.replace(load_folder(folder), files=dict(files))


def restored(declared: ProblemDeclared, artifact: Callable[[str], bytes]) -> Problem:
    """The problem that a ledger holds. BadInput where its files do not give the digest that was declared."""
    files = {} if isinstance(declared.files, UnsetType) else declared.files
    problem = materialised(declared.name, {path: artifact(name) for path, name in files.items()})
    if problem.digest != declared.digest:
        raise BadInput(f"problem {declared.name}: expected files of digest {declared.digest}, found {problem.digest}")
    return problem


def _named(tree: ast.Module) -> set[str]:
    found: set[str] = set()
    for node in tree.body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef, ast.AsyncFunctionDef)):
            found.add(node.name)
        elif isinstance(node, (ast.Assign, ast.AnnAssign)):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            found |= {each.id for target in targets for each in ast.walk(target) if isinstance(each, ast.Name)}
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            found |= {(alias.asname or alias.name).partition(".")[0] for alias in node.names}
    return found


def _form(path: pathlib.Path, named: set[str]) -> Form:
    if set(_FUNCTION_NAMES) <= named:
        return "functions"
    if set(_MODULE_NAMES) <= named:
        return "module"
    raise BadInput(
        f"{path}: expected the names {', '.join(_FUNCTION_NAMES)} (and LIMITS, if you like), or {', '.join(_MODULE_NAMES)}, "
        f"at the top level; found {', '.join(sorted(named)) or 'none'}. gpusolver new NAME writes a file to start from."
    )


def _files(path: pathlib.Path, text: str, answer: Answer) -> dict[str, bytes]:
    name = name_of(path)
    toml = _toml(name, answer, hashlib.sha256(text.encode()).hexdigest())
    sources = {relative: source.encode() for relative, source in answer.files.items()}
    return {**sources, "original.py": text.encode(), "problem.toml": toml.encode()}


def _toml(name: str, answer: Answer, digest: str) -> str:
    sizes = {f"output_{index}": size for index, size in enumerate(answer.output)} or {"output": 1}
    rows = [f"# Made from original.py (sha256 {digest})."]
    rows += [f"# Changed: {note}" for note in answer.notes]
    rows += (
        [f"{HIDDEN}terms of one sign, or some that cancel, hide a lower precision than the contract's"]
        if answer.hidden
        else []
    )
    seen = answer.seen
    rows += [
        f"# Errors seen (relative L2, largest over RMS): fp32 {seen.fp32[0]:.3g}, {seen.fp32[1]:.3g}",
        f"# operands rounded to TF32 {seen.tf32[0]:.3g}, {seen.tf32[1]:.3g}; to bf16 {seen.bf16[0]:.3g}, {seen.bf16[1]:.3g}.",
        f"name = {json.dumps(name)}",
        f"family = {json.dumps(answer.family)}",
        f"dtype = {json.dumps(answer.dtype)}",
        "weight = 1.0",
        f"flops = {answer.flops}",
        f"min_bytes = {answer.min_bytes}",
    ]
    if answer.mixed_limits:
        rows += [f"mixed_inputs = {list(answer.mixed_inputs)}"]
    for table in ("shape", "small"):
        rows += ["", f"[{table}]", *(f"{key} = {size}" for key, size in sizes.items())]
    tables = {"limits": answer.limits, "mixed_limits": answer.mixed_limits}
    tables |= {f"kind_limits.{each}": stated for each, stated in answer.kind_limits.items()}
    for table, stated in tables.items():
        for contract, limits in stated.items():
            rows += ["", f"[{table}.{contract}]", f"rel_l2 = {limits.rel_l2!r}", f"max_rms = {limits.max_rms!r}"]
    # What generators can do to it besides is theirs to say.
    multiplies = answer.family not in WITHOUT_PRODUCTS
    rows += (
        ["", "[[prescriptions.enable_tf32]]", 'pool = "flags"', 'kind = "flag"']
        if multiplies
        else ["", "[prescriptions]"]
    )
    return "\n".join(rows) + "\n"


@cache
def _scratch() -> pathlib.Path:
    folder = pathlib.Path(tempfile.mkdtemp(prefix="gpusolver-problems-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder
