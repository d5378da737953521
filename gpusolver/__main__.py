"""The command line's root: names the commands and imports each only when it is called."""

from __future__ import annotations

import importlib

import click

from . import __version__

_COMMANDS = {
    "run": ("gpusolver.engine.cli", "run_command"),
    "explain": ("gpusolver.engine.cli_measure", "explain_command"),
    "qualify": ("gpusolver.engine.cli_measure", "qualify_command"),
    "report": ("gpusolver.engine.cli", "report_command"),
    "replay": ("gpusolver.replay.cli", "replay_command"),
    "diff": ("gpusolver.replay.cli", "diff_command"),
}


class _Lazy(click.Group):
    """Loads a command's module when the command is asked for, so that an auditor never imports the engine."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return None
        module, attribute = _COMMANDS[cmd_name]
        command: click.Command = getattr(importlib.import_module(module), attribute)
        return command


@click.group(cls=_Lazy)
@click.version_option(version=__version__, prog_name="gpusolver")
def main() -> None:
    """Faster GPU kernels by measured, replayable rules."""


if __name__ == "__main__":
    main(prog_name="gpusolver")
