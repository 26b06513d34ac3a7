"""The language server: notes beside code, and help with the YAML of a book."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import unquote, urlsplit
from urllib.request import url2pathname

from lsprotocol import types
from pygls.lsp.server import LanguageServer

from readerkit import __version__
from readerkit.content.resolved_notes import resolve_notes
from readerkit.errors import ReaderkitError
from readerkit.wire import source_help, yaml_help
from readerkit.wire.note_text import note_markdown
from readerkit.wire.open_book import OpenBook

SETTLED_S = 0.2
"""For so long nobody has typed before a text is held against the book."""
Answer = TypeVar("Answer")


class BookServer(LanguageServer):
    """A server with a book; what the book cannot say is said as nothing at all."""

    def __init__(self, book: OpenBook) -> None:
        super().__init__("readerkit", __version__)
        self.book = book
        self.complained = ""

    def open_text(self, uri: str) -> tuple[Path, str]:
        """Return the file of a document and its text, none where there is no file."""
        try:
            text = self.workspace.get_text_document(uri).source
        except OSError:  # nobody opened it, and it is not there
            text = ""
        return file_of(uri), text

    def answer(self, ask: Callable[[], Answer], nothing: Answer) -> Answer:
        """Return an answer; where the book is broken, nothing, and say why once."""
        try:
            found = ask()
        except ReaderkitError as error:
            if str(error) != self.complained:
                self.complained = str(error)
                told = types.ShowMessageParams(types.MessageType.Warning, str(error))
                self.window_show_message(told)
            return nothing
        self.complained = ""
        return found

    def publish(self, uri: str) -> None:
        """Tell the editor what is wrong with a document."""
        file, text = self.open_text(uri)

        def found() -> list[types.Diagnostic]:
            if self.book.part_of_book(file):
                return yaml_help.diagnostics(self.book, file, text)
            return source_help.hints(self.book, file, text)

        none: list[types.Diagnostic] = []
        told = self.answer(found, none)
        self.text_document_publish_diagnostics(
            types.PublishDiagnosticsParams(uri, told)
        )

    def show_note(self, name: str) -> dict[str, Any]:
        """Return a note by id, and show it where the editor can show a message."""
        library = self.book.library()
        annotation = library.book.annotations[name]
        upstream = library.book.upstreams[annotation.upstream]
        [note] = resolve_notes(library.book, library.sources(upstream), [annotation])
        said = note_markdown(library, annotation, upstream, note.span)
        shown = types.ShowMessageParams(types.MessageType.Info, said)
        self.window_show_message(shown)
        return {"id": name, "markdown": said}

    async def tour_stop(self, name: str, number: int) -> dict[str, Any]:
        """Return a stop of a tour, and open its file where the workspace has it."""
        library = self.book.library()
        tour = library.book.tours[name]
        stop = tour.stops[min(max(number, 1), len(tour.stops)) - 1]
        annotation = library.book.annotations[stop.note]
        upstream = library.book.upstreams[annotation.upstream]
        [note] = resolve_notes(library.book, library.sources(upstream), [annotation])
        folders = [file_of(each) for each in self.workspace.folders]
        here = next(
            (f for top in folders if (f := top / note.span.path).is_file()), None
        )
        row = types.Position(note.span.first - 1, 0)
        uri = here.as_uri() if here else upstream.permalink(note.span)
        capable = self.client_capabilities.window
        if capable and capable.show_document and capable.show_document.support and uri:
            await self.window_show_document_async(
                types.ShowDocumentParams(
                    uri,
                    external=here is None,
                    take_focus=True,
                    selection=types.Range(row, row),
                )
            )
        title = f"{tour.title}: {number} of {len(tour.stops)}"
        if stop.says:
            told = types.ShowMessageParams(types.MessageType.Info, stop.says)
            self.window_show_message(told)
        return {
            "title": title,
            "says": stop.says,
            "note": stop.note,
            "uri": uri,
            "first": note.span.first,
            "last": note.span.last,
        }


def file_of(uri: str) -> Path:
    """Return the file of an address on this disk."""
    parts = urlsplit(uri)
    return Path(url2pathname(unquote(parts.path)) if parts.scheme else uri)


def make_server(folder: Path | None) -> BookServer:
    """Return a server for a book, ready to be started."""
    server = BookServer(OpenBook(folder))
    _add_documents(server)
    _add_reading(server)
    _add_writing(server)
    return server


def _add_documents(server: BookServer) -> None:
    @server.feature(types.TEXT_DOCUMENT_DID_OPEN)
    def opened(params: types.DidOpenTextDocumentParams) -> None:
        server.publish(params.text_document.uri)

    @server.feature(types.TEXT_DOCUMENT_DID_CHANGE)
    async def changed(params: types.DidChangeTextDocumentParams) -> None:
        uri = params.text_document.uri
        version = server.workspace.get_text_document(uri).version
        await asyncio.sleep(SETTLED_S)
        if server.workspace.get_text_document(uri).version == version:
            server.publish(uri)

    @server.feature(types.TEXT_DOCUMENT_DID_SAVE)
    def saved(params: types.DidSaveTextDocumentParams) -> None:
        server.book.forget()
        server.publish(params.text_document.uri)

    @server.feature(types.TEXT_DOCUMENT_DID_CLOSE)
    def closed(params: types.DidCloseTextDocumentParams) -> None:
        nothing = types.PublishDiagnosticsParams(params.text_document.uri, [])
        server.text_document_publish_diagnostics(nothing)


def _add_reading(server: BookServer) -> None:
    book = server.book

    @server.feature(types.TEXT_DOCUMENT_HOVER)
    def hover(params: types.HoverParams) -> types.Hover | None:
        file, text = server.open_text(params.text_document.uri)
        at = params.position

        def found() -> types.Hover | None:
            if book.part_of_book(file):
                return yaml_help.hover_on_name(book, text, at.line, at.character)
            return source_help.hover(book, file, text, at.line + 1)

        return server.answer(found, None)

    @server.feature(types.TEXT_DOCUMENT_CODE_LENS)
    def lenses(params: types.CodeLensParams) -> list[types.CodeLens]:
        file, text = server.open_text(params.text_document.uri)

        def found() -> list[types.CodeLens]:
            if book.part_of_book(file):
                return yaml_help.lenses_on_entries(book, file)
            return source_help.lenses(book, file, text)

        return server.answer(found, [])

    @server.feature(types.TEXT_DOCUMENT_DOCUMENT_LINK)
    def links(params: types.DocumentLinkParams) -> list[types.DocumentLink]:
        file, text = server.open_text(params.text_document.uri)

        def found() -> list[types.DocumentLink]:
            if book.part_of_book(file):
                return yaml_help.links_in_entries(book, file, text)
            return source_help.links(book, file, text)

        return server.answer(found, [])

    @server.command(source_help.SHOW_NOTE)
    def show_note(name: str) -> dict[str, Any] | None:
        return server.answer(lambda: server.show_note(name), None)

    @server.command(source_help.TOUR_STOP)
    async def tour_stop(name: str, number: int) -> dict[str, Any]:
        return await server.tour_stop(name, number)


def _add_writing(server: BookServer) -> None:
    book = server.book

    @server.feature(
        types.TEXT_DOCUMENT_CODE_ACTION,
        types.CodeActionOptions(
            code_action_kinds=[types.CodeActionKind.RefactorExtract]
        ),
    )
    def actions(params: types.CodeActionParams) -> list[types.CodeAction]:
        file, text = server.open_text(params.text_document.uri)
        start, end = params.range.start, params.range.end
        # A selection of whole lines ends where the next line begins.
        last = (
            end.line if end.character == 0 and end.line > start.line else end.line + 1
        )

        def found() -> list[types.CodeAction]:
            if book.part_of_book(file):
                return []
            action = source_help.note_here(book, file, text, start.line + 1, last)
            return [action] if action else []

        return server.answer(found, [])

    @server.feature(
        types.TEXT_DOCUMENT_COMPLETION,
        types.CompletionOptions(trigger_characters=[" ", "[", '"', "."]),
    )
    def completions(params: types.CompletionParams) -> list[types.CompletionItem]:
        file, text = server.open_text(params.text_document.uri)
        at = params.position

        def found() -> list[types.CompletionItem]:
            if not book.part_of_book(file):
                return []
            where = (at.line, at.character)
            return yaml_help.completions(book, file, text, *where)

        return server.answer(found, [])
