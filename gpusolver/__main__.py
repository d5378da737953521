"""The command line's root: names the commands and imports each only when it is called."""

from __future__ import annotations

import importlib

import click

from . import __version__

_COMMANDS = {
    "run": ("gpusolver.engine.cli", "run_command"),
    "ablate": ("gpusolver.engine.cli_ablate", "ablate_command"),
    "explain": ("gpusolver.engine.cli_measure", "explain_command"),
    "qualify": ("gpusolver.engine.cli_measure", "qualify_command"),
    "sanitize": ("gpusolver.engine.cli_sanitize", "sanitize_command"),
    "reproduce": ("gpusolver.engine.cli_reproduce", "reproduce_command"),
    "export": ("gpusolver.engine.cli_export", "export_command"),
    "new": ("gpusolver.engine.cli_new", "new_command"),
    "report": ("gpusolver.engine.cli", "report_command"),
    "replay": ("gpusolver.replay.cli", "replay_command"),
    "withhold": ("gpusolver.engine.cli_withhold", "withhold_command"),
    "restore": ("gpusolver.engine.cli_withhold", "restore_command"),
    "keygen": ("gpusolver.engine.cli_seal", "keygen_command"),
    "seal": ("gpusolver.engine.cli_seal", "seal_command"),
    "prove": ("gpusolver.engine.cli_seal", "prove_command"),
    "check-proof": ("gpusolver.replay.seal_cli", "check_proof_command"),
    "diff": ("gpusolver.replay.cli_diff", "diff_command"),
    "objective": ("gpusolver.engine.cli_objective", "objective_command"),
    "transfer": ("gpusolver.replay.cli_transfer", "transfer_command"),
    "doctor": ("gpusolver.engine.cli_doctor", "doctor_command"),
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
@click.pass_context
def main(context: click.Context) -> None:
    """Faster GPU kernels by measured, replayable rules."""
    context.obj = _engine_projections


def _engine_projections(path: str, upto: int | None) -> object:
    """What the engine makes of a ledger, as data: the verifier compares it and imports nothing of the engine."""
    return importlib.import_module("gpusolver.engine.audit").projected(path, upto)


if __name__ == "__main__":
    main(prog_name="gpusolver")
