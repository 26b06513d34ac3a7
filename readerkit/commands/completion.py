"""``readerkit completion``: names completed by the shell, set up by one command."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import click
from click.shell_completion import get_completion_class

from readerkit.app.folders import data_folder
from readerkit.errors import ReaderkitError, WrongUseError
from readerkit.terminal.group import NamingGroup

SHELLS = ("bash", "zsh", "fish")
VARIABLE = "_READERKIT_COMPLETE"
MARK = "# completes the names of readerkit"
# compdef is there once a shell's own completion is set up; many set up none.
_ZSH_FIRST = "(( $+functions[compdef] )) || { autoload -Uz compinit && compinit; }\n"


def shell_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add ``--shell``; without it the one that ``SHELL`` names."""
    return click.option(
        "--shell", type=click.Choice(SHELLS), help="By default the one you use."
    )(command)


@click.group(cls=NamingGroup, short_help="Complete names in your shell.")
def completion() -> None:
    """Complete commands, options and names with Tab: bash, zsh or fish.

    Names are ids of notes, upstreams, concepts, topics, minis, faults, reading paths,
    quizzes, labs, models, GPUs and clusters.

    \b
    Example:
        readerkit completion install
        readerkit completion show --shell zsh
        readerkit completion remove
    """


@completion.command(short_help="Set it up for new shells.")
@shell_option
def install(shell: str | None) -> None:
    """Write what the shell reads, and have it read that; twice is as good as once.

    \b
    Example:
        readerkit completion install
    """
    from readerkit.upstreams.store import write_atomically

    shell = shell or _own_shell()
    script, start = _places(shell)
    write_atomically(script, _script(shell).encode())
    click.echo(f"wrote {script}")
    if start is not None:
        before = _without_ours(_read(start))
        gap = "" if before.endswith("\n") or not before else "\n"
        _rewrite(start, f'{before}{gap}[ -r "{script}" ] && . "{script}"  {MARK}\n')
        click.echo(f"{start} reads it")
    click.echo(f"It works in every new {shell}.")


@completion.command(short_help="Take it away again.")
@click.option("--shell", type=click.Choice(SHELLS), help="By default all of them.")
def remove(shell: str | None) -> None:
    """Take away what install wrote, for whichever shell, and nothing else.

    \b
    Example:
        readerkit completion remove
    """
    shells = (shell,) if shell else SHELLS
    if not any([_remove(*_places(each)) for each in shells]):
        click.echo(f"nothing is set up for {' or '.join(shells)}")


def _remove(script: Path, start: Path | None) -> bool:
    """Take away one shell's; return whether there was something."""
    is_there = script.exists()
    if is_there:
        script.unlink()
        with suppress(OSError):  # somebody else's are in it
            script.parent.rmdir()
        click.echo(f"removed {script}")
    if start is None or MARK not in (text := _read(start)):
        return is_there
    if rest := _without_ours(text):
        _rewrite(start, rest)
    else:  # it was made for our line alone
        start.unlink()
    click.echo(f"{start} is as it was")
    return True


@completion.command(short_help="Print what install would write.")
@shell_option
def show(shell: str | None) -> None:
    """Print the shell's script, to be put wherever you like.

    \b
    Example:
        readerkit completion show --shell zsh
    """
    click.echo(_script(shell or _own_shell()), nl=False)


def _script(shell: str) -> str:
    whole = click.get_current_context().find_root().command
    kind = get_completion_class(shell)
    assert kind is not None  # one of SHELLS
    text = kind(whole, {}, "readerkit", VARIABLE).source()
    return (_ZSH_FIRST if shell == "zsh" else "") + text.strip() + "\n"


def _places(shell: str) -> tuple[Path, Path | None]:
    """Return the script's file, and the file in which a shell is told to read it."""
    home = Path.home()
    if shell == "fish":  # reads its folder of completions by itself
        config = os.environ.get("XDG_CONFIG_HOME") or home / ".config"
        return Path(config, "fish", "completions", "readerkit.fish"), None
    start = home / ".bashrc"
    if shell == "zsh":
        start = Path(os.environ.get("ZDOTDIR") or home, ".zshrc")
    # Where a start file is a link, what it leads to is written.
    return data_folder() / "completion" / f"readerkit.{shell}", start.resolve()


def _own_shell() -> str:
    name = Path(os.environ.get("SHELL", "")).name
    if name in SHELLS:
        return name
    raise WrongUseError(
        f"which shell? got SHELL={name or 'nothing'}, expected one of "
        f"{', '.join(SHELLS)}: add --shell NAME"
    )


def _read(path: Path) -> str:
    try:
        return path.read_text("utf-8", errors="surrogateescape")
    except FileNotFoundError:
        return ""
    except OSError as error:
        raise ReaderkitError(f"{path}: cannot be read: {error.strerror}") from None


def _rewrite(path: Path, text: str) -> None:
    """Put a reader's own file back with other text, and as private as it was."""
    from readerkit.upstreams.store import write_atomically

    mode = path.stat().st_mode & 0o777 if path.exists() else 0o644
    write_atomically(path, text.encode("utf-8", "surrogateescape"))
    path.chmod(mode)


def _without_ours(text: str) -> str:
    lines = text.splitlines(keepends=True)
    return "".join(line for line in lines if not line.rstrip().endswith(MARK))
