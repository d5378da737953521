"""The `catalogue` generator: a problem's own variants by prescription, tile sizes by a registered sweep. No model, no taste."""

from __future__ import annotations

from ..events.errors import BadInput
from ..events.model import RuleFired, TilesSwept
from ..problems.contract import Variant
from ..problems.sources import precision_of, with_config, with_precision
from ..profilers import artifacts as shapes
from ..profilers.sweeps import choose
from .executor import Executor, Question
from .generators.base import Made
from .measuring import Interrupted
from .records import Draft


def candidate_for(
    draft: Draft, executor: Executor, question: Question, fired: RuleFired, incumbent: str, margin: float
) -> Made:
    """The candidate of a firing; a template's configuration is chosen by measurement and recorded in the draft.

    `margin`: configurations within it of the fastest are equals, of which the first registered is taken.
    Raises Interrupted where the sweep could not be measured, or no configuration of it runs.
    """
    assert fired.prescription is not None  # only stop rules have none, and they prescribe nothing
    variant = question.problem.variant(fired.prescription, fired.cell.pool)
    assert variant is not None  # the matcher blocks a rule whose prescription the problem cannot serve
    if variant.kind == "flag" or variant.source is None:
        return Made(generator="flag", variant=fired.prescription, source=with_precision(incumbent, "tf32"))
    name = f"{fired.prescription}:{variant.file}"
    text = text_of(variant, variant.source, incumbent)
    if variant.kind == "file":
        return Made(generator="file", variant=name, source=text)
    source = _swept(draft, executor, question, fired, variant, text, margin)
    return Made(generator="template", variant=name, source=source)


def text_of(variant: Variant, source: str, incumbent: str) -> str:
    """The variant's source, at the incumbent's precision where it follows that: what TF32 has won is not given up on the way."""
    if not variant.follows:
        return source
    try:
        return with_precision(source, precision_of(incumbent))
    except BadInput:
        return source  # a kernel of another generator, which states none


def _swept(
    draft: Draft,
    executor: Executor,
    question: Question,
    fired: RuleFired,
    variant: Variant,
    template: str,
    margin: float,
) -> str:
    sources = tuple(with_config(template, config) for config in variant.configs)
    seen = executor.sweep(question, template, sources)
    name = draft.keep_role(seen, "sweep")
    chosen = None if name is None else choose(shapes.decode(shapes.Sweep, draft.artifacts[name][0]), margin)
    if seen.status != "ok" or name is None or chosen is None:
        raise Interrupted(f"sweep of {variant.file}: {seen.status}: {seen.text[:500] or 'no configuration runs'}")
    event = TilesSwept(
        cell=fired.cell,
        round=fired.round,
        firing=fired.firing,
        template=draft.keep_source(template),
        samples=name,
        configs=variant.configs,
        chosen=chosen,
        origin_seq=seen.origin_seq,
    )
    draft.add(event)
    return sources[chosen]
