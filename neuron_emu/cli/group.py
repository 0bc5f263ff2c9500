"""The click group and the one place where errors become sentences and exit codes."""

from __future__ import annotations

from importlib import import_module

import click

from neuron_emu import __version__
from neuron_emu.cli import COMMANDS
from neuron_emu.errors import NeuronEmuError

__all__ = ["run_command"]


class _LazyGroup(click.Group):
    """A group whose commands are imported on use."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        command = import_module(f"neuron_emu.cli.{cmd_name}").command
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.group(cls=_LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="neuron-emu", message="%(prog)s %(version)s")
def group() -> None:
    """Emulate the NeuronCore Vector (DVE) and Scalar (ACT) engines at instruction level.

    \b
    Example:
      neuron-emu run programs/exp.toml
    """


def run_command(words: list[str]) -> int:
    """Run a command line; return its exit status and print what went wrong."""
    try:
        # Not group(words): that would turn a closed pipe into exit status 1.
        with group.make_context("neuron-emu", list(words)) as context:
            status = group.invoke(context)
    except click.exceptions.Exit as error:
        return error.exit_code
    except click.ClickException as error:
        error.show()
        return 2
    except (click.Abort, KeyboardInterrupt):
        click.echo("neuron-emu: interrupted", err=True)
        return 130
    except BrokenPipeError:
        raise
    except OSError as error:
        name = "" if error.filename is None else f"{error.filename}: "
        click.echo(f"neuron-emu: {name[:200]}{error.strerror or error}", err=True)
        return 2
    except NeuronEmuError as error:
        click.echo(f"neuron-emu: {error}", err=True)
        return 2
    except MemoryError:
        click.echo("neuron-emu: not enough memory for this input", err=True)
        return 2
    return status if isinstance(status, int) else 0
