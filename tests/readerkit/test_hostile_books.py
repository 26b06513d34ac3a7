"""A book from a stranger: no file of it names anything outside, and nothing is lost."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from readerkit.errors import ContentError
from readerkit.evidence.record import Record
from tests.helpers import ROOT, SampleBook, run, run_process, write_files
from tests.served_quiz import make_quiz_book

pytestmark = pytest.mark.sampled

SECRET = "the-secret-of-this-machine"
OUTSIDE = [
    "../../../secret.txt",
    "lib/../../secret.txt",
    "{secret}",
    "//{secret}",
    "./lib/linear.py",
    "lib//linear.py",
    "lib/linear.py/",
    "lib\\linear.py",
    "C:/secret.txt",
    ".git/config",
    "lib/.GIT/config",
    "GIT~1/config",
    ".git./config",
    "lib/\u202elinear.py",
    "lib/line\u200bar.py",
    "lib/linear.py\0",
    "lib/li\nnear.py",
    "x" * 300,
    "",
]
NO_IDS = ["../../../../victim", "/victim", "..", "AB" * 20, "ab" * 19, "ab" * 21]
NO_IDS += ["ab" * 20 + "\n", "HEAD", "\0" * 40, "../" * 13 + "x"]
ODD: list[Any] = [None, 5, True, ["lib/linear.py"], {"a": 1}]


@pytest.fixture(scope="module")
def template(tmp_path_factory) -> tuple[Path, SampleBook]:
    folder = tmp_path_factory.mktemp("stranger")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("READERKIT_SCHEMES", "file")
        patch.setenv("READERKIT_CACHE", str(folder / "cache"))
        patch.setenv("READERKIT_DATA", str(folder / "data"))
        return folder, make_quiz_book(folder)


class Stranger:
    """A copy of the book, a secret beside it, and a file that an id could lead to."""

    def __init__(self, template, folder: Path, capsys) -> None:
        made, book = template
        self.root = folder / "shared" / "book"
        shutil.copytree(book.root, self.root)
        shutil.copytree(made / "cache", folder / "cache")
        self.secret = folder / "secret.txt"
        self.victim = folder / "victim"
        for path in (self.secret, folder / "shared" / "secret.txt", self.victim):
            path.write_text(f"{SECRET}\n" * 50)
        self._capsys = capsys

    def change(self, name: str, *keys: str | int, to: object) -> None:
        """Put a value in the place of another one in a JSON file."""
        path = self.root / name
        data = json.loads(path.read_text())
        at = data
        for key in keys[:-1]:
            at = at[key]
        at[keys[-1]] = to
        path.write_text(json.dumps(data))

    def refuses(self, *command: str, file: str) -> str:
        """Run a command; it ends in a clear message, and nothing was read or lost."""
        done = run(self._capsys, *command, "--book", str(self.root))
        assert done.code == 1, done.out + done.err
        assert SECRET not in done.out + done.err
        assert "Traceback" not in done.err
        assert file in done.err
        assert done.err.replace("\n", "").isprintable()
        assert self.victim.read_text().startswith(SECRET)
        return done.err


@pytest.fixture
def stranger(template, tmp_path, capsys) -> Stranger:
    return Stranger(template, tmp_path, capsys)


def path_of(value: object, stranger: Stranger) -> object:
    if isinstance(value, str):
        return value.replace("{secret}", str(stranger.secret))
    return value


KEYS = "quizzes/7/keys.lock"
SLOT = "line/key"


@pytest.mark.parametrize("value", [*OUTSIDE, *ODD])
def test_path_of_a_quiz_key_is_inside(value, stranger):
    stranger.change(KEYS, "places", SLOT, "path", to=path_of(value, stranger))
    said = stranger.refuses("quiz", "7", "--json", file=f"{KEYS}:1:1")
    assert f"{SLOT}: " in said and "path" in said


@pytest.mark.parametrize("value", [*NO_IDS, 5, True, ["ab" * 20], "", None])
def test_blob_of_a_quiz_key_is_an_id_and_no_file_is_removed_for_it(value, stranger):
    stranger.change(KEYS, "places", SLOT, "blob", to=value)
    said = stranger.refuses("quiz", "7", "--json", file=f"{KEYS}:1:1")
    assert f"{SLOT}: " in said and ".blob`" in said


@pytest.mark.parametrize(
    "lines", [(0, 1), (-5, 5), (3, 1), ("1", 2), (1.5, 2), (None, 1), (True, 2)]
)
def test_lines_of_a_quiz_key_are_lines(lines, stranger):
    for name, value in zip(("first", "last"), lines, strict=True):
        stranger.change(KEYS, "places", SLOT, name, to=value)
    said = stranger.refuses("quiz", "7", "--json", file=f"{KEYS}:1:1")
    assert f"{SLOT}: " in said and ("lines " in said or "`int`" in said)


@pytest.mark.parametrize(
    "value", ["../x", "/x", "", "A", "a/b", "javascript:", 5, None]
)
def test_upstream_of_a_quiz_key_is_a_name(value, stranger):
    stranger.change(KEYS, "places", SLOT, "upstream", to=value)
    said = stranger.refuses("quiz", "7", "--json", file=KEYS)
    assert f"{SLOT}: " in said and "upstream" in said


LOCK = "annotations/sample.lock"


@pytest.mark.parametrize("value", [*OUTSIDE, *ODD])
@pytest.mark.parametrize("place", ["book", "overlay"])
def test_path_of_a_locked_anchor_is_inside(value, place, stranger, tmp_path):
    anchor = {
        "path": path_of(value, stranger),
        "span": [1, 2],
        "fingerprint": dict.fromkeys(
            ("code", "lines", "before", "after", "symbol"), "a"
        ),
        "reviewed": "",
    }
    data = json.loads((stranger.root / LOCK).read_text())
    text = json.dumps({**data, "anchors": {"close": anchor}})
    if place == "book":
        (stranger.root / LOCK).write_text(text)
    else:
        write_files(tmp_path / "data" / "book", {LOCK: text})
    said = stranger.refuses("annotate", "--check", file="sample.lock:1:1")
    assert "close: path " in said


@pytest.mark.parametrize("value", [*OUTSIDE[:-1], ""])
def test_path_of_a_locked_file_is_inside(value, stranger):
    files = {str(path_of(value, stranger)): "ab" * 20}
    stranger.change(LOCK, "files", to=files)
    assert "got path " in stranger.refuses("annotate", file=f"{LOCK}:1:1")


@pytest.mark.parametrize("value", [*NO_IDS, *ODD, ""])
def test_blob_of_a_locked_file_is_an_id(value, stranger):
    stranger.change(LOCK, "files", "lib/linear.py", to=value)
    assert "blob id " in stranger.refuses("annotate", file=f"{LOCK}:1:1")


@pytest.mark.parametrize("value", [*NO_IDS, *ODD])
def test_commit_of_a_lock_is_an_id(value, stranger):
    stranger.change(LOCK, "commit", to=value)
    assert "commit id " in stranger.refuses("annotate", file=f"{LOCK}:1:1")


RECORD = "annotations/records/ddp_torch.json"


NO_NAMES = ["../../x", "/x", "", "A", "a/b", "ddp\n", "ddp.py", "-x", "a" * 61]
IN_RECORDS: list[tuple[tuple[str | int, ...], list[Any]]] = [
    (("lit", 0, "path"), [*OUTSIDE, *ODD]),
    (("events", 0, "stacks", 0, 0, "path"), [*OUTSIDE, *ODD]),
    (("blobs", "minis", "mini_impls/ddp.py"), [*NO_IDS, *ODD, ""]),
    (("blobs", "minis"), [{path: "ab" * 20} for path in OUTSIDE if "{" not in path]),
    (("pins", "pytorch"), [*NO_IDS, *ODD, ""]),
    *(((key,), [*NO_NAMES, *ODD]) for key in ("comparison", "mini", "upstream")),
]


@pytest.mark.parametrize(("keys", "values"), IN_RECORDS)
def test_paths_and_ids_of_a_record_are_checked(keys, values, stranger):
    shipped = (ROOT / RECORD).read_text()
    for value in values:
        write_files(stranger.root, {RECORD: shipped})
        stranger.change(RECORD, *keys, to=path_of(value, stranger))
        with pytest.raises(ContentError, match="not a readable record") as refused:
            Record.parse((stranger.root / RECORD).read_text(), RECORD)
        assert str(keys[0]) in str(refused.value) or "path " in str(refused.value)
        assert str(refused.value).isprintable()
    stranger.refuses("annotate", "close", file=f"{RECORD}:1:1")


@pytest.mark.parametrize("value", [each for each in OUTSIDE if "\0" not in each])
@pytest.mark.parametrize("key", ["include", "licence"])
def test_paths_of_an_upstream_are_inside(key, value, stranger):
    value = path_of(value, stranger)
    path = "annotations/upstreams.yaml"
    if key == "include":
        stranger.change(path, 0, "include", to=["lib/*.py", value])
    else:
        stranger.change(path, 0, "licence", "path", to=value)
    stranger.refuses("annotate", "--check", file=f"{path}:1:")


@pytest.mark.parametrize(
    ("key", "value"),
    [
        *(("tag", each) for each in ("--upload-pack=x", "-x", "v*", "v?", "v[1]")),
        *(("tag", each) for each in ("v1 ", "v\n1", "", "../v1", "v1.", "a" * 300)),
        *(("tag", each) for each in ("v1^{}", "v1~1", "v1:x", "@", "v1\\x", *ODD)),
        *(("folder", each) for each in ("../own", "../../../../etc", "/etc", "~", "")),
        *(("folder", each) for each in (".", "..", "a/b", "lib\0", "lib\n", *ODD)),
    ],
)
def test_tag_and_folder_of_an_upstream_are_names(key, value, stranger):
    path = "annotations/upstreams.yaml"
    stranger.change(path, 0, key, to=value)
    said = stranger.refuses("annotate", "--check", file=f"{path}:1:")
    assert f"'{key}'" in said and ("^[" not in said)


@pytest.mark.parametrize("glob", ["*.py", "lib/*.py", "ours.py", "ours*/x.py"])
def test_a_folder_includes_what_is_below_it(glob, stranger):
    path = "annotations/upstreams.yaml"
    pins = json.loads((stranger.root / path).read_text())
    ours = {"name": "ours", "title": "Ours", "folder": "ours", "include": [glob]}
    write_files(stranger.root, {path: json.dumps([*pins, ours])})
    said = stranger.refuses("annotate", file=f"{path}:1:")
    assert f"got '{glob}', expected 'ours/{glob}'" in said


PAGES = "site/pages/"


@pytest.mark.parametrize(
    ("name", "command"),
    [
        ("annotations/upstreams.yaml", "annotate --check"),
        ("annotations/concepts.yaml", "annotate --check"),
        ("annotations/sample.lock", "annotate"),
        ("annotations/sample/linear.yaml", "annotate"),
        ("annotations/sample/more.es.yaml", "annotate close"),
        ("annotations/mirrors/m.yaml", "annotate"),
        ("annotations/records/x.json", "annotate close"),
        ("quizzes/7/bank.yaml", "quiz 7 --json"),
        ("quizzes/7/all.yaml", "quiz 7 --json"),
        ("quizzes/7/keys.lock", "quiz 7 --json"),
        ("quizzes/7", "quiz 7 --json"),
        (f"{PAGES}paths.yaml", "annotate --check"),
        (f"{PAGES}chapters/01-x.md", "annotate --check"),
        (f"{PAGES}chapters/01-x.md", "site build --output out"),
        (f"{PAGES}diagrams/x.mmd", "site build --output out"),
        (f"{PAGES}labs/01.md", "annotate --check"),
    ],
)
def test_no_file_of_a_book_is_a_link_out_of_it(
    name, command, stranger, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    path = stranger.root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    outside = tmp_path / "outside"
    if path.is_dir() or path.exists():
        path.rename(outside)
    else:
        outside.write_text(SECRET)
    path.symlink_to(outside)
    said = stranger.refuses(*command.split(), file=name)
    assert "a link that leads out of the book" in said


def test_links_inside_a_book_and_a_linked_folder_are_read(stranger, tmp_path):
    (stranger.root / "annotations").rename(tmp_path / "notes")
    (stranger.root / "annotations").symlink_to(tmp_path / "notes")
    notes = tmp_path / "notes" / "sample"
    (notes / "linear.yaml").rename(tmp_path / "notes" / "kept")
    (notes / "linear.yaml").symlink_to(tmp_path / "notes" / "kept")
    done = run(stranger._capsys, "annotate", "--book", str(stranger.root))
    assert (done.code, done.err) == (0, "")


@pytest.mark.parametrize("path", ["~/secret.txt", "-o/secret.txt", "lib/link.py"])
def test_a_quiz_shows_no_line_from_elsewhere(path, stranger, monkeypatch):
    monkeypatch.setenv("HOME", str(stranger.secret.parent))
    (stranger.root / "lib").mkdir()
    (stranger.root / "lib" / "link.py").symlink_to(stranger.secret)
    place = {"upstream": "sample", "path": path, "first": 1, "last": 2}
    data = json.loads((stranger.root / KEYS).read_text())
    data["places"] = {**dict.fromkeys(data["places"], place)}
    write_files(stranger.root, {KEYS: json.dumps(data)})
    command = ("quiz", "7", "--only", "line", "--json", "--book", str(stranger.root))
    done = run_process(*command)
    assert SECRET not in done.out + done.err and "Traceback" not in done.err


@pytest.mark.parametrize(
    "pattern", ["../*.py", "/**/*.py", "lib/../**", "*/../x", ".git/*"]
)
def test_globs_of_an_upstream_are_inside(pattern, stranger):
    path = "annotations/upstreams.yaml"
    stranger.change(path, 0, "include", to=[pattern])
    stranger.refuses("annotate", "--check", file=f"{path}:1:")


@pytest.mark.parametrize("value", [each for each in OUTSIDE if "\0" not in each])
@pytest.mark.parametrize("file", ["annotation", "mirror", "question"])
def test_path_of_an_anchor_is_inside(file, value, stranger):
    at = {"file": path_of(value, stranger), "symbol": "Linear.forward"}
    note = {
        "id": "x",
        "at": at,
        "kind": "note",
        "title": "T",
        "text": "T",
        "concepts": ["collectives"],
    }
    section = {
        "title": "T",
        "relation": "same",
        "upstream": ["close"],
        "mini": [at],
    }
    mirror = {"id": "m", "title": "T", "idea": "I", "sections": [section]}
    if file == "question":
        path = "quizzes/7/all.yaml"
        text = (stranger.root / path).read_text()
        before = "file: lib/linear.py, symbol: Linear.forward"
        assert before in text
        after = f"file: {json.dumps(at['file'])}, symbol: Linear.forward"
        write_files(stranger.root, {path: text.replace(before, after, 1)})
        stranger.refuses("quiz", "lint", "7", file=f"{path}:")
        return
    path = {"annotation": "sample/x.yaml", "mirror": "mirrors/m.yaml"}[file]
    body = json.dumps([note] if file == "annotation" else mirror)
    write_files(stranger.root / "annotations", {path: body})
    stranger.refuses("annotate", "--check", file=f"annotations/{path}:1:")
