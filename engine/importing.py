"""The problems of the files that a command line names. Says what was imported and what was left out; measures nothing."""

from __future__ import annotations

import contextlib
import pathlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from queue import SimpleQueue

import click

from ..events.errors import BadInput, ToolFailed
from ..problems.contract import Problem
from ..problems.imported import HIDDEN, find, import_file
from ..problems.probing import CPU, Budget, Prober, on_card
from .devices import card_memory, measures

Answer = Problem | BadInput | ToolFailed
_ABREAST = 3
"""Files asked at a time: most of the time a context is being made. Two of the largest still fit a card's memory."""


def imported(targets: tuple[str, ...], clone: pathlib.Path | None, device: str) -> dict[str, Problem]:
    """The problems of the files that are named, each probed where it will be measured.

    BadInput for a file that cannot be one, ToolFailed where its process ended, where a word names it alone; out of a whole level it is
    left out and said.
    """
    named = tuple(dict.fromkeys(path for word in targets for path in find(word, clone)))
    if not named:
        return {}
    if not measures(device, None):
        raise BadInput(
            f"{targets[0]}: a file of yours is measured, never answered from a recording, and no GPU was found. --device cpu tries "
            "the machinery without one: its times measure no GPU."
        )
    where, budget = ("cpu", CPU) if device == "cpu" else ("cuda", on_card(card_memory()))
    alone = {path for word in targets if len(files := find(word, clone)) == 1 for path in files}
    found: dict[str, Problem] = {}
    for path, problem in _asked(named, where, budget):
        if not isinstance(problem, Problem):
            if path in alone:
                raise problem
            click.echo(f"left out {problem}", err=True)
            continue
        if problem.name in found:
            raise BadInput(f"{path}: expected files of different names, found two of the name {problem.name}")
        found[problem.name] = problem
        click.echo(f"imported {problem.name}{_changed(problem)}")
    if not found:
        raise BadInput(f"{' '.join(targets)}: expected a file that can be imported, found none")
    return found


def _asked(paths: tuple[pathlib.Path, ...], where: str, budget: Budget) -> Iterator[tuple[pathlib.Path, Answer]]:
    """Each file's problem or what is wrong with it, some at a time; those that failed beside others are asked again alone, at the end."""
    abreast = min(_ABREAST, len(paths))
    with contextlib.ExitStack() as stack:
        free = SimpleQueue[Prober]()
        for _ in range(abreast):
            free.put(stack.enter_context(Prober(where)))
        pool = stack.enter_context(ThreadPoolExecutor(abreast))

        def ask(path: pathlib.Path) -> Answer:
            prober = free.get()
            try:
                return import_file(path, prober, budget)
            except (BadInput, ToolFailed) as error:  # one file's fault, or its process's end, is not the next one's
                return error
            finally:
                free.put(prober)

        failed: list[pathlib.Path] = []
        for path, answer in zip(paths, pool.map(ask, paths), strict=True):
            if isinstance(answer, Problem):
                yield path, answer
            else:
                failed.append(path)
        yield from ((path, ask(path)) for path in failed)


def _changed(problem: Problem) -> str:
    note = problem.files["problem.toml"].decode().splitlines()
    changed = [line.removeprefix("# Changed: ") for line in note if line.startswith("# Changed: ")]
    hidden = [f"not told by its gate: {line.removeprefix(HIDDEN)}" for line in note if line.startswith(HIDDEN)]
    said = "; ".join((*changed, *hidden))
    return f" ({said})" if said else ""
