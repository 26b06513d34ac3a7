"""Serves the reading site to this machine, and builds it anew when a file changes."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import json
import mimetypes
import re
import socket
import time
from collections.abc import AsyncIterator, Callable, Iterable
from pathlib import Path
from urllib.parse import parse_qs, unquote

import click
import uvicorn
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response, StreamingResponse
from starlette.routing import Route
from watchfiles import awatch

from readerkit.anchors.xref.links import File
from readerkit.app.library import open_library, warn
from readerkit.errors import ReaderkitError
from readerkit.model import addresses
from readerkit.model.freshness import digest_all
from readerkit.site.build import SERVED_ONLY, BuildCache, Files, make_site
from readerkit.site.http import (
    HEADERS,
    HOST,
    OwnNameOnly,
    Protocol,
    SignalServer,
    answer,
    fault_page,
    names_of,
    own_body,
    said_of,
)
from readerkit.site.inputs import Inputs
from readerkit.site.open_pages import OpenPages
from readerkit.site.quiz_forms import Form, QuizDesk
from readerkit.site.read_notes import ReadNotes
from readerkit.site.run_page import run_html
from readerkit.site.saved_notes import NotesOfPages, saved_notes
from readerkit.site.write_note import answer_note, choices, script_of
from readerkit.system.private_files import make_folder
from readerkit.system.status import Status

FIRST_S = 0.02
"""What pages are told goes out before a build takes the processor."""
TRIES = 5
"""Builds for one change, where somebody writes faster than the site is made."""
_LIVE = '<script src="/-/live.js" data-build="{build}" data-looks="{looks}"></script>\n'
_QUIZ = b'<script src="/-/quiz.js"></script>\n'
_QUIZ_PAGE = re.compile(r"quiz/([0-9]{1,3})\.html")
_NO_TURN = b'"></div>\n<div class="self-check">'
_TURN = b'">%s</div>\n<div class="self-check no-js">'
_HTML = "text/html"


class Server:
    """The site in memory, the pages that are open, and what was read."""

    def __init__(self, inputs: Inputs, book: Path | None) -> None:
        self.inputs = inputs
        self.book = book
        self.build_cache = BuildCache()
        self.files: Files = {}
        self.marks: dict[str, list[int]] = {}
        """Of the files that the latest build read, whether it held or not."""
        self.sources: dict[str, File] = {}
        """By the address of its page, each source file."""
        self.live = b""
        """What makes a page follow: it names the build that the page is of."""
        self.state = ""
        """The build and what is wrong since, as open pages are told it."""
        self.open_pages = OpenPages()
        self.read_notes = ReadNotes(inputs.mine.parent / "read.json")
        self.desk = QuizDesk(book)

    def build(self, status: Status | None = None) -> None:
        """Make the site anew, and say how far it is to who waits for the first one.

        What was made while a file was being saved is of half of it, and never shown.

        Raises:
            ReaderkitError: something in it that does not hold; the old site stays.
        """
        for _ in range(TRIES):
            marks, fault = self.inputs.marks(), None
            made_of = digest_all({**self.inputs.content(), **self.inputs.served()})
            try:
                library = open_library(self.book, quiet=True)
                files = make_site(
                    library, self.inputs, self.build_cache, made_of, status
                )
            except ReaderkitError as error:
                fault = error
            if self.inputs.marks() == marks:
                break
        self.marks = marks
        if fault:
            raise fault
        for page in self.open_pages.addresses() & files.keys():
            files[page]()  # is asked for next: what is wrong in it is told there
        self.files = files
        assert self.build_cache.model is not None  # it was just made
        sheets = self.build_cache.model.sheets
        self.sources = {addresses.source_page(*file): file for file in sheets}
        build, looks = str(time.time_ns()), digest_all(self.inputs.looks())
        self.live = _LIVE.format(build=build, looks=looks).encode()
        self.state = json.dumps({"build": build, "fault": library.left_out})

    def build_again(self) -> None:
        """Make the site anew, or say why not: the old site stays then."""
        try:
            self.build()
        except Exception as error:  # a server outlives its own faults, too
            said = said_of(error)
            warn(said)
            self.state = json.dumps({**json.loads(self.state), "fault": said})

    def catch_up(self) -> None:
        """Take up what was saved since the latest build: news of more may come late."""
        if self.inputs.marks() != self.marks:
            self.build_again()

    async def watch(self) -> None:
        """Build anew after each change, and tell every open page."""
        # The shortest pause that still takes a save by rename as one change.
        folders = self.inputs.watched()
        is_new = True
        async for changes in awatch(
            *folders, debounce=400, step=20, rust_timeout=1000, yield_on_timeout=True
        ):
            if not changes and not is_new:
                continue
            if changes and not is_new:
                paths = {Path(path) for _, path in changes}
                saved = await asyncio.to_thread(self.saved, paths)
                for page, notes in saved.items():
                    self.open_pages.tell(json.dumps({"notes": notes}), page)
                await asyncio.sleep(FIRST_S)
            await asyncio.to_thread(self.catch_up)
            is_new = False
            self.open_pages.tell(self.state)

    def saved(self, paths: Iterable[Path]) -> NotesOfPages:
        """Return the notes that open pages can show before the site is made anew."""
        try:
            return saved_notes(paths, self.inputs, self.build_cache)
        except Exception:  # whatever it is, the build behind it says so
            return {}

    # --- what is asked for ---

    async def page(self, request: Request) -> Response:
        """Answer with a file of the site: nothing else can be named."""
        path = _address(request.path_params["path"])
        status, kind = 200, mimetypes.guess_type(path)[0] or "application/octet-stream"
        make = self.files.get(path)
        if make is None:
            title, said = "There is no such page", f"no page {path!r} in this site"
            data, status, kind = fault_page(path, title, said), 404, _HTML
        else:
            try:
                data = await asyncio.to_thread(self._made, path, make)
            except Exception as error:
                said = said_of(error)
                warn(said)
                data = fault_page(path, "This page cannot be made", said)
                status, kind = 500, _HTML
        if kind == _HTML:
            head, mark, tail = data.rpartition(b"</body>")
            data = head + self._scripts(path) + mark + tail if mark else data
        return await asyncio.to_thread(answer, request, data, kind, status)

    def _made(self, path: str, make: Callable[[], bytes]) -> bytes:
        """Return a file as it is served: the quiz begins on its page."""
        data, phase = make(), _QUIZ_PAGE.fullmatch(path)
        if phase:
            turn = self._quiz_html(int(phase[1]), {"do": ["open"]}).encode()
            if b"<form" in turn:
                return data.replace(_NO_TURN, _TURN % turn, 1)
            # What is wrong stands over what needs no server.
            return data.replace(_NO_TURN, _NO_TURN.replace(b">", b">" + turn, 1), 1)
        return data

    def _scripts(self, path: str) -> bytes:
        """Return what a page has only while it is served."""
        if path.startswith("quiz/"):
            return self.live + _QUIZ
        file = self.sources.get(path)
        known = self.build_cache.sources[file[0]][0] if file else {}
        return self.live + script_of(file, known) if file else self.live

    async def script(self, request: Request) -> Response:
        """Answer with a script that works on a served page alone."""
        name = request.path_params["name"]
        if name not in SERVED_ONLY:
            raise HTTPException(404, f"no script {name!r}")
        data = (self.inputs.site / "theme" / name).read_bytes()
        return answer(request, data, "text/javascript")

    async def changes(self, request: Request) -> Response:
        """Answer with the state now and after each change, while the page is open."""
        page = _address(unquote(request.query_params.get("page", ""))[1:])
        return StreamingResponse(
            self.open_pages.listen(page, self.state),
            media_type="text/event-stream",
            headers=HEADERS,
        )

    async def what_was_read(self, _: Request) -> Response:
        """Answer with the ids that this reader has read, in whichever browser."""
        return JSONResponse(self.read_notes.ids(), headers=HEADERS)

    async def remember(self, request: Request) -> Response:
        """Add ids to what was read; only this site's own pages may ask for it."""
        body = await own_body(request)
        try:
            merged = self.read_notes.add(body)
        except ValueError as error:
            raise HTTPException(400, str(error)) from None
        return JSONResponse(merged, headers=HEADERS)

    async def note_form(self, request: Request) -> Response:
        """Answer with the form that a note is typed into."""
        html = await asyncio.to_thread(self._note_html)
        return answer(request, html.encode(), _HTML)

    def _note_html(self) -> str:
        templates, model = self.build_cache.templates, self.build_cache.model
        assert templates is not None and model is not None  # built before it is served
        return templates.render("write.html", "", choices(model.book))

    async def write_note(self, request: Request) -> Response:
        """Write a note into the reader's own book; only this site's pages may ask."""
        return await answer_note(await own_body(request), self.book)

    async def run(self, request: Request) -> Response:
        """Answer with the run that is watched: its page, or the table alone."""
        wants_table = request.url.path.endswith("/now")
        template = "run_now.html" if wants_table else "run.html"
        html = await asyncio.to_thread(run_html, template, self.build_cache)
        return answer(request, html.encode(), _HTML)

    async def quiz_turn(self, request: Request) -> Response:
        """Answer a form of the quiz with what its page shows next."""
        body = await own_body(request)
        try:
            form = parse_qs(body.decode(), keep_blank_values=True, max_num_fields=200)
        except ValueError:
            raise HTTPException(400, "expected a form") from None
        phase = request.path_params["phase"]
        if not re.fullmatch("[0-9]{1,3}", phase):
            raise HTTPException(404, f"no quiz {phase!r}")
        html = await asyncio.to_thread(self._quiz_html, int(phase), form)
        return HTMLResponse(html, headers=HEADERS)

    def _quiz_html(self, phase: int, form: Form) -> str:
        templates, model = self.build_cache.templates, self.build_cache.model
        assert templates is not None and model is not None  # built before it is served
        turn = self.desk.turn(phase, form, model)
        return templates.render("quiz_turn.html", addresses.quiz_page(phase), turn)


def _address(path: str) -> str:
    """Return the page that a path of the server leads to."""
    return f"{path}index.html" if path == "" or path.endswith("/") else path


def application(server: Server, port: int) -> Starlette:
    """Return the web application, which answers under this server's own names only."""

    @contextlib.asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        watching = asyncio.create_task(server.watch())
        yield
        watching.cancel()

    return Starlette(
        routes=[
            Route("/-/changes", server.changes),
            Route("/-/note", server.note_form, methods=["GET"]),
            Route("/-/note", server.write_note, methods=["POST"]),
            Route("/-/quiz/{phase}", server.quiz_turn, methods=["POST"]),
            Route("/-/read", server.what_was_read, methods=["GET"]),
            Route("/-/read", server.remember, methods=["POST"]),
            Route("/-/run", server.run),
            Route("/-/run/now", server.run),
            Route("/-/{name}", server.script),
            Route("/{path:path}", server.page),
        ],
        middleware=[Middleware(OwnNameOnly, names=names_of(port))],
        lifespan=lifespan,
    )


def serve(inputs: Inputs, book: Path | None, port: int) -> None:
    """Build the site, and serve it until interrupted.

    Raises:
        ReaderkitError: a site that cannot be built, a port that is taken.
    """
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    with listener:
        try:
            listener.bind((HOST, port))
            listener.listen()
        except OSError as error:
            raise ReaderkitError(
                f"port {port} of {HOST}: {error.strerror}: expected a free one; "
                "name another with --port, or let --port 0 take one"
            ) from None
        for folder in (inputs.mine, inputs.own_records):
            make_folder(folder)  # else nobody could watch them
        server = Server(inputs, book)
        status = Status()
        server.build(status)
        status.clear()
        # What parsing left stays for good: looking through it again costs 100 ms.
        gc.collect()
        gc.freeze()
        port = listener.getsockname()[1]
        click.echo(f"http://{HOST}:{port}/ (stop with ^C)")
        config = uvicorn.Config(
            application(server, port),
            http=Protocol,
            ws="none",
            log_level="warning",
            timeout_graceful_shutdown=2,
        )
        SignalServer(config, server.open_pages.close).run(sockets=[listener])
