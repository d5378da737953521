"""Which words a command line states itself, as against defaults, and which of them --resume leaves no room for. Reads no file."""

from __future__ import annotations

from collections.abc import Iterator

import click
from click.core import ParameterSource

from ..events.errors import BadInput

BESIDE_RESUME = ("resume", "ledger", "device", "recording", "against", "also")
"""Where to go on, on what, and (`gpusolver ablate`) what to compare afterwards; all else is registered."""


def stated(context: click.Context) -> Iterator[click.Parameter]:
    """The options and arguments that the command line names, in the command's order."""
    for parameter in context.command.params:
        name = parameter.name or ""
        # An argument of any number of words counts as named even where there is none.
        if context.get_parameter_source(name) is ParameterSource.COMMANDLINE and context.params.get(name) != ():
            yield parameter


def refuse_beside_resume(context: click.Context) -> None:
    """BadInput for words that a registered run cannot obey any more: one that ignored them would mislead."""
    found = [_shown(each, context) for each in stated(context) if each.name not in BESIDE_RESUME]
    if found:
        expected = [each.opts[0] for each in context.command.params if each.name in BESIDE_RESUME[1:]]
        raise BadInput(
            f"--resume: expected nothing beside it but {', '.join(expected)}; found {', '.join(found)}. What an unfinished run plays "
            "is what its ledger registered: leave them out, or start a run of its own in another --ledger, without --resume."
        )


def _shown(parameter: click.Parameter, context: click.Context) -> str:
    if isinstance(parameter, click.Argument):
        return " ".join(map(str, context.params[parameter.name or ""]))
    return parameter.opts[0]
