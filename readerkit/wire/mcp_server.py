"""The server for assistants: the tools of a book over the Model Context Protocol."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any

from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.server.mcpserver.tools import Tool

from readerkit import __version__
from readerkit.errors import ReaderkitError
from readerkit.wire.assistant_tools import Answer, tools_of
from readerkit.wire.note_text import MAX_CHARACTERS, bounded

_INSTRUCTIONS = (
    "Notes on exact lines of code, at a pinned commit or as they are in a work tree. "
    "Every sentence of a note may carry claims that were held against the source: say "
    "what a note says, name its lines, and quote the licence beside code. A quiz "
    "question is for the person to answer: no key is to be had here."
)


def make_mcp_server(folder: Path | None) -> MCPServer[None]:
    """Return a server with the tools of a book, ready to be started."""
    tools = tools_of(folder)
    return MCPServer(
        "readerkit",
        instructions=_INSTRUCTIONS,
        version=__version__,
        log_level="WARNING",
        tools=[
            _strict(Tool.from_function(_telling(each)))
            for each in (
                tools.find_notes,
                tools.read_note,
                tools.search_code,
                tools.resolve_anchor,
                tools.compare,
                tools.estimate,
                tools.ask_question,
            )
        ],
    )


def _strict(tool: Tool) -> Tool:
    """Have a tool refuse what it does not know, which would be left out in silence."""
    arguments = tool.fn_metadata.arg_model
    arguments.model_config["extra"] = "forbid"
    arguments.model_rebuild(force=True)
    tool.parameters = arguments.model_json_schema(by_alias=True)
    return tool


def _telling(tool: Callable[..., Answer]) -> Callable[..., Answer]:
    """Return a tool that says its refusals; of a bug the protocol says nothing."""

    @wraps(tool)
    def asked(*given: Any, **named: Any) -> Answer:
        try:
            return tool(*given, **named)
        except ReaderkitError as error:
            raise ToolError(bounded(str(error), MAX_CHARACTERS)) from None

    return asked
