"""Groups of commands: one says which a mistyped name may mean, one imports late."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any

import click
from click.shell_completion import CompletionItem


class NamingGroup(click.Group):
    """As click's own, and its groups below are like it."""

    group_class = type

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command that ``args`` begin with.

        Raises:
            click.UsageError: none is called so; names those that nearly are.
        """
        from readerkit.wording.meant_name import did_you_mean, matches, near_names

        name, known = args[0] if args else "", self.list_commands(ctx)
        if not name or name.startswith("-") or ctx.resilient_parsing or name in known:
            return super().resolve_command(ctx, args)
        near = [*matches(name, known), *near_names(name, known)]
        meant = did_you_mean(*dict.fromkeys(near)) or f"expected {', '.join(known)}"
        raise click.UsageError(f"No such command '{name}': {meant}", ctx)


class LateGroup(NamingGroup):
    """A group that knows its commands by name before they are imported.

    All of them take longer to import than most of them work.
    """

    def __init__(self, *args: Any, late: Mapping[str, tuple[str, str]], **more: Any):
        """Take names of commands, each with its module and what --help says of it.

        A module has its command under the command's own name, or under the module's.
        """
        super().__init__(*args, **more)
        self.late = late

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all."""
        return sorted({*self.late, *self.commands})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return one by its name, imported now."""
        if cmd_name in self.late and cmd_name not in self.commands:
            name, _ = self.late[cmd_name]
            module = importlib.import_module(f"readerkit.commands.{name}")
            found = getattr(module, cmd_name, None) or getattr(module, name)
            self.add_command(found, cmd_name)
        return self.commands.get(cmd_name)

    def shell_complete(
        self, ctx: click.Context, incomplete: str
    ) -> list[CompletionItem]:
        """Return the names that begin so, without importing any."""
        found = [
            CompletionItem(name, help=says)
            for name, says in self._said(ctx)
            if name.startswith(incomplete)
        ]
        return [*found, *click.Command.shell_complete(self, ctx, incomplete)]

    def format_commands(
        self, ctx: click.Context, formatter: click.HelpFormatter
    ) -> None:
        """List all with what they do."""
        with formatter.section("Commands"):
            formatter.write_dl(self._said(ctx))

    def _said(self, ctx: click.Context) -> list[tuple[str, str]]:
        own = {name: each.get_short_help_str() for name, each in self.commands.items()}
        said = own | {name: says for name, (_, says) in self.late.items()}
        return [(name, said[name]) for name in self.list_commands(ctx)]
