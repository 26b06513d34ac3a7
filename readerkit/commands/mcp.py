"""``readerkit mcp``: the book for assistants."""

from __future__ import annotations

from pathlib import Path

import click

from readerkit.commands.options import book_option


@click.command(short_help="The book for assistants, by the Model Context Protocol.")
@book_option
def mcp(book: Path | None) -> None:
    """Serve the book to an assistant, on standard input and output.

    It finds and reads notes with their lines and claims, searches the pinned code,
    resolves anchors, says what comparisons saw, estimates, and asks a question without
    its key. It writes nothing and runs no upstream code. It needs the protocol's
    library: pip install 'readerkit-distributed[mcp]'.

    \b
    Example:
        readerkit mcp
        readerkit mcp --book book
    """
    from readerkit.errors import ReaderkitError
    from readerkit.wording.next_command import typed

    try:
        import mcp.server.mcpserver  # noqa: F401  whether it is there
    except ImportError:
        raise ReaderkitError(
            f"{typed('mcp')} needs the protocol's library, mcp: "
            "pip install 'readerkit-distributed[mcp]'"
        ) from None
    from readerkit.system.stdio_server import ending_at_once
    from readerkit.wire.mcp_server import make_mcp_server

    with ending_at_once():
        make_mcp_server(book).run("stdio")
