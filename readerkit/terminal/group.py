"""A group of commands that says which one a mistyped name may have meant."""

from __future__ import annotations

import click


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
        from readerkit.wording.meant_name import matches, near_names

        name, known = args[0] if args else "", self.list_commands(ctx)
        if not name or name.startswith("-") or ctx.resilient_parsing or name in known:
            return super().resolve_command(ctx, args)
        near = [*matches(name, known), *near_names(name, known)]
        meant = " or ".join(dict.fromkeys(near))
        raise click.UsageError(
            f"No such command '{name}': "
            + (f"did you mean {meant}?" if meant else f"expected {', '.join(known)}"),
            ctx,
        )
