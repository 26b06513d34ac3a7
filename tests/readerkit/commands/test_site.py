"""``readerkit site``: what is built, what is written again, what is refused."""

from __future__ import annotations

import http.client
import json
import re
import shutil
import subprocess
import sys
import time
from contextlib import closing

import pytest

from readerkit.site import serve as site_serve
from readerkit.site.inputs import find_inputs
from readerkit.system.status import Status
from tests.helpers import (
    ANNOTATIONS,
    ROOT,
    WAIT_S,
    make_book,
    run,
    serving,
    write_files,
)

pytestmark = pytest.mark.sampled

FILE = "read/sample/lib/linear.py.html"
HOSTILE_NAME = "lib/<img src=x onerror=alert(1)>#?\u05d0.py"


@pytest.fixture
def book(tmp_path):
    return make_book(tmp_path)


def build(capsys, tmp_path, book, *options):
    out = tmp_path / "site"
    result = run(
        capsys,
        "site",
        "build",
        "--book",
        str(book.root),
        "--output",
        str(out),
        *options,
    )
    return out, result


def stamps(site):
    return {
        str(path.relative_to(site)): path.stat().st_mtime_ns
        for path in site.rglob("*")
        if path.is_file() and path.name != ".readerkit"
    }


@pytest.mark.further
def test_build_says_where_to_open_it(capsys, tmp_path, book):
    out, result = build(capsys, tmp_path, book)
    assert result.code == 0, result.err
    assert result.out.splitlines()[-1] == f"open {out / 'index.html'}"
    assert (out / "index.html").is_file()
    html = (out / FILE).read_text()
    assert 'id="close"' in html
    assert "The closing collective" in html
    assert book.commit in html
    assert "Nobody" in html  # the holder of the copyright


def test_every_link_and_every_id_holds(capsys, tmp_path, book):
    out, _ = build(capsys, tmp_path, book)
    pages = {path: path.read_text() for path in out.rglob("*.html")}
    ids = {
        path: set(re.findall(r'\bid="?([^" >]+)', text)) for path, text in pages.items()
    }
    for path, text in pages.items():
        found = re.findall(r'\bid="?([^" >]+)', text)
        assert len(found) == len(set(found)), path
        for address in re.findall(r'\b(?:href|src)="?([^" >]+)', text):
            if address.startswith(("https://", "file://")):
                continue
            where, _, fragment = address.partition("#")
            target = (path.parent / where).resolve() if where else path
            assert target.is_file(), (path, address)
            lines = re.fullmatch(r"L(\d+)-L\d+", fragment)
            wanted = f"L{lines[1]}" if lines else fragment
            assert not wanted or wanted in ids[target], (path, address)


def test_a_second_build_changes_nothing(capsys, tmp_path, book):
    out, _ = build(capsys, tmp_path, book)
    before = stamps(out)
    _, result = build(capsys, tmp_path, book)
    assert "nothing changed" in result.out
    assert stamps(out) == before


def test_a_changed_note_rewrites_only_what_shows_it(capsys, tmp_path, book):
    other = {"lib/other.py": "from lib.linear import step\n"}
    book = make_book(tmp_path / "two", files=other)
    out, _ = build(capsys, tmp_path, book)
    before = stamps(out)
    note = book.path("sample/linear.yaml")
    note.write_text(note.read_text().replace("Half the bytes.", "Half of them."))
    _, result = build(capsys, tmp_path, book)
    assert result.code == 0, result.err
    assert "Half of them." in (out / FILE).read_text()
    changed = {path for path, stamp in stamps(out).items() if before.get(path) != stamp}
    assert FILE in changed
    assert "read/sample/lib/other.py.html" not in changed
    assert not [path for path in changed if path.startswith("theme/")]


def test_a_page_that_somebody_damaged_is_made_again(capsys, tmp_path, book):
    out, _ = build(capsys, tmp_path, book)
    (out / FILE).write_text("damaged")
    _, result = build(capsys, tmp_path, book)
    assert "1 of them written" in result.out
    assert "damaged" not in (out / FILE).read_text()


@pytest.mark.further
def test_a_note_that_does_not_hold_leaves_the_old_site(capsys, tmp_path, book):
    out, _ = build(capsys, tmp_path, book)
    before = stamps(out)
    note = book.path("sample/linear.yaml")
    note.write_text(ANNOTATIONS.replace("One switch picks it.", "$\\foo$ picks it."))
    _, result = build(capsys, tmp_path, book)
    assert result.code == 1
    assert re.search(r"sample/linear\.yaml:1:\d+: close: formula", result.err)
    assert stamps(out) == before


def test_a_killed_build_leaves_the_old_site(capsys, tmp_path, book):
    out, _ = build(capsys, tmp_path, book)
    before = stamps(out)
    note = book.path("sample/linear.yaml")
    for wait in (0.3, 0.5, 0.7, 0.9):
        note.write_text(note.read_text() + "# changed\n")
        command = ["site", "build", "--book", str(book.root), "--output", str(out)]
        process = subprocess.Popen([sys.executable, "-m", "readerkit", *command])
        time.sleep(wait)
        process.kill()
        process.wait()
        assert stamps(out).keys() == before.keys()
        assert (out / FILE).read_text().endswith("</html>")
    _, result = build(capsys, tmp_path, book)
    assert result.code == 0
    assert stamps(out).keys() == before.keys()


@pytest.mark.parametrize("there", ["folder", "link"])
def test_what_is_no_site_is_never_replaced(capsys, tmp_path, book, there):
    place = tmp_path / "site"
    if there == "folder":
        write_files(place, {"mine.txt": "mine"})
    else:
        write_files(tmp_path / "home", {"mine.txt": "mine"})
        place.symlink_to(tmp_path / "home")
    _, result = build(capsys, tmp_path, book)
    assert result.code == 2
    assert "no site of readerkit" in result.err
    assert (place / "mine.txt").read_text() == "mine"


def test_hostile_files_and_names_are_only_shown(capsys, tmp_path):
    files = {
        HOSTILE_NAME: "def f(): ...\nx = '</div></script><script>alert(1)</script>'\n",
        "lib/long.py": "x = '" + "a" * 100_000 + "'\n",
        "lib/many.py": "y = 1\n" * 4_000,
        "lib/huge.py": "z = '" + "b" * 300_000 + "'\n",
        "lib/bytes.py": b"# \xff\xfe \x01 \x1b[2J \xe2\x80\xae\n",
        "lib/binary.py": b"\x7fELF\x00\x01word\n" * 9,
        "lib/wide.py": "word = 1\n".encode("utf-16"),
        "lib/broken.py": "def (((\n",
    }
    notes = ANNOTATIONS.replace(
        "Half the bytes.", "</script><script>alert(1)</script> [x](javascript:alert(1))"
    )
    book = make_book(tmp_path, files=files, annotations=notes)
    out, result = build(capsys, tmp_path, book)
    assert result.code == 0, result.err
    for path in out.rglob("*.html"):
        html = path.read_text()
        assert "<script>" not in html, path
        assert not re.search(r'href="(?!https://|file://)\w+:', html), path
        assert "<" not in re.search("<title[^>]*>(.*?)</title>", html, re.S)[1], path
        assert "\u202e" not in html and "\x1b" not in html, path
    many = (out / "read/sample/lib/many.py.html").read_text()
    assert "<div id=L4000>" in many
    for name, why in (("binary", "got a binary file"), ("wide", "got UTF-16")):
        page = (out / f"read/sample/lib/{name}.py.html").read_text()
        assert why in page
        assert "word" not in page and "U+0000" not in page
    huge = (out / "read/sample/lib/huge.py.html").read_text()
    assert "too large" in huge or "skipped" in huge
    # A browser takes % and # and ? of an address apart: the name must be quoted twice.
    assert list((out / "read" / "sample" / "lib").glob("*onerror*.html"))


def test_an_unknown_note_of_a_path_is_a_fault_with_its_place(capsys, tmp_path, book):
    text = "failures:\n  - {id: a, symptom: s, cause: c, notes: [nobody]}\n"
    write_files(book.root, {"site/pages/paths.yaml": text})
    _, result = build(capsys, tmp_path, book)
    assert result.code == 1
    assert "site/pages/paths.yaml:2:" in result.err
    assert "nobody" in result.err


def test_a_diagram_that_the_source_does_not_bear_out_is_refused(capsys, tmp_path, book):
    claims = (
        "title: t\nalternative: a\nclaims:\n  - node: n\n    upstream: sample\n"
        "    at: {file: lib/linear.py, symbol: step}\n    holds: [all_gather]\n"
    )
    pages = "site/pages/diagrams"
    drawn = {f"{pages}/d.mmd": "flowchart LR\n n[x]\n", f"{pages}/d.yaml": claims}
    write_files(book.root, drawn)
    _, result = build(capsys, tmp_path, book)
    assert result.code == 1
    assert f"{pages}/d.yaml:7:" in result.err
    assert "all_gather" in result.err


SLIPS = {
    "mermaid": ({"diagrams/d.mmd": "flowchart LR\n  a --> b\n  y -->\n"}, "d.mmd:3:1"),
    "mermaid below a comment": (
        {"diagrams/d.mmd": "%% what\nflowchart LR\n  a --> --> b\n  a --> b\n"},
        "d.mmd:3:1",
    ),
    "no claims": (
        {"diagrams/d.mmd": "flowchart LR\n", "diagrams/d.yaml": None},
        "d.mmd:1",
    ),
    "claims of another type": (
        {"diagrams/d.yaml": "title: t\nclaims: 3\n"},
        "d.yaml:2:9",
    ),
    "an anchor of another type": (
        {
            "diagrams/d.yaml": "title: t\nalternative: a\nclaims:\n- {node: a, "
            "upstream: sample, at: {file: [1]}, holds: [x]}\n"
        },
        "d.yaml:4:42",
    ),
    "two points in a number": (
        {"chapters/01-a.md": "# A\n\n```let\nx = 1.2.3\n```\n"},
        "01-a.md:4:1: ",
    ),
    "a number without end": (
        {"chapters/01-a.md": "# A\n\n```let\nx = 1e999\n```\n"},
        "01-a.md:4:1: ",
    ),
    "a schedule of nothing": (
        {"chapters/01-a.md": "# A\n\n```schedule\n```\n"},
        "01-a.md:3:1: not a schedule",
    ),
    "bytes": ({"chapters/01-a.md": b"# A\n\n\xe9\n"}, "01-a.md:3:1: file is not UTF-8"),
}


@pytest.mark.parametrize("name", SLIPS)
def test_a_slip_is_one_message_with_its_place(capsys, tmp_path, book, name):
    files, told = SLIPS[name]
    whole = {
        "diagrams/d.mmd": "flowchart LR\n  a --> b\n",
        "diagrams/d.yaml": "title: t\nalternative: a\nclaims: []\n",
    }  # drawing takes long: not where the slip is elsewhere
    whole = {**(whole if "d.yaml:" in told or "d.mmd:" in told else {}), **files}
    written = {f"site/pages/{n}": text for n, text in whole.items() if text is not None}
    write_files(book.root, written)
    out, result = build(capsys, tmp_path, book)
    assert (result.code, out.exists()) == (1, False)
    assert told in result.err
    assert "Traceback" not in result.err


def test_a_template_that_cannot_be_read_is_named(capsys, tmp_path, book):
    for folder in ("templates", "theme"):
        shutil.copytree(ROOT / "site" / folder, book.root / "site" / folder)
    template = book.root / "site" / "templates" / "parts.html"
    for slip in ("{% if %}", "{{ nobody }}"):
        template.write_text((ROOT / "site/templates/parts.html").read_text())
        text = template.read_text()
        at = text.index("{% macro excerpt")
        template.write_text(text[:at] + slip + text[at:])
        _, result = build(capsys, tmp_path, book)
        assert result.code == 1
        line = text.count("\n", 0, at) + 1
        assert f"site/templates/parts.html:{line}:" in result.err


@pytest.mark.further
def test_files_of_others_in_a_site_are_not_replaced(capsys, tmp_path, book):
    out, _ = build(capsys, tmp_path, book)
    mine = out / "read" / "my-notes.txt"
    mine.write_text("mine")
    book.path("sample/linear.yaml").write_text(ANNOTATIONS.replace("Half", "Some"))
    _, result = build(capsys, tmp_path, book)
    assert result.code == 2
    assert "got read/my-notes.txt, which no build wrote" in result.err
    assert mine.read_text() == "mine"


# --- serve ---


@pytest.fixture
def served(book):
    with serving(book) as port:
        yield port


def ask(port, path, method="GET", body=None, **headers):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=WAIT_S)
    connection.putrequest(method, path, skip_host="Host" in headers)
    data = body.encode() if body is not None else b""
    if body is not None:
        connection.putheader("Content-Length", str(len(data)))
    for name, value in headers.items():
        connection.putheader(name, value)
    connection.endheaders(data)
    with closing(connection), connection.getresponse() as answer:
        text = answer.read().decode("utf-8", "replace")
        return answer.status, text, dict(answer.getheaders())


def test_serve_answers_this_machine_and_nothing_outside_the_site(served, book):
    status, text, answer = ask(served, f"/{FILE}")
    assert status == 200
    assert "The closing collective" in text
    assert "/-/live.js" in text
    assert answer["x-content-type-options"] == "nosniff"
    outside = [
        "/../../etc/passwd",
        "/%2e%2e/%2e%2e/etc/passwd",
        "/..%2f..%2fetc/passwd",
        "//etc/passwd",
        "/read/sample/../../../../etc/passwd",
        f"/{book.root}/annotations/concepts.yaml",
        "/theme/../.readerkit",
        "/nothing.html",
    ]
    assert {ask(served, path)[0] for path in outside} == {404}
    for name in ("evil.example", "127.0.0.1.evil.example", "localhost.evil.example"):
        assert ask(served, "/", Host=name)[0] == 400
    assert ask(served, "/", Host=f"localhost:{served}")[0] == 200


def test_serve_keeps_what_was_read_for_its_own_pages_only(served):
    own = {"Origin": f"http://127.0.0.1:{served}", "Content-Type": "application/json"}
    assert (
        ask(served, "/-/read", "POST", '["close"]', Origin="http://evil.example")[0]
        == 403
    )
    assert ask(served, "/-/read", "POST", '["close"]')[0] == 403
    assert ask(served, "/-/read", "POST", '{"a": 1}', **own)[0] == 400
    assert ask(served, "/-/read", "POST", "[1]", **own)[0] == 400
    for no_ids in ("[" * 100_000, r'["\ud800"]', r'["close", "\udfffa"]', '["\x00'):
        assert ask(served, "/-/read", "POST", no_ids, **own)[0] == 400
    assert ask(served, "/-/read", "POST", '["close"]', **own)[0] == 200
    assert json.loads(ask(served, "/-/read")[1]) == ["close"]


def states(port):
    """Yield what open pages are told, for as long as somebody asks."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=WAIT_S)
    connection.request("GET", "/-/changes")
    with closing(connection), connection.getresponse() as answer:
        for line in answer:
            if line.startswith(b"data: "):
                yield json.loads(line.removeprefix(b"data: "))


def test_serve_takes_up_a_changed_note_and_survives_a_broken_one(served, book):
    note = book.path("sample/linear.yaml")

    def shows(text):
        deadline = time.monotonic() + 60
        while text not in ask(served, f"/{FILE}")[1]:
            assert time.monotonic() < deadline, text
            time.sleep(0.1)

    shows("Half the bytes.")
    note.write_text(ANNOTATIONS.replace("Half the bytes.", "Half of them."))
    shows("Half of them.")
    note.write_text("- {nothing: here}\n")
    assert any("linear.yaml" in told["fault"] for told in states(served))
    shows("Half of them.")
    note.write_text(ANNOTATIONS)
    shows("Half the bytes.")


class Writes(Status):
    """Writes a file once, while a build says what it does."""

    def __init__(self, path, text):
        super().__init__()
        self.path, self.text = path, text

    def show(self, doing, done=0, of=0):
        if self.path.read_text() != self.text:
            self.path.write_text(self.text)


NO_SUCH_PLACE = ANNOTATIONS.replace("symbol: step", "symbol: st")
OTHERWISE = ANNOTATIONS.replace("Half the bytes.", "Half of them.")


@pytest.mark.parametrize("half", ["", NO_SUCH_PLACE, ANNOTATIONS])
def test_what_is_written_during_a_build_is_in_it(book, half):
    note = book.path("sample/linear.yaml")
    note.write_text(half)
    server = site_serve.Server(find_inputs(book.root), book.root)
    server.build(Writes(note, OTHERWISE))
    assert b"Half of them." in server.files[FILE]()


def test_what_was_written_before_anybody_watched_is_taken_up(book):
    server = site_serve.Server(find_inputs(book.root), book.root)
    server.build()
    book.path("sample/linear.yaml").write_text(OTHERWISE)
    server.catch_up()
    assert b"Half of them." in server.files[FILE]()
    state = server.state
    server.catch_up()
    assert server.state == state


def test_a_taken_port_is_said(capsys, book, served):
    result = run(
        capsys, "site", "serve", "--port", str(served), "--book", str(book.root)
    )
    assert result.code == 1
    assert "Address already in use" in result.err


REACHING = [
    "{{ cycler.__init__.__globals__.os.system(MARK) }}",
    "{{ joiner.__init__.__globals__.os.popen(MARK).read() }}",
    "{{ self.__init__.__globals__.__builtins__.__import__('os').system(MARK) }}",
    "{{ ''.__class__.__mro__[1].__subclasses__() }}",
    "{{ ''['__cla' ~ 'ss__'].__base__.__subclasses__() }}",
    "{{ (''|attr('__class__')).__base__.__subclasses__() }}",
    "{{ page.__class__.__init__.__globals__ }}",
    "{{ '{0.__class__.__init__.__globals__}'.format(page) }}",
    "{{ href.__globals__ }}",
    "{{ range(999999999)|list }}",
]


@pytest.mark.parametrize("reach", REACHING)
def test_a_template_of_a_strangers_book_reaches_no_python(
    capsys, tmp_path, book, reach
):
    for folder in ("templates", "theme"):
        shutil.copytree(ROOT / "site" / folder, book.root / "site" / folder)
    mark = tmp_path / "mark"
    template = book.root / "site" / "templates" / "parts.html"
    text = template.read_text()
    at = text.index("{% macro excerpt")
    reach = reach.replace("MARK", repr(f"touch {mark}"))
    template.write_text(text[:at] + reach + text[at:])
    _, result = build(capsys, tmp_path, book)
    assert not mark.exists()
    assert result.code == 1
    assert f"site/templates/parts.html:{text.count(chr(10), 0, at) + 1}:" in result.err
    assert "Traceback" not in result.err
