"""The server for assistants: the tools of a book over the Model Context Protocol."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any

from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError

from readerkit import __version__
from readerkit.errors import ReaderkitError
from readerkit.wire.assistant_tools import Answer, tools_of
from readerkit.wire.note_text import MAX_CHARACTERS, bounded

_INSTRUCTIONS = (
    "Notes on the exact lines of code that trains large models, at pinned commits. "
    "Every sentence of a note may carry claims that were held against the source: say "
    "what a note says, name its lines, and quote the licence beside code. A quiz "
    "question is for the person to answer: no key is to be had here."
)


def make_mcp_server(folder: Path | None) -> MCPServer[None]:
    """Return a server with the tools of a book, ready to be started."""
    tools = tools_of(folder)
    server: MCPServer[None] = MCPServer(
        "readerkit",
        instructions=_INSTRUCTIONS,
        version=__version__,
        log_level="WARNING",
    )
    for each in (
        tools.find_notes,
        tools.read_note,
        tools.search_code,
        tools.resolve_anchor,
        tools.compare,
        tools.estimate,
        tools.ask_question,
    ):
        server.add_tool(_telling(each))
    return server


def _telling(tool: Callable[..., Answer]) -> Callable[..., Answer]:
    """Return a tool that says its refusals; of a bug the protocol says nothing."""

    @wraps(tool)
    def asked(*given: Any, **named: Any) -> Answer:
        try:
            return tool(*given, **named)
        except ReaderkitError as error:
            raise ToolError(bounded(str(error), MAX_CHARACTERS)) from None

    return asked
