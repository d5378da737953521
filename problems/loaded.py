"""A user's source as a module, and what it raises as words. Runs the source, in the importer's child process alone."""

from __future__ import annotations

import contextlib
import pathlib
import sys
import tempfile
import traceback
from collections.abc import Iterator
from importlib.util import module_from_spec, spec_from_file_location
from types import ModuleType

from ..events.errors import BadInput

_FOLDER = tempfile.TemporaryDirectory(prefix="gpusolver-probe-")


def loaded(text: str, name: str) -> ModuleType:
    """A source as a module of its own name. BadInput with the exception where it does not import."""
    path = pathlib.Path(_FOLDER.name, f"{name}.py")
    path.write_text(text)
    spec = spec_from_file_location(f"probed_{name}", path)
    assert spec is not None and spec.loader is not None
    module = module_from_spec(spec)
    sys.modules[module.__name__] = module
    with told("importing it"):
        spec.loader.exec_module(module)
    return module


@contextlib.contextmanager
def told(what: str) -> Iterator[None]:
    """An exception of the user's code as BadInput: what was being done, and where in the file it happened."""
    try:
        yield
    except BadInput:
        raise
    except BaseException as error:
        frames = [f for f in traceback.extract_tb(error.__traceback__) if f.filename.startswith(_FOLDER.name)]
        where = f" (line {frames[-1].lineno}: {frames[-1].line})" if frames else ""
        raise BadInput(f"{what}: {type(error).__name__}: {str(error)[:600]}{where}") from None
