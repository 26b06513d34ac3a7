import re

import click
import pytest

from readerkit.anchors import Anchor, Span
from readerkit.content.annotations import Annotation
from readerkit.content.kind import Place
from readerkit.content.resolved_notes import Note
from readerkit.render.table import legend, note_rows, note_table


def note(name="a-note", path="lib/a.py", first=1, last=9, state="reviewed", **more):
    minis = more.pop("minis", ())
    symbol = more.pop("symbol", "Class.method")
    annotation = Annotation(
        id=name,
        upstream="sample",
        anchor=Anchor(path, symbol=symbol),
        kind=more.pop("kind", "note"),
        title=more.pop("title", "A title"),
        concepts=("a-concept",),
        place=Place("file.yaml", 1, 1),
    )
    return Note(annotation, Span(path, first, last), symbol, state, minis)


NOTES = [
    note("first", minis=("ddp", "zero"), kind="citation"),
    note("second-one", first=20, last=300, symbol="f", state="changed"),
    note("third", path="lib/b.py", title="Something longer", state="unlocked"),
]


def lines(notes, width) -> list[str]:
    return click.unstyle(note_table(notes, width)).split("\n")


def test_a_pipe_gets_a_line_for_each_note_its_fields_parted_by_tabs():
    assert [row.split("\t") for row in note_rows(NOTES)] == [
        [
            *("first", "citation", "lib/a.py:1-9", "Class.method"),
            *("A title", "ddp, zero", "reviewed"),
        ],
        ["second-one", "note", "lib/a.py:20-300", "f", "A title", "-", "changed"],
        [
            *("third", "note", "lib/b.py:1-9", "Class.method"),
            *("Something longer", "-", "unlocked"),
        ],
    ]


def test_narrow_table_has_symbol_and_title_on_lines_of_their_own():
    assert lines(NOTES, 50) == [
        "lib/a.py",
        "  first       citation     1-9  ddp, zero",
        "    Class.method",
        "    A title",
        "! second-one  note      20-300",
        "    f",
        "    A title",
        "",
        "lib/b.py",
        "* third       note         1-9",
        "    Class.method",
        "    Something longer",
    ]


def test_terminal_gets_columns_under_a_head_and_each_path_once():
    assert lines(NOTES, 90) == [
        "  id          kind      symbol         lines  title             mini",
        "lib/a.py",
        "  first       citation  Class.method     1-9  A title           ddp, zero",
        "! second-one  note      f             20-300  A title           -",
        "",
        "lib/b.py",
        "* third       note      Class.method     1-9  Something longer  -",
    ]


LONG = [
    note(
        "long",
        symbol="DistributedDataParallel._make_backward_post_hook.hook",
        title="The gradient is moved into the bucket as soon as autograd has it",
        minis=("sequence_parallel", "fsdp_flat"),
    )
]


def test_cells_that_do_not_fit_are_folded_in_their_column():
    assert lines(LONG, 100) == [
        "  id    kind      symbol                       lines  title"
        "                             mini",
        "lib/a.py",
        "  long  note      DistributedDataParallel.     1-9  The gradient is moved "
        "into the    sequence_paral",
        "                  _make_backward_post_hook.         bucket as soon as "
        "autograd has    lel, fsdp_flat",
        "                  hook                              it",
    ]


@pytest.mark.parametrize("width", [38, 40, 60, 80, 100, 132, 240])
@pytest.mark.parametrize("notes", [NOTES, LONG], ids=["short", "long"])
def test_no_line_is_wider_than_the_terminal_and_nothing_is_lost(notes, width):
    shown = lines(notes, width)
    assert max(map(len, shown)) <= width
    assert not any(line.endswith(" ") for line in shown)
    squeezed = re.sub(r"\s", "", "".join(shown))
    for each in notes:
        assert each.annotation.id in squeezed


@pytest.mark.parametrize("notes", [NOTES, LONG], ids=["short", "long"])
def test_a_note_is_one_line_where_it_fits(notes):
    shown = lines(notes, 240)
    assert len([line for line in shown if " note " in line]) + 1 >= len(notes)
    assert shown[-1].endswith(", ".join(notes[-1].minis) or "-")
    assert notes[-1].annotation.title in shown[-1]


def test_no_notes_make_an_empty_table():
    assert note_table([], 80) == ""
    assert legend([]) == []


def test_same_file_twice_in_a_row_is_one_group():
    assert lines(NOTES, 100).count("lib/a.py") == 1


@pytest.mark.parametrize(
    ("state", "mark", "words"),
    [
        ("reviewed", " ", None),
        ("unreviewed", "?", "readerkit review ID"),
        ("changed", "!", "its code, or what is around it, changed since its review"),
        ("unlocked", "*", "readerkit annotate --update-lock"),
    ],
)
def test_each_state_has_its_mark_and_the_legend_explains_those_shown(
    state, mark, words
):
    shown = [note(state=state), note(state="reviewed")]
    assert lines(shown, 40)[1].startswith(f"{mark} a-note")
    explained = legend(shown)
    assert len(explained) == (words is not None)
    if words:
        assert explained[0].startswith(f"{mark} ")
        assert words in explained[0]


def test_hostile_names_stay_on_their_line_and_are_spelt_out():
    hostile = note(
        path="lib/\u202ea.py",
        symbol="f\x1b[2J",
        title="one\ntwo\x9b",
        minis=("m\u200b",),
    )
    [row] = note_rows([hostile])
    for table in (row, click.unstyle(note_table([hostile], 40))):
        assert not re.search("[\x1b\x9b\u202e\u200b]", table)
        for words in (
            "lib/<U+202E>a.py",
            "f<U+001B>[2J",
            "one two<U+009B>",
            "m<U+200B>",
        ):
            assert words in table
    assert len(row.split("\n")) == 1
