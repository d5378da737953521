"""The words that `gpusolver run` and `gpusolver ablate` share, and the request that they make. Plays nothing and writes nothing."""

from __future__ import annotations

import pathlib
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import click
import msgspec
from msgspec import UNSET, UnsetType
from msgspec.structs import replace

from ..events.errors import BadInput
from ..problems.contract import load, names
from ..problems.imported import KERNELBENCH
from ..projections.claims import ENDPOINTS
from .cli_objective import objective_of
from .devices import DEVICES, all_problems
from .generators.registry import DEFAULT
from .generators.registry import NAMES as GENERATORS
from .importing import imported as imported_from
from .registration import STATISTICS, RunRequest, check_words
from .stated import refuse_beside_resume

OWN_FILES = ("module", "catalogue")
EVERY = "all"
NONE = "none"
Command = TypeVar("Command", bound=Callable[..., None])


class Words(msgspec.Struct, frozen=True, kw_only=True):
    """What a command line says of a run, as click reads it; `problems` and `blocks` are None where nothing was said."""

    targets: tuple[str, ...]
    problems: str | None
    arms: str
    rounds: int
    repetitions: str
    contracts: str
    pool: str
    table: str
    propose: bool
    share: bool
    comparisons: str
    generators: str
    offers: str
    device: str
    recording: pathlib.Path | None
    ledger: pathlib.Path
    kernelbench: pathlib.Path | None
    resume: bool
    blocks: int | None
    seed: int
    objective: str
    thermal: pathlib.Path | None
    latency_bound: float | None

    @property
    def named(self) -> bool:
        """Whether anything to play is named."""
        return bool(self.targets) or self.problems is not None


def words_said(words: dict[str, Any]) -> Words:
    """What the present command line says; BadInput for words beside --resume that the ledger has decided."""
    asked = Words(**words)
    if asked.resume:
        refuse_beside_resume(click.get_current_context())
    return asked


def run_options(arms: str, problems: str, comparisons: str, offers: str) -> Callable[[Command], Command]:
    """TARGETS and every option of a run; `arms`, `comparisons` and `offers` by default, `problems` is what the help says of none."""

    def decorated(command: Command) -> Command:
        for option in reversed(_options(arms, problems, comparisons, offers)):
            command = option(command)
        return command

    return decorated


def _options(arms: str, problems: str, comparisons: str, offers: str) -> tuple[Callable[[Command], Command], ...]:
    path: Any = click.Path(path_type=pathlib.Path)
    folder: Any = click.Path(path_type=pathlib.Path, exists=True, file_okay=False)
    # fmt: off
    return (
        click.argument("targets", nargs=-1),
        click.option("--problems", show_default=problems, help="Packaged ones by comma, or 'all'; of a recording, all that it holds."),
        click.option("--arms", default=arms, show_default=True, help="By comma, of off, on, off+tabu, on+tabu, random."),
        click.option("--rounds", default=12, show_default=True, help="Rounds at most, per cell."),
        click.option("--repetitions", default="", help="A number for all, or problem=number by comma."),
        click.option("--contract", "contracts", default="tf32-allowed", show_default=True, help="Precision contracts by comma."),
        click.option("--pool", type=click.Choice(["flags", "dot"]), default="flags", show_default=True),
        click.option("--rules", "table", default="seed", show_default=True, help="seed, full, a TOML file, or from:LEDGER."),
        click.option("--propose", is_flag=True, help="With --rules from: also the rules that the ledger suggests."),
        click.option("--share-measurements", "share", is_flag=True, help="An arm may take what another arm measured."),
        click.option(
            "--comparisons", default=comparisons, show_default=True,
            help=f"Head to head after the rounds: all, none, or by comma: {', '.join(p.comparison for p in ENDPOINTS)}, versus:eager_fp32, ...",
        ),
        click.option(
            "--generators", default="", show_default="catalogue; module,catalogue where files of yours are among the problems",
            help=f"The chain, by comma: {', '.join(GENERATORS)}.",
        ),
        click.option("--offers", type=click.Choice(["once", "always"]), default=offers, show_default=True,
                     help="Whether a generator may offer again what did not better a kernel: once saves GPU time, and is memory for every arm."),
        click.option("--device", type=click.Choice(DEVICES), default="auto", show_default=True),
        click.option("--recording", type=path, help="Ledger that --device recorded answers from."),
        click.option("--ledger", type=path, default=pathlib.Path("ledger.db"), show_default=True),
        click.option("--kernelbench", type=folder, help="A KernelBench clone."),
        click.option("--resume", is_flag=True,
                     help="Go on with the ledger's unfinished run, as registered: no words beside it but --ledger, --device, --recording."),
        click.option("--blocks", type=int, show_default=str(STATISTICS.blocks), help="ABBA blocks of a pair at most."),
        click.option("--objective", type=click.Choice(["latency", "energy", "thermal"]), default="latency", show_default=True,
                     help="What the loop decides by: time, energy of a call, or rise of temperature at one call rate."),
        click.option("--thermal", type=path, help="TOML: calls_per_s, load, bound, idle_w, stages."),
        click.option("--latency-bound", type=click.FloatRange(1, 1000), show_default="2; thermal: its file's",
                     help="Times the fastest incumbent's time that a frugal kernel may take."),
        click.option("--seed", default=0, show_default=True, help="Registered seed; inputs and the random arm follow from it."),
    )
    # fmt: on


def request_of(asked: Words, otherwise: tuple[str, ...] = ()) -> RunRequest:
    """What is asked for, `otherwise` being the problems where none is named; BadInput before any file is opened for words that a
    run cannot have.
    """
    request = RunRequest(
        arms=words(asked.arms),
        contracts=words(asked.contracts),
        pool=asked.pool,
        rounds=asked.rounds,
        rules=asked.table,
        propose=asked.propose,
        share=asked.share,
        comparisons=comparisons_of(asked.comparisons),
        blocks=UNSET if asked.blocks is None else asked.blocks,
        seed=asked.seed,
        objective=objective_of(asked.objective, asked.thermal, asked.latency_bound),
        generators=words(asked.generators) or DEFAULT,
        once=asked.offers == "once",
    )
    check_words(request)
    repetitions_of(asked.repetitions, ())
    chosen = tuple(_packaged(asked)) if asked.named else otherwise
    files = tuple(word for word in asked.targets if is_file(word))
    imported = imported_from(files, asked.kernelbench, asked.device)
    if both := sorted(set(chosen) & set(imported)):
        raise BadInput(
            f"{', '.join(both)}: expected problems of different names, found a packaged one and a file of yours; rename the file"
        )
    if imported and not asked.generators:
        request = replace(request, generators=OWN_FILES)
    problems = (*chosen, *imported)
    repetitions = repetitions_of(asked.repetitions, problems)
    return replace(request, problems=problems, imported=imported, repetitions=repetitions)


def is_file(word: str) -> bool:
    """Whether a word among the TARGETS means a file to import, and not a packaged problem."""
    if word.startswith(KERNELBENCH) or word.endswith(".py") or "/" in word:
        return True
    return word != EVERY and word not in names() and pathlib.Path(word).is_file()


def _packaged(asked: Words) -> Iterable[str]:
    listed = () if asked.problems is None else words(asked.problems)
    for word in (*listed, *(word for word in asked.targets if not is_file(word))):
        if word == EVERY:
            yield from all_problems(asked.device, asked.recording)
        else:
            yield _known(word, asked)


def _known(word: str, asked: Words) -> str:
    """The word; BadInput where no packaged problem has this name."""
    try:
        load(word)
    except BadInput as error:
        if word not in asked.targets:
            raise
        raise BadInput(
            f"{word}: expected a file (my_kernel.py, kernelbench:level1/23) or a packaged problem: {error}"
        ) from None
    return word


def words(text: str) -> tuple[str, ...]:
    """The words between commas."""
    return tuple(word.strip() for word in text.split(",") if word.strip())


def comparisons_of(text: str) -> tuple[str, ...] | UnsetType:
    """`all` that are due (UNSET), `none`, or those between commas; BadInput for nothing at all."""
    named = words(text)
    if not named:
        raise BadInput("--comparisons: expected all, none, or names by comma; found nothing")
    return UNSET if named == (EVERY,) else () if named == (NONE,) else named


def repetitions_of(text: str, problems: tuple[str, ...]) -> dict[str, int]:
    """`3` for all problems, or `kb_matmul_scalar=3,matmul=2`."""
    if not text:
        return {}
    try:
        if "=" not in text:
            return dict.fromkeys(problems, int(text))
        return {name: int(number) for name, _, number in (word.partition("=") for word in words(text))}
    except ValueError:
        raise BadInput(f"--repetitions: expected a number or problem=number by comma, found {text!r}") from None
