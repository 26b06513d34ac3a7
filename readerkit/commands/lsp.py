"""``readerkit lsp``: notes beside code in the editor."""

from __future__ import annotations

from pathlib import Path

import click

from readerkit.commands.options import book_option


@click.command(short_help="Notes in your editor, as a language server on stdio.")
@book_option
def lsp(book: Path | None) -> None:
    """Serve notes to an editor, on standard input and output.

    Hovers, lenses and links on the pinned files and on a work tree, a note begun where
    the cursor is, and help with the YAML of a book: what is wrong, what may be typed
    next. docs/editors.md has settings for Neovim, Helix, VS Code and Emacs. It needs
    pygls: pip install 'readerkit-distributed[lsp]'.

    \b
    Example:
        readerkit lsp
        readerkit lsp --book book
    """
    from readerkit.errors import ReaderkitError
    from readerkit.wording.next_command import typed

    try:
        import pygls  # noqa: F401  whether it is there
    except ImportError:
        raise ReaderkitError(
            f"{typed('lsp')} needs pygls: pip install 'readerkit-distributed[lsp]'"
        ) from None
    from readerkit.system.stdio_server import ending_at_once
    from readerkit.wire.language_server import make_server

    with ending_at_once():
        make_server(book).start_io()
