"""Loads a candidate's source as a module of its own, from a file named by its digest. Never executes unhashed text."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import pathlib
import sys
import tempfile
from collections.abc import Callable
from types import ModuleType
from typing import Any

from . import switches

# Named by digest and compiled without bytecode caches, so that the code that runs is the code that was hashed.
_FOLDER = pathlib.Path(os.environ.get("GPUSOLVER_WORKER_FOLDER") or tempfile.mkdtemp(prefix="gpusolver-sources-"))
_LOADED: dict[str, ModuleType] = {}


class LoadError(Exception):
    """The source could not be imported, or has no callable `run`."""


def told(error: BaseException) -> str:
    """Kind and text of an exception; the kind alone where asking for the text raises as well."""
    try:
        return f"{type(error).__name__}: {error}"
    except BaseException:
        return type(error).__name__


def load_path(path: pathlib.Path, name: str) -> ModuleType:
    """Import one file under a module name of its own."""
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise LoadError(f"{path}: not importable as Python")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def load_run(source: str) -> Callable[..., Any]:
    """The `run` function of a candidate source; raises LoadError with the reason."""
    digest = hashlib.sha256(source.encode()).hexdigest()
    if digest not in _LOADED:
        path = _FOLDER / f"candidate_{digest}.py"
        path.write_text(source)
        try:
            with switches.strict():  # what a source sets while it is imported reaches no one after it
                _LOADED[digest] = load_path(path, f"candidate_{digest[:24]}")
        except BaseException as error:
            raise LoadError(told(error)) from error
    run = getattr(_LOADED[digest], "run", None)
    if not callable(run):
        names = sorted(name for name, value in vars(_LOADED[digest]).items() if callable(value))
        raise LoadError(f"no function 'run' in the source; callables found: {', '.join(names) or 'none'}")
    return run


def load_reference(path: str) -> ModuleType:
    """The problem's reference module, loaded once per path."""
    if path not in _LOADED:
        _LOADED[path] = load_path(pathlib.Path(path), "reference_" + hashlib.sha256(path.encode()).hexdigest()[:16])
    return _LOADED[path]
