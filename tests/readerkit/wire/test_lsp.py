"""The language server as editors know it: a process of its own, over its stdio."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml

from tests.event_loops import run_apart
from tests.helpers import (
    ROOT,
    SAMPLE,
    SampleBook,
    make_repository,
    run_process,
    write_files,
)
from tests.readerkit.commands.test_tours import TOUR
from tests.terminals import WAIT_S

pytest.importorskip("pygls", reason="pip install 'readerkit-distributed[lsp]'")
from lsprotocol import types
from pygls.lsp.client import LanguageClient

pytestmark = pytest.mark.sampled

COMMAND = ("-m", "readerkit", "lsp", "--book")
EDITED = SAMPLE.replace("import torch\n", "import torch\n\nLIMIT = 3\n")


class Editor:
    """A client with the documents that it has open."""

    def __init__(self) -> None:
        self.client = LanguageClient("test", "1")
        self.told: asyncio.Queue[types.PublishDiagnosticsParams] = asyncio.Queue()
        self.shown: list[str] = []
        receive = self.client.feature
        receive(types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)(
            lambda e: self.told.put_nowait(e)
        )
        self.client.feature(types.WINDOW_SHOW_MESSAGE)(
            lambda each: self.shown.append(each.message)
        )

    async def open(self, file: Path, text: str) -> types.TextDocumentIdentifier:
        item = types.TextDocumentItem(file.as_uri(), "python", 1, text)
        self.client.text_document_did_open(types.DidOpenTextDocumentParams(item))
        self.diagnostics = await asyncio.wait_for(self.told.get(), WAIT_S)
        return types.TextDocumentIdentifier(item.uri)

    async def type(self, document: types.TextDocumentIdentifier, text: str) -> list:
        """Replace the whole text; return what is wrong then."""
        versioned = types.VersionedTextDocumentIdentifier(2, document.uri)
        whole = [types.TextDocumentContentChangeWholeDocument(text)]
        self.client.text_document_did_change(
            types.DidChangeTextDocumentParams(versioned, whole)
        )
        told = await asyncio.wait_for(self.told.get(), WAIT_S)
        return list(told.diagnostics)


async def offered_behind(editor: Editor, file: Path, texts: list[str]) -> list[Any]:
    """Return what may be typed next at the end of each text of one file."""
    document, found = await editor.open(file, ""), []
    for text in texts:
        await editor.type(document, text)
        row, column = text.count("\n"), len(text.rpartition("\n")[2])
        params = types.CompletionParams(document, types.Position(row, column))
        found.append(await editor.client.text_document_completion_async(params))
    return found


Scene = Callable[[Editor, SampleBook], Awaitable[Any]]


def played(book: SampleBook, scene: Scene) -> Any:
    """Return what comes of a scene with an editor, and a server of a book."""

    async def play() -> Any:
        editor = Editor()
        await editor.client.start_io(sys.executable, *COMMAND, str(book.root))
        await editor.client.initialize_async(
            types.InitializeParams(
                types.ClientCapabilities(),
                workspace_folders=[
                    types.WorkspaceFolder(book.repository.as_uri(), "sample")
                ],
            )
        )
        editor.client.initialized(types.InitializedParams())
        try:
            return await asyncio.wait_for(scene(editor, book), 4 * WAIT_S)
        finally:
            await editor.client.shutdown_async(None)
            editor.client.exit(None)
            await editor.client.stop()

    return run_apart(play())


@pytest.fixture
def edit(locked) -> Callable[[Scene], Any]:
    """Return what plays a scene on the sample book."""
    return lambda scene: played(locked.book, scene)


def at(line: int, character: int = 4) -> types.Position:
    return types.Position(line - 1, character)


def test_a_file_that_is_not_there_is_answered_with_nothing(edit):
    async def scene(editor, book):
        nowhere = types.TextDocumentIdentifier((book.repository / "no.py").as_uri())
        params = types.HoverParams(nowhere, at(1))
        return await editor.client.text_document_hover_async(params)

    assert edit(scene) is None


def test_hover_has_the_note_on_the_pinned_file_and_on_an_edited_one(edit):
    async def scene(editor, book):
        file = book.repository / "lib" / "linear.py"
        document = await editor.open(file, SAMPLE)
        client, found = editor.client, []
        for line in (14, 8):
            params = types.HoverParams(document, at(line))
            found.append(await client.text_document_hover_async(params))
        await editor.type(document, EDITED)
        params = types.HoverParams(document, at(16))
        return *found, await client.text_document_hover_async(params)

    pinned, none, edited = edit(scene)
    said = pinned.contents.value
    assert said.startswith("**The closing collective**\n\n**Decided.** One switch")
    assert "`close`" in said and "MIT, Nobody" in said
    assert (pinned.range.start.line, pinned.range.end.line) == (13, 16)
    assert none is None
    assert (edited.range.start.line, edited.range.end.line) == (15, 18)


def test_lenses_and_links_stand_on_the_first_line_of_each_note(edit, locked):
    write_files(locked.book.root / "annotations" / "tours", {"a-step.yaml": TOUR})

    async def scene(editor, book):
        document = await editor.open(book.repository / "lib" / "linear.py", SAMPLE)
        client = editor.client
        lenses = await client.text_document_code_lens_async(
            types.CodeLensParams(document)
        )
        links = await client.text_document_document_link_async(
            types.DocumentLinkParams(document)
        )
        stop, note = lenses[1].command, lenses[0].command
        went = [
            await client.workspace_execute_command_async(
                types.ExecuteCommandParams(each.command, each.arguments)
            )
            for each in (note, stop)
        ]
        return lenses, links, went, editor.shown

    lenses, links, (note, stop), shown = edit(scene)
    assert [(each.range.start.line + 1, each.command.title) for each in lenses] == [
        (14, "citation: The closing collective"),
        (14, "One step and its end: 2 of 2"),
        (21, "note: One step"),
        (21, "One step and its end: 1 of 2"),
    ]
    assert [
        (each.range.start.line + 1, each.target.endswith(end))
        for each, end in zip(links, ("#L14-L17", "#L21-L24"), strict=True)
    ] == [(14, True), (21, True)]
    assert note["id"] == "close" and "Half the bytes" in note["markdown"]
    assert (stop["says"], stop["first"]) == ("Its forward ends here.", 14)
    assert stop["uri"] == (locked.book.repository / "lib" / "linear.py").as_uri()
    assert "Its forward ends here." in shown


def test_note_whose_lines_are_gone_is_told(edit):
    async def scene(editor, book):
        gone = SAMPLE.replace("self.sequence_parallel", "self.whatever")
        await editor.open(book.repository / "lib" / "linear.py", gone)
        return editor.diagnostics.diagnostics

    [told] = edit(scene)
    assert told.message.startswith("close: its lines are not in this text: ")
    assert told.severity == types.DiagnosticSeverity.Hint


def applied(edit_: types.WorkspaceEdit, before: str) -> tuple[str, str]:
    """Return the file that an edit changes, and the text that it makes of it."""
    *_, change = edit_.document_changes
    [one] = change.edits
    rows = before.split("\n")
    start = (
        sum(len(r) + 1 for r in rows[: one.range.start.line])
        + one.range.start.character
    )
    end = sum(len(r) + 1 for r in rows[: one.range.end.line]) + one.range.end.character
    return change.text_document.uri, before[:start] + one.new_text + before[end:]


@pytest.mark.parametrize("before", ["", "- id: kept\n  kind: note\n\n", "- id: kept"])
def test_note_here_adds_an_entry_with_its_anchor_proposed(edit, locked, before):
    target = locked.book.path("sample/my-notes.yaml")

    async def scene(editor, book):
        document = await editor.open(book.repository / "lib" / "linear.py", EDITED)
        if before:  # the server has read the book; an action reads the file as it is
            target.write_text(before)
        return await editor.client.text_document_code_action_async(
            types.CodeActionParams(
                document, types.Range(at(24, 0), at(25, 0)), types.CodeActionContext([])
            )
        )

    [action] = edit(scene)
    assert action.title == "readerkit: note here"
    assert len(action.edit.document_changes) == (1 if before else 2)
    uri, text = applied(action.edit, before)
    assert uri == target.as_uri()
    entries = yaml.safe_load(text)
    assert [each["id"] for each in entries] == [
        *(["kept"] if before else []),
        "new-note",
    ]
    assert entries[-1]["at"] == {
        "file": "lib/linear.py",
        "symbol": "step",
        "code": "loss = ...",
    }


def test_note_on_lines_that_the_pin_lacks_is_not_offered(edit):
    async def scene(editor, book):
        document = await editor.open(book.repository / "lib" / "linear.py", EDITED)
        return await editor.client.text_document_code_action_async(
            types.CodeActionParams(
                document, types.Range(at(5, 0), at(5, 3)), types.CodeActionContext([])
            )
        )

    [action] = edit(scene)
    assert action.edit is None and "no match for 'LIMIT" in action.disabled.reason


NOTES = """\
- id: new
  at: {file: lib/linear.py, symbol: Linear.forward, code: "all_reduce(...)"}
  kind: note
  title: New
  text: Words.
  concepts: [all-reduce]
"""


def test_yaml_is_held_against_book_and_code_while_it_is_typed(edit):
    faulty = [
        (
            NOTES.replace("all_reduce(", "all_gather("),
            1,
            "no match for 'all_gather(...)'",
        ),
        (NOTES.replace("[all-reduce]", "[all-reduc]"), 6, "unknown concept"),
        (NOTES.replace("kind: note", "kind: nte"), 3, "wrong value for 'kind'"),
        (NOTES.replace("title: New", "title: [New"), 5, "not valid YAML"),
    ]

    async def scene(editor, book):
        file = book.path("sample/more.yaml")
        document = await editor.open(file, NOTES)
        found = [list(editor.diagnostics.diagnostics)]
        for text, _, _ in faulty:
            found.append(await editor.type(document, text))
        return found

    none, *each = edit(scene)
    assert none == []
    for found, (_, line, words) in zip(each, faulty, strict=True):
        assert words in found[0].message, found
        assert found[0].range.start.line + 1 == line


def test_what_may_be_typed_next_is_offered_and_resolves(edit):
    rows = {
        "  at: {file: lib/": "lib/linear.py",
        "  at: {file: lib/linear.py, symbol: Lin": "Linear.forward",
        "  concepts: [collectives, all": "all-reduce",
        "  references: [{key: pa": "paper",
        "  at: {file: lib/linear.py, symbol: Linear.forward, code: all_red": (
            "all_reduce(...)"
        ),
    }
    texts = [f"- id: new\n  kind: note\n{row}" for row in rows]

    async def scene(editor, book):
        return await offered_behind(editor, book.path("sample/more.yaml"), texts)

    for (row, expected), offered in zip(rows.items(), edit(scene), strict=True):
        [item] = [each for each in offered if each.label == expected]
        start = item.text_edit.range.start.character
        typed = row[:start] + item.text_edit.new_text
        closing = "".join({"[": "]", "{": "}"}[c] for c in reversed(typed) if c in "[{")
        assert expected in str(yaml.safe_load(f"- id: new\n{typed}{closing}"))


TWO_FILES = {
    "one.py": "def first(tries=3):\n    return tries\n",
    "two.py": (
        "LIMIT = 5\n\n\nclass Second:\n    size: int = 7\n\n"
        "    def run(self, x, loud=False):\n"
        "        if loud:\n            shout(x)\n        return x\n"
    ),
}
ENTRY = """\
- id: new
  at: {file: one.py, symbol: first}
  claims:
    - says: x
"""


OFFERED = [
    (
        "      default: {file: two.py, of: ",
        ["LIMIT", "Second.size", "Second.run.loud"],
    ),
    ("      default: {of: ti", []),
    ("      default:\n        file: one.py\n        of: ", ["first.tries"]),
    ("      stands: {file: two.py, symbol: ", ["Second", "Second.run"]),
    ("      stands:\n        file: two.py\n        symbol: fi", []),
    ("      absent: {name: x, in: [one.py, tw", ["two.py"]),
    ("      guard: {file: two.py, symbol: Second.run, code: sh", ["shout(x)"]),
    (
        "      guard: {file: two.py, symbol: Second.run, code: shout(x), under: ",
        ["loud"],
    ),
    (
        "      guard:\n        file: two.py\n        code: x\n        unless: lo",
        ["loud"],
    ),
    ("      gu", ["guard"]),
    ("      guard: {file: two.py, un", ["under", "unless"]),
    ("      guard:\n        sym", ["symbol"]),
    ("  ki", ["kind"]),
    ("  kind: no", ["note"]),
    ("  kind: note\n  starts: [core, tr", ["trainer"]),
    ("  references:\n  - key: x\n    se", ["section"]),
    ("  text: >-\n    ki", []),
    ("  text: Words\n    that go on, ki", []),
    ("- ki", ["kind"]),
    ("- id: other\n  at:\n    sy", ["symbol"]),
    (
        "      stands:\n        file: two.py\n        symbol: Second.run\n"
        "        code: |-\n          if l",
        ["if loud:"],
    ),
]


@pytest.mark.further
def test_what_a_claim_names_is_offered_of_the_file_beside_it(tmp_path):
    repository, own = tmp_path / "code", {"READERKIT_DATA": str(tmp_path / "data")}
    make_repository(repository, TWO_FILES)
    made = run_process("init", str(repository), "--no-site", environment=own)
    assert made.code == 0, made.err
    book = SimpleNamespace(root=repository / "book", repository=repository)

    async def scene(editor, book):
        file = book.root / "annotations/code/more.yaml"
        return await offered_behind(editor, file, [ENTRY + rows for rows, _ in OFFERED])

    found = played(book, scene)
    labels = [[item.label for item in items] for items in found]
    assert [*zip((rows for rows, _ in OFFERED), labels, strict=True)] == OFFERED
    [pattern] = [
        items[0]
        for (rows, _), items in zip(OFFERED, found, strict=True)
        if "|-" in rows  # no quotes where YAML takes them for code
    ]
    assert pattern.text_edit.new_text == "if loud:"


def test_entries_say_where_they_stand_and_names_what_they_are(edit):
    async def scene(editor, book):
        file = book.path("sample/linear.yaml")
        text = file.read_text()
        document, client = await editor.open(file, text), editor.client
        lenses = await client.text_document_code_lens_async(
            types.CodeLensParams(document)
        )
        links = await client.text_document_document_link_async(
            types.DocumentLinkParams(document)
        )
        row = next(n for n, r in enumerate(text.splitlines()) if "concepts: [all" in r)
        params = types.HoverParams(document, types.Position(row, 16))
        return lenses, links, await client.text_document_hover_async(params)

    lenses, links, hover = edit(scene)
    titles = [each.command.title for each in lenses]
    assert titles == [
        "lib/linear.py:14-17 (unreviewed)",
        "lib/linear.py:21-24 (unreviewed)",
    ]
    assert links[0].target.endswith("/lib/linear.py#L14-L17")
    assert hover.contents.value == "**All-reduce**\n\nEveryone gets the sum."


def test_broken_book_is_said_once_and_mending_it_is_enough(edit):
    async def scene(editor, book):
        path = book.path("concepts.yaml")
        good = path.read_text()
        path.write_text("- {id: [")
        client = editor.client
        source = book.repository / "lib" / "linear.py"
        document = await editor.open(source, SAMPLE)
        params = types.HoverParams(document, at(14))
        broken = await client.text_document_hover_async(params)
        path.write_text(good)
        document = await editor.open(path, good)
        saved = types.DidSaveTextDocumentParams(document)
        client.text_document_did_save(saved)
        await asyncio.wait_for(editor.told.get(), WAIT_S)
        mended = await client.text_document_hover_async(params)
        return broken, mended, editor.shown

    broken, mended, shown = edit(scene)
    assert broken is None and mended is not None
    assert len(shown) == 1 and "concepts.yaml:2:" in shown[0]


def test_notes_stand_beside_the_code_of_a_work_tree_that_nobody_committed(tmp_path):
    make_repository(tmp_path / "own", {"src/app.py": SAMPLE})
    done = run_process("init", cwd=tmp_path / "own")
    assert done.code == 0, done.err
    root, file = tmp_path / "own" / "book", tmp_path / "own" / "src" / "app.py"
    book = SampleBook(root, root.parent, "")

    async def scene(editor, _):
        document = await editor.open(file, f"LIMIT = 1\n\n{SAMPLE}")
        lenses = types.CodeLensParams(document)
        links = types.DocumentLinkParams(document)
        return (
            await editor.client.text_document_code_lens_async(lenses),
            await editor.client.text_document_document_link_async(links),
        )

    [lens], [link] = played(book, scene)
    row = (f"LIMIT = 1\n\n{SAMPLE}").splitlines()[lens.range.start.line]
    assert row.lstrip().startswith(("def ", "class ", "@"))
    assert link.target.startswith((root / "annotations").as_uri())


def test_extra_that_is_missing_is_said_in_one_line(tmp_path):
    write_files(tmp_path, {"pygls.py": "raise ImportError\n"})
    done = subprocess.run(
        [sys.executable, "-m", "readerkit", "lsp"],
        capture_output=True,
        text=True,
        env={"PYTHONPATH": str(tmp_path), "PATH": ""},
        cwd=tmp_path,
    )
    assert done.returncode == 1 and done.stdout == ""
    assert done.stderr.count("\n") == 1 and "readerkit-distributed[lsp]" in done.stderr


def test_other_commands_bring_nothing_of_it(locked):
    program = (
        "import sys\nfrom readerkit.cli import main\n"
        "try: main(sys.argv[1:])\nexcept SystemExit: pass\n"
        "heavy = {'pygls', 'lsprotocol', 'mcp', 'pydantic', 'cattrs', 'anyio'}\n"
        "print(sorted(heavy & set(sys.modules)), file=sys.stderr)"
    )
    book = ("--book", str(locked.book.root))
    for command in (
        ("annotate", *book),
        ("export", "--sarif", "-", *book),
        ("--help",),
    ):
        done = subprocess.run(
            [sys.executable, "-c", program, *command], capture_output=True, text=True
        )
        assert done.stderr.splitlines()[-1] == "[]", command


# --- a real editor ---

SCRIPT = """
local out, uri = {}, nil
local function put(name, value) out[name] = value end
local function ask(method, params)
  local got = vim.lsp.buf_request_sync(0, method, params, 20000)
  for _, each in pairs(got or {}) do return each.result end
end
vim.wait(20000, function() return next(vim.lsp.buf_get_clients(0)) ~= nil end)
local document = {uri = vim.uri_from_bufnr(0)}
put('hover', ask('textDocument/hover', {textDocument = document,
  position = {line = 13, character = 8}}))
put('lenses', ask('textDocument/codeLens', {textDocument = document}))
put('links', ask('textDocument/documentLink', {textDocument = document}))
local actions = ask('textDocument/codeAction', {textDocument = document,
  range = {start = {line = 21, character = 0}, ['end'] = {line = 21, character = 9}},
  context = {diagnostics = {}}})
put('action', actions[1].title)
vim.lsp.util.apply_workspace_edit(actions[1].edit, 'utf-16')
vim.cmd('silent wall')
vim.cmd('edit %(notes)s')
vim.wait(20000, function() return #vim.diagnostic.get(0) > 0 end)
local found = {}
for _, each in ipairs(vim.diagnostic.get(0)) do table.insert(found, each.message) end
put('diagnostics', found)
local file = io.open('%(answer)s', 'w'); file:write(vim.json.encode(out)); file:close()
vim.cmd('qall!')
"""


@pytest.fixture
def nvim() -> Iterator[str]:
    found = shutil.which("nvim")
    if found is None:
        pytest.skip("no nvim here: apt-get install neovim")
    yield found


def settings_of_neovim(command: list[str]) -> str:
    """Return what docs/editors.md has of this version, with another command."""
    blocks = re.findall(
        r"```lua\n(.*?)```", (ROOT / "docs/editors.md").read_text(), re.S
    )
    assert blocks[1].count('{ "readerkit", "lsp" }') == 1
    quoted = ", ".join(json.dumps(each) for each in command)
    return blocks[1].replace('{ "readerkit", "lsp" }', f"{{ {quoted} }}")


@pytest.mark.further
def test_neovim_shows_notes_and_begins_one(locked, nvim, tmp_path):
    answer, notes = tmp_path / "answer.json", locked.book.path("sample/my-notes.yaml")
    command = [sys.executable, *COMMAND, str(locked.book.root)]
    script, init = tmp_path / "scene.lua", tmp_path / "init.lua"
    script.write_text(SCRIPT % {"notes": notes, "answer": answer})
    init.write_text(settings_of_neovim(command))
    file = locked.book.repository / "lib" / "linear.py"
    own = {f"XDG_{kind}_HOME": str(tmp_path) for kind in ("CONFIG", "DATA", "STATE")}
    subprocess.run(
        [nvim, "--headless", "-n", "-i", "NONE", "-u", init, file, "-S", script],
        timeout=WAIT_S,
        check=True,
        capture_output=True,
        stdin=subprocess.DEVNULL,
        env={**os.environ, **own},
    )
    told = json.loads(answer.read_text())
    assert "One switch picks it." in told["hover"]["contents"]["value"]
    assert [each["range"]["start"]["line"] for each in told["lenses"]] == [13, 20]
    assert len(told["links"]) == 2
    assert told["action"] == "readerkit: note here"
    [entry] = yaml.safe_load(notes.read_text())
    assert entry["at"]["code"] == "loss = ..."
    # What is yet to be typed is what is wrong.
    assert any("title" in message for message in told["diagnostics"])
