"""Notes go out to other programs' files, and come back to the same lines."""

import json
import re
import shutil
import threading
from pathlib import Path

import jsonschema_rs
import pytest
import yaml

from readerkit.model.anchor import Span
from readerkit.system.json_file import MAX_BYTES
from tests.helpers import (
    ANNOTATIONS,
    ROOT,
    SAMPLE,
    Result,
    make_book,
    make_repository,
    run,
    run_process,
    write_files,
)
from tests.quick import quick_first

PLACE = {
    "type": "object",
    "required": ["line", "character"],
    "properties": {"line": {"type": "number"}, "character": {"type": "number"}},
}
# What the extension asks of its files, in our own words.
CODE_TOUR = {
    "type": "object",
    "required": ["title", "steps"],
    "properties": {
        **{key: {"type": "string"} for key in ("title", "description", "ref")},
        "isPrimary": {"type": "boolean"},
        "steps": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["description"],
                "properties": {
                    **{
                        key: {"type": "string"}
                        for key in ("file", "directory", "uri", "title", "description")
                    },
                    "line": {"type": "number"},
                    "selection": {
                        "type": "object",
                        "required": ["start", "end"],
                        "properties": {"start": PLACE, "end": PLACE},
                    },
                    "commands": {"type": "array", "items": {"type": "string"}},
                },
            },
        },
    },
}
LINES = SAMPLE.splitlines()


def tour(*steps: dict, **more: object) -> str:
    return json.dumps({"title": "A tour", "steps": steps, **more})


def step(line: int | None = None, **more: object) -> dict:
    found = {"file": "lib/linear.py", "description": "Words.", "title": "Here", **more}
    return found if line is None else {**found, "line": line}


def tree(folder: Path) -> dict[str, bytes]:
    return {str(p): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def imported(desk, name: str, text: str, *more: str) -> Result:
    form = "--quotes" if name.endswith("jsonld") else "--codetour"
    file = desk.book.root.parent / name
    file.write_text(text)
    return desk.run("import", form, str(file), "--concept", "collectives", *more)


def entries(desk) -> list[dict]:
    return yaml.safe_load(desk.book.path("sample/imported.yaml").read_text())


def resolved(desk) -> dict[str, tuple]:
    notes = json.loads(desk.run("annotate", "--json").out)
    return {n["id"]: (n["path"], n["first"], n["last"]) for n in notes}


# --- out ---


def test_tours_of_codetour_keep_its_schema_and_select_the_lines_of_notes(locked):
    folder = locked.book.root.parent / "tours"
    done = locked.run("export", "sample", "--codetour", str(folder))
    assert (done.code, done.out) == (0, f"wrote {folder / 'linear.tour'}\n")
    made = json.loads((folder / "linear.tour").read_text())
    assert jsonschema_rs.Draft202012Validator(CODE_TOUR).is_valid(made)
    assert made["ref"] == locked.book.commit
    places = [*resolved(locked).values()]
    for each, (path, first, last) in zip(made["steps"], places, strict=True):
        start, end = each["selection"]["start"], each["selection"]["end"]
        assert (each["file"], start, end["line"], each["line"]) == (
            path,
            {"line": first, "character": 1},
            last,
            last,
        )
        assert end["character"] == len(LINES[last - 1]) + 1
    assert "**Why.** Half the bytes." in made["steps"][0]["description"]
    assert "[A paper (2020)](https://example.org/paper), 3" in str(made["steps"][0])


def test_tour_that_others_wrote_is_not_written_over(locked):
    file = locked.book.root.parent / "tours" / "linear.tour"
    write_files(file.parent, {"linear.tour": "{}"})
    done = locked.run("export", "sample", "--codetour", str(file.parent))
    assert (done.code, file.read_text()) == (2, "{}")
    assert "did not write" in done.err
    file.unlink()
    for _ in range(2):  # what it wrote itself is brought up to date
        assert locked.run("export", "sample", "--codetour", str(file.parent)).code == 0


def test_web_annotations_quote_exactly_the_lines_at_their_place(locked):
    done = locked.run("export", "--webannotation", "-")
    made = json.loads(done.out)
    assert made["@context"] == "http://www.w3.org/ns/anno.jsonld"
    assert made["total"] == len(made["first"]["items"]) == 2
    for each, (path, first, last) in zip(
        made["first"]["items"], resolved(locked).values(), strict=True
    ):
        quoted, position = each["target"]["selector"]
        text = "\n".join(LINES[first - 1 : last])
        assert quoted["exact"] == text
        assert SAMPLE[position["start"] : position["end"]] == text
        around = quoted["prefix"] + quoted["exact"] + quoted["suffix"]
        assert SAMPLE.count(around) == 1
        assert each["target"]["source"].endswith(f"/{locked.book.commit}/{path}")
        assert each["target"]["rights"] == "MIT, Nobody"


def test_sarif_has_a_run_of_the_pinned_commit_with_a_result_for_each_note(locked):
    log = json.loads(locked.run("export", "--sarif", "-").out)
    [run] = log["runs"]
    assert log["version"] == "2.1.0"
    [pinned] = run["versionControlProvenance"]
    assert pinned["revisionId"] == locked.book.commit
    assert pinned["mappedTo"]["uriBaseId"] in run["originalUriBaseIds"]
    rules = [rule["id"] for rule in run["tool"]["driver"]["rules"]]
    assert [rules[r["ruleIndex"]] for r in run["results"]] == ["citation", "note"]
    for result, (path, first, last) in zip(
        run["results"], resolved(locked).values(), strict=True
    ):
        # A result that is no failure must say so twice.
        assert (result["kind"], result["level"]) == ("informational", "none")
        at = result["locations"][0]["physicalLocation"]
        assert at["artifactLocation"] == {"uri": path, "uriBaseId": "SRCROOT"}
        assert at["region"] == {"startLine": first, "endLine": last}


def test_sarif_of_notes_spells_a_path_as_an_address(tmp_path, capsys):
    note = (
        "- id: odd\n  at: {file: 'lib/a file#1.py', code: 'x = ...'}\n  kind: note\n"
        "  title: Odd\n  text: Words.\n  concepts: [collectives]\n"
    )
    book = make_book(tmp_path, files={"lib/a file#1.py": "x = 1\n"}, annotations=note)
    log = run(capsys, "export", "--sarif", "-", "--book", str(book.root)).out
    [result] = json.loads(log)["runs"][0]["results"]
    at = result["locations"][0]["physicalLocation"]["artifactLocation"]
    assert at["uri"] == "lib/a%20file%231.py"


def test_markdown_has_the_lines_in_a_fence_that_they_cannot_end(tmp_path, capsys):
    text = 'FENCE = """\n````\n"""\n'
    note = (
        "- id: fence\n  at: {file: lib/fence.py, code: 'FENCE = ...'}\n  kind: note\n"
        "  title: A fence\n  text: Words.\n  concepts: [collectives]\n"
    )
    book = make_book(tmp_path, files={"lib/fence.py": text}, annotations=note)
    done = run(capsys, "export", "--markdown", "-", "--book", str(book.root))
    assert f"`````python\n{text}`````\n\nWords.\n" in done.out
    assert "(MIT, Nobody)" in done.out


def test_what_has_no_label_begins_with_its_own_words(tmp_path, capsys):
    note = (
        "- id: two\n  at: {file: lib/linear.py, symbol: step}\n  kind: pitfall\n"
        "  title: Two parts\n  text: Words.\n  cost: A gather.\n"
        "  concepts: [collectives]\n"
    )
    book = make_book(tmp_path, annotations=note)
    log = run(capsys, "export", "--sarif", "-", "--book", str(book.root)).out
    [result] = json.loads(log)["runs"][0]["results"]
    assert result["message"]["markdown"] == (
        "**Two parts**\n\nWords.\n\n**Cost.** A gather."
    )


def test_filters_choose_what_leaves_and_nothing_is_an_error(locked):
    made = json.loads(locked.run("export", "--sarif", "-", "--kind", "note").out)
    assert [r["ruleId"] for r in made["runs"][0]["results"]] == ["note"]
    done = locked.run("export", "--sarif", "-", "--kind", "pitfall")
    assert (done.code, done.out) == (1, "")
    assert "nothing to export" in done.err


# --- there and back ---


def emptied(desk) -> dict[str, tuple]:
    """Take the notes out of the book; return where they stood."""
    places = resolved(desk)
    desk.book.path("sample/linear.yaml").write_text("")
    assert desk.run("annotate", "--update-lock").code == 0
    assert resolved(desk) == {}
    lock = desk.book.path("sample.lock").read_text()
    assert json.loads(lock)["anchors"] == {}
    return places


def test_web_annotations_come_back_whole(locked):
    text = locked.run("export", "--webannotation", "-").out
    places = emptied(locked)
    assert imported(locked, "notes.jsonld", text).code == 0
    assert resolved(locked) == places
    written, original = entries(locked), yaml.safe_load(ANNOTATIONS)
    for new, old in zip(written, original, strict=True):
        assert {**new, "at": 0} == {**old, "at": 0}
    # Nobody has read them against their lines.
    said = locked.run("annotate", "--check").out
    assert "not reviewed against this code yet: close, whole-step" in said


def test_tours_come_back_to_the_same_lines(locked):
    folder = locked.book.root.parent / "tours"
    locked.run("export", "sample", "--codetour", str(folder))
    text = (folder / "linear.tour").read_text()
    places = emptied(locked)
    assert imported(locked, "again.tour", text).code == 0
    assert [*resolved(locked).values()] == [*places.values()]
    # The title is a heading of the step, and none of the note's words.
    assert not any("###" in each["text"] for each in entries(locked))


def test_what_a_step_says_before_its_heading_is_said_on_the_way(locked):
    emptied(locked)
    said = "First this.\n\n### Here\n\nWhat it is."
    steps = step(14, title="Here", description=said), step(23, title="There")
    assert imported(locked, "way.tour", tour(*steps, title="A way")).code == 0
    assert entries(locked)[0]["text"] == "What it is."
    [made] = (locked.book.root / "annotations/tours").iterdir()
    assert yaml.safe_load(made.read_text())["stops"][0]["says"] == "First this."


def test_a_folder_of_tours_comes_as_a_whole(locked, tmp_path):
    emptied(locked)
    tours = {
        "b.tour": tour(step(14), step(23, title="There"), title="The second"),
        "sub/a.tour": tour(step(14), step(1, title="Top"), title="The first"),
        "notes.md": "no tour",
    }
    folder = write_files(tmp_path / ".tours", tours)
    asked = ("import", "--codetour", str(folder), "--concept", "collectives")
    done = locked.run(*asked)
    assert done.code == 0, done.err
    # A place where both stop is one note.
    assert [each["id"] for each in entries(locked)] == ["here", "there", "top"]
    made = locked.book.root / "annotations/tours"
    assert {
        path.stem: [stop["note"] for stop in yaml.safe_load(path.read_text())["stops"]]
        for path in made.iterdir()
    } == {"the-first": ["here", "top"], "the-second": ["here", "there"]}
    assert locked.run("annotate", "--check").code == 0


def test_a_folder_of_tours_is_refused_as_a_whole(locked, tmp_path):
    before = tree(locked.book.root)
    outside = tour(step(1, file="../../etc/passwd"))
    tours = {"a.tour": tour(step(14)), "b.tour": outside}
    folder = write_files(tmp_path / ".tours", tours)
    asked = ("import", "--codetour", str(folder), "--concept", "collectives")
    done = locked.run(*asked)
    assert done.code == 2
    assert "b.tour: step 1: points outside this book" in done.err
    bare = write_files(tmp_path / "bare", {"a.json": "{}"})
    done = locked.run("import", "--codetour", str(bare))
    assert done.code == 2
    assert "got a folder without tours" in done.err
    assert tree(locked.book.root) == before


def test_folders_may_come_and_go_while_tours_are_sought(locked, tmp_path):
    done = threading.Event()

    def come_and_go():
        while not done.is_set():
            for number in range(20):
                (tmp_path / "bare" / str(number) / "in").mkdir(parents=True)
            for number in range(20):
                shutil.rmtree(tmp_path / "bare" / str(number))

    (tmp_path / "bare").mkdir()
    other = threading.Thread(target=come_and_go)
    other.start()
    try:
        for _ in range(40):
            told = locked.run("import", "--codetour", str(tmp_path / "bare"))
            assert (told.code, "a folder without tours" in told.err) == (2, True)
    finally:
        done.set()
        other.join()


def test_what_the_book_has_is_not_taken_twice(locked):
    text = locked.run("export", "--webannotation", "-").out
    before = tree(locked.book.root)
    done = imported(locked, "notes.jsonld", text)
    assert (done.code, done.out) == (0, "")
    assert "in the book already, as close" in done.err
    assert tree(locked.book.root) == before


def test_what_ships_is_known_again_whatever_its_lines_are(real_cache, tmp_path, capsys):
    """One note stands on lines that no short pattern names: nothing is proposed."""
    tours = str(tmp_path / "tours")
    exported = ("export", "megatron", "--codetour", tours, "--topic", "tensor_parallel")
    assert run(capsys, *exported).code == 0
    done = run(capsys, "import", "--codetour", tours, "--concept", "all-gather")
    assert done.code == 0 and "in the book already, as tp-dgrad-overlap" in done.err
    assert "could not be" not in done.err


def test_quote_finds_its_lines_in_another_revision_of_the_file(locked):
    text = locked.run("export", "--webannotation", "-").out
    places = emptied(locked)
    items = json.loads(text)
    for each in items["first"]["items"]:
        quoted, position = each["target"]["selector"]
        quoted["prefix"] = f"otherwise {quoted['prefix']}"
        position["start"] += 40
        each["target"]["source"] = each["target"]["source"].replace(
            locked.book.commit, "0" * 40
        )
    assert imported(locked, "notes.jsonld", json.dumps(items)).code == 0
    assert resolved(locked) == places


# --- in ---


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (step(14), (14, 14)),
        (step(pattern=r"^[^\S\n]*loss\.backward\(\)$"), (23, 23)),
        (
            step(
                selection={
                    "start": {"line": 22, "character": 1},
                    "end": {"line": 24, "character": 1},
                }
            ),
            (22, 23),
        ),
    ],
    ids=["line", "pattern", "selection"],
)
def test_step_becomes_an_anchor_on_its_lines(locked, given, expected):
    assert imported(locked, "one.tour", tour(given)).code == 0
    assert resolved(locked)["here"][1:] == expected
    [entry] = entries(locked)
    assert (entry["kind"], entry["text"]) == ("note", "Words.")
    assert "line" not in entry["at"]


@pytest.mark.parametrize(
    ("given", "why"),
    [
        (step(12), "holds no code"),
        (step(400), "expected lines within 1 to 24"),
        (step(), "it names a file alone"),
        (step(pattern="y = .*"), "more than the text of a line"),
        (step(pattern="return y and more"), "fits 0 lines"),
    ],
    ids=["comment", "beyond", "no line", "regular expression", "nowhere"],
)
def test_what_has_no_place_is_listed_and_the_rest_is_taken(locked, given, why):
    done = imported(locked, "two.tour", tour(given, step(14, title="There")))
    assert done.code == 1
    assert "1 note placed; 1 note could not be" in done.err
    assert "step 1: " in done.err and why in done.err
    assert [entry["id"] for entry in entries(locked)] == ["there"]


def test_a_file_that_is_gone_is_listed_whatever_it_was_called(locked):
    gone = step(1, file="lib/outfits.py")
    done = imported(locked, "two.tour", tour(gone, step(14, title="There")))
    assert done.code == 1
    assert "step 1: no upstream of this book includes a file" in done.err
    assert [entry["id"] for entry in entries(locked)] == ["there"]


def test_tour_of_another_revision_is_not_believed(locked):
    before = tree(locked.book.root)
    text = tour(step(14), ref="v9")
    done = imported(locked, "old.tour", text)
    assert (done.code, tree(locked.book.root)) == (1, before)
    assert "its lines are of 'v9', and sample is at v1" in done.err
    assert imported(locked, "old.tour", text, "--any-ref").code == 0
    assert imported(locked, "v1.tour", tour(step(15), ref="v1")).code == 0


@pytest.mark.parametrize(
    ("name", "text", "written"),
    [
        ("a.tour", tour(step(14), step(1, file="lib/linaer.py")), True),
        ("a.jsonld", "urn:readerkit:file:sample/lib/linaer.py", False),
        ("a.jsonld", "lib/linaer.py", False),
    ],
)
def test_a_file_that_is_there_no_more_is_listed(locked, name, text, written):
    before = tree(locked.book.root)
    done = imported(locked, name, text if name == "a.tour" else outside(text))
    assert done.code == 1
    assert "no upstream of this book includes a file 'lib/linaer.py'" in done.err
    assert "did you mean lib/linear.py?" in done.err
    assert (tree(locked.book.root) != before) == written


def outside(source: str) -> str:
    quote = {"type": "TextQuoteSelector", "exact": "loss.backward()"}
    target = {"source": source, "selector": quote}
    return json.dumps({"type": "Annotation", "target": target, "body": "x"})


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.tour", tour(step(14), step(1, file="../../etc/passwd"))),
        ("a.tour", tour(step(14), step(1, file="/etc/passwd"))),
        ("a.tour", tour(step(14), {"uri": "file:///etc/passwd", "description": "x"})),
        ("a.jsonld", outside("https://example.org/other/lib/linear.py")),
        ("a.jsonld", outside("../lib/linear.py")),
        ("a.jsonld", outside("urn:readerkit:file:nobody/lib/linear.py")),
    ],
)
def test_file_that_points_outside_is_refused_in_one_line(locked, name, text):
    before = tree(locked.book.root)
    done = imported(locked, name, text)
    assert (done.code, done.out, tree(locked.book.root)) == (2, "", before)
    assert done.err.count("\n") == 1
    assert "points outside this book" in done.err and "nothing was written" in done.err


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.tour", "{"),
        ("a.tour", '{"title": "x"}'),
        ("a.tour", tour(step("fourteen"))),
        ("a.tour", tour(step(0))),
        ("a.jsonld", "[]"),
        ("a.jsonld", '{"target": {}}'),
        ("a.jsonld", "[" * 3_000),
    ],
)
def test_nonsense_is_one_clear_line(locked, name, text):
    before = tree(locked.book.root)
    done = imported(locked, name, text)
    assert (done.code, done.out, tree(locked.book.root)) == (2, "", before)
    assert done.err.count("\n") == 1 and f"{name}:1:1: " in done.err


@pytest.mark.parametrize("steps", [(), ({"title": "Hello", "description": "Words"},)])
def test_a_tour_that_points_nowhere_is_said_to_have_nothing(locked, steps):
    before = tree(locked.book.root)
    done = imported(locked, "empty.tour", tour(*steps))
    assert (done.code, done.out, tree(locked.book.root)) == (0, "", before)
    assert "nothing to take" in done.err


def test_file_too_large_is_one_line(locked):
    done = imported(locked, "a.tour", " " * (MAX_BYTES + 1))
    assert (done.code, done.err.count("\n")) == (2, 1)
    assert "expected a file of notes" in done.err


def test_notes_come_to_a_work_tree_and_leave_it(tmp_path, capsys):
    make_repository(tmp_path / "own", {"src/app.py": SAMPLE})
    root = tmp_path / "own" / "book"
    done = run_process("init", cwd=root.parent)
    assert done.code == 0, done.err
    book = ("--book", str(root))
    [concept] = yaml.safe_load((root / "annotations" / "concepts.yaml").read_text())
    file = tmp_path / "their.tour"
    file.write_text(tour(step(23, file="src/app.py"), ref="main"))
    asked = ("import", "--codetour", str(file), "--concept", concept["id"], *book)
    assert run(capsys, *asked).code == 0
    (root.parent / "src" / "app.py").write_text(f"LIMIT = 1\n{SAMPLE}")
    log = json.loads(run(capsys, "export", "--sarif", "-", *book).out)
    lines = {
        each["partialFingerprints"]["readerkitNote/v1"]: each["locations"][0]
        for each in log["runs"][0]["results"]
    }
    assert lines["here"]["physicalLocation"]["region"]["startLine"] == 24
    assert "versionControlProvenance" not in log["runs"][0]


def test_quote_that_stands_twice_is_told_apart_by_what_is_around_it(locked):
    def asked(**quote: object) -> str:
        exact = {"type": "TextQuoteSelector", "exact": "group=self.group)", **quote}
        target = {"source": "lib/linear.py", "selector": exact}
        return json.dumps({"target": target, "bodyValue": "The group."})

    done = imported(locked, "a.jsonld", asked())
    assert done.code == 1 and "its quote stands in 2 places" in done.err
    done = imported(locked, "a.jsonld", asked(prefix="all_reduce(y, "))
    assert done.code == 0
    assert resolved(locked)["the-group"][1:] == (17, 17)


def test_entry_that_the_book_refuses_leaves_all_as_it_was(locked):
    before = tree(locked.book.root)
    lock = locked.book.path("sample.lock")
    locked.book.path("sample").joinpath("imported.yaml").write_text("- broken: [\n")
    broken = tree(locked.book.root)
    done = imported(locked, "a.tour", tour(step(14)))
    assert done.code == 1 and tree(locked.book.root) == broken
    assert lock.read_bytes() == before[str(lock)]


def test_reader_without_a_checkout_gets_them_in_the_overlay(locked, tmp_path):
    done = imported(locked, "a.tour", tour(step(14)), "--into", "mine")
    mine = tmp_path / "data" / "book" / "annotations" / "sample" / "imported.yaml"
    assert done.code == 0 and done.out == f"wrote {mine}\n"
    assert resolved(locked)["here"][1:] == (14, 14)


def test_printed_import_writes_nothing(locked):
    before = tree(locked.book.root)
    done = imported(locked, "a.tour", tour(step(14)), "--print")
    assert tree(locked.book.root) == before
    [entry] = yaml.safe_load(done.out)
    assert entry["id"] == "here"


@pytest.mark.parametrize("each", quick_first([5, 1]))
def test_every_note_of_the_shipped_book_comes_back(real_cache, tmp_path, capsys, each):
    """All but one, whose lines no short pattern names; that one is listed.

    In `make test` each fifth note.
    """
    file, book = tmp_path / "all.jsonld", tmp_path / "book" / "annotations"
    assert run(capsys, "export", "--webannotation", str(file)).code == 0
    exported = json.loads(file.read_text())
    listed = "tp-dgrad-overlap"
    first = exported["first"]
    first["items"] = [
        item
        for at, item in enumerate(first["items"])
        if not at % each or listed in json.dumps(item)
    ]
    file.write_text(json.dumps(exported))
    book.mkdir(parents=True)
    stood = {}
    for lock in (ROOT / "annotations").glob("*.lock"):
        plain = json.loads(lock.read_text())
        stood |= {
            k: str(Span(v["path"], *v["span"])) for k, v in plain["anchors"].items()
        }
        kept = {**plain, "anchors": {}}
        kept.pop("claims", None)
        (book / lock.name).write_text(json.dumps(kept))
    for name in ("upstreams.yaml", "concepts.yaml", "references.yaml"):
        shutil.copy(ROOT / "annotations" / name, book)
    done = run(
        capsys, "import", "--quotes", str(file), "--print", "--book", str(book.parent)
    )
    placed = dict(re.findall(r"^  (\S+)  (\S+)$", done.err, re.MULTILINE))
    asked = len(json.loads(file.read_text())["first"]["items"])
    assert len(placed) >= asked - 1
    assert placed == {name: stood[name] for name in placed}
    assert done.code == 1 and f"{listed}: no short pattern names" in done.err


@pytest.mark.parametrize("option", ["--sarif", "--webannotation", "--markdown"])
def test_a_folder_that_is_not_there_is_not_made(locked, tmp_path, option):
    to = tmp_path / "no" / "such" / "notes"
    done = locked.run("export", option, str(to))
    assert (done.code, done.out) == (2, "")
    assert f"got no folder {to.parent}, expected one" in done.err
    assert not (tmp_path / "no").exists()


@pytest.mark.parametrize("option", ["--sarif", "--webannotation", "--markdown"])
def test_a_file_without_a_name_is_no_place(locked, option):
    done = locked.run("export", option, "")
    assert (done.code, done.out) == (2, "")
    assert f"'{option}': got '', expected the path of a file" in done.err
