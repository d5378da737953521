"""Loading problem sources as modules from files of their own, for the child processes of these tests."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

from gpusolver.problems.contract import Problem
from gpusolver.problems.sources import with_config


def load_file(path: Path) -> ModuleType:
    """Import a file under its stem; Triton reads the text of a kernel from the file, so a string will not do."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def load_text(folder: Path, label: str, text: str) -> ModuleType:
    """Write a source into `folder` and import it."""
    path = folder / f"{label}.py"
    path.write_text(text)
    return load_file(path)


def candidates(problem: Problem, every_config: bool) -> dict[str, str]:
    """Label -> text of the start, the eager baseline and each variant; templates in one or in all configurations."""
    texts = {"start": problem.start, "eager": problem.eager}
    for variant in problem.variants:
        if variant.source is None:
            continue
        label = f"{variant.prescription}_{variant.pool}"
        for number, config in enumerate(variant.configs if every_config else variant.configs[:1]):
            texts[f"{label}_{number}"] = with_config(variant.source, config)
        if not variant.configs:
            texts[label] = variant.source
    return texts
