import io

import pytest
from rich.console import Console

from readerkit.anchors import Anchor, SourceFile, Span
from readerkit.content.annotations import Annotation, Citation, CitedWork
from readerkit.content.kind import Place
from readerkit.content.resolved_notes import Note
from readerkit.render.note_view import (
    NOTE_WIDTH,
    SIDE_BY_SIDE_WIDTH,
    Beside,
    cite,
    console,
    note_view,
    proof,
    prose,
)
from readerkit.render.terminal_code import MAX_SHOWN_CHARACTERS, code_lines
from readerkit.upstreams import Upstream
from readerkit.upstreams.upstream import Licence

PLACE = Place("file.yaml", 1, 1)
SOURCE = b"""\
class Layer:
    def forward(self, x):  # the pass
        if self.sequence_parallel:
            output = reduce_scatter_to_sequence_parallel_region(x, group=self.group)
        else:
            output = reduce_from_tensor_model_parallel_region(x, group=self.group)
        return f"{output!r:>10}", 0x10
"""
PAPER = CitedWork(
    "paper",
    "A paper",
    "A. Author",
    2020,
    "https://example.org/p",
    {"3": "Method", "Usage": "Usage"},
    place=PLACE,
)
ANNOTATION = Annotation(
    id="close",
    upstream="sample",
    anchor=Anchor("lib/a.py", symbol="Layer.forward"),
    kind="citation",
    title="The closing collective",
    place=PLACE,
    decision="One `switch` picks it.",
    alternative="Always all-reduce.",
    why="Half the bytes.",
    cost="A gather later.",
    references=(Citation("paper", "3"),),
    concepts=("all-reduce", "tensor-parallel"),
)
UPSTREAM = Upstream(
    name="sample",
    title="Sample",
    include=("lib/**/*.py",),
    url="https://example.org/sample",
    tag="v1",
    commit="c" * 40,
    licence=Licence("MIT", "LICENSE", "Nobody"),
)


def shown(renderable, width: int, colour: bool = False) -> list[str]:
    screen = Console(
        width=width,
        file=io.StringIO(),
        color_system="truecolor" if colour else None,
        force_terminal=colour,
        markup=False,
        emoji=False,
        highlight=False,
    )
    screen.print(renderable)
    return [line.rstrip() for line in screen.file.getvalue().split("\n")]


def code(data: bytes, width: int = 100, first: int = 1, last: int | None = None):
    source = SourceFile("lib/a.py", data)
    span = Span("lib/a.py", first, last or len(source.raw_lines))
    return shown(code_lines(source, span, width), width)


def view(width: int, beside=(), annotation=ANNOTATION, first=2, last=7):
    note = Note(annotation, Span("lib/a.py", first, last), "Layer.forward", "reviewed")
    source = SourceFile("lib/a.py", SOURCE)
    return shown(
        note_view(note, source, {"paper": PAPER}, width=width, beside=list(beside)),
        width,
    )


# --- the lines ---


def test_lines_keep_their_numbers_and_their_indentation():
    assert code(SOURCE, first=2, last=3) == [
        "2      def forward(self, x):  # the pass",
        "3          if self.sequence_parallel:",
        "",
    ]


def test_numbers_are_aligned_at_the_right():
    data = b"".join(b"x%d = 1\n" % n for n in range(12))
    assert code(data, first=9, last=10) == [" 9  x8 = 1", "10  x9 = 1", ""]


@pytest.mark.parametrize(
    ("data", "line"),
    [
        pytest.param(b"x = 1\r\ny = 2\r\n", "1  x = 1", id="crlf"),
        pytest.param(b"\xef\xbb\xbfx = 1\n", "1  x = 1", id="byte-order-mark"),
        pytest.param(b"if x:\n\ty = 1\n", "1  if x:", id="tab-elsewhere"),
        pytest.param(b"\ty = 1\n", "1      y = 1", id="tab"),
        pytest.param(b"x = '\xff'\n", "1  x = '\ufffd'", id="not-utf8"),
        pytest.param(b"x = '[bold]:smile:'\n", "1  x = '[bold]:smile:'", id="markup"),
        pytest.param("x = '漢字'\n".encode(), "1  x = '漢字'", id="wide-letters"),
        pytest.param(b"x = '\x1b[2J'\n", "1  x = '<U+001B>[2J'", id="escape"),
        pytest.param(b"x = 1", "1  x = 1", id="no-final-newline"),
    ],
)
def test_odd_source_is_shown_as_it_is(data, line):
    assert code(data)[0] == line


@pytest.mark.parametrize("width", [16, 30, 50, 72, 80])
def test_long_line_is_folded_below_its_own_indentation(width):
    rows = code(SOURCE, width, first=4, last=4)[:-1]
    assert len(rows) > 1
    assert max(map(len, rows)) <= width
    assert rows[0].startswith("4 ")
    indents = {len(row) - len(row.lstrip()) for row in rows[1:]}
    assert len(indents) == 1
    # Nothing is lost and nothing is added but white space.
    text = "".join("".join(row.split()) for row in rows)
    assert text == "4" + "".join(SOURCE.decode().split("\n")[3].split())


def test_line_is_broken_where_a_person_would_break_it():
    assert code(SOURCE, 74, first=4, last=4) == [
        "4              output = reduce_scatter_to_sequence_parallel_region(x,",
        "                   group=self.group)",
        "",
    ]


def test_line_that_fits_is_not_touched():
    line = SOURCE.decode().split("\n")[3]
    assert code(SOURCE, len(line) + 3, first=4, last=4) == [f"4  {line}", ""]


def test_colours_fall_on_the_right_letters_behind_tabs_and_controls():
    data = "\tx = '\x1b' if y else 10  # ä\n".encode()
    source = SourceFile("a.py", data)
    table = code_lines(source, Span("a.py", 1, 1), 100)
    [text] = table.columns[1].cells
    parts = {text.plain[s.start : s.end]: s.style for s in text.spans}
    assert parts["'<U+001B>'"] == "green"
    assert parts["if"] == "magenta"
    assert parts["else"] == "magenta"
    assert parts["10"] == "cyan"
    assert parts["# ä"] == "italic dim"


def test_line_too_long_to_read_is_cut_and_said():
    data = b"x = '" + b"a" * 10_000 + b"'\ny = 1\n"
    rows = code(data)
    rest = 10_006 - MAX_SHOWN_CHARACTERS
    assert f"… {rest:,} more characters" in " ".join(rows)
    assert rows[-2] == "2  y = 1"
    assert len(rows) < 30


# --- the page ---


def test_page_has_title_place_lines_and_texts_in_order():
    assert view(80) == [
        "citation  The closing collective  close",
        "lib/a.py:2-7  Layer.forward",
        "",
        *code(SOURCE, 80, first=2, last=7),
        "  Decided  One switch picks it.",
        "",
        "  Instead of  Always all-reduce.",
        "",
        "  Why  Half the bytes.",
        "",
        "  Cost  A gather later.",
        "",
        "  Source  A. Author 2020, A paper, section 3 “Method”. https://example.org/p",
        "  Concepts  all-reduce, tensor-parallel",
        "",
    ]


@pytest.mark.parametrize("width", [SIDE_BY_SIDE_WIDTH, 200])
def test_wide_page_has_the_note_beside_the_lines(width):
    rows = view(width)
    first = next(row for row in rows if row.startswith("2 "))
    assert first.rstrip().endswith("Decided  One switch picks it.")
    assert first.index("Decided") >= width - NOTE_WIDTH - 1
    assert max(map(len, rows)) <= width


def test_page_just_too_narrow_has_the_note_below():
    rows = view(SIDE_BY_SIDE_WIDTH - 1)
    assert not any(row.startswith("2 ") and "Decided" in row for row in rows)
    assert "  Decided  One switch picks it." in rows


@pytest.mark.parametrize("width", [12, 24, 40, 80, 149, 150, 250])
def test_no_line_is_wider_than_asked_for(width):
    assert max(map(len, view(width))) <= width


def test_mini_is_shown_below_with_its_own_lines():
    mini = SourceFile("mini_impls/tp.py", b"def close(x):\n    return all_reduce(x)\n")
    span = Span("mini_impls/tp.py", 1, 2)
    ran = ["ran in tp_torch: 1 send"]
    rows = view(80, beside=[Beside("the mini (same): the sum", "", mini, span, ran)])
    assert rows[-7].startswith("the mini (same): the sum ──")
    assert rows[-6:] == [
        "mini_impls/tp.py:1-2",
        "1  def close(x):",
        "2      return all_reduce(x)",
        "",
        "Record  ran in tp_torch: 1 send",
        "",
    ]


def test_inline_code_is_marked_without_its_ticks():
    text = prose("One `switch` and `another`, not `this\nor that`")
    assert text.plain == "One switch and another, not `this\nor that`"
    marked = [text.plain[span.start : span.end] for span in text.spans if span.style]
    assert marked == ["switch", "another"]


@pytest.mark.parametrize(
    ("citation", "words"),
    [
        (Citation("paper", "3"), "A paper, section 3 “Method”. https"),
        (Citation("paper", "4"), "A paper, section 4. https"),
        (Citation("paper", "App. B"), "A paper, App. B. https"),
        (Citation("paper", "Usage"), "A paper, Usage. https"),
        (Citation("paper"), "2020, A paper. https://example.org/p"),
    ],
)
def test_citation_names_the_section_and_its_heading(citation, words):
    assert words in cite(citation, {"paper": PAPER})


# --- the proof ---


@pytest.mark.parametrize(
    ("state", "words"),
    [
        ("reviewed", "reviewed against exactly these lines"),
        ("unreviewed", "not reviewed yet: readerkit review close"),
        (
            "changed",
            "these lines, or those around them, changed since the note was reviewed",
        ),
        ("unlocked", "readerkit annotate --update-lock"),
    ],
)
def test_proof_names_link_pin_blob_origin_and_state(state, words):
    note = Note(ANNOTATION, Span("lib/a.py", 2, 7), "Layer.forward", state)
    rows = proof(note, UPSTREAM, blob="b" * 40, came_from="git\x1b here")
    by_label = {row.plain[:7].strip(): row.plain[8:] for row in rows}
    link = f"https://example.org/sample/blob/{'c' * 40}/lib/a.py#L2-L7"
    assert by_label["link"] == link
    assert by_label["pinned"] == f"Sample v1, commit {'c' * 40}"
    assert (
        by_label["blob"] == f"{'b' * 40}, verified on this read; from git<U+001B> here"
    )
    assert words in by_label["state"]
    terms = f"https://example.org/sample/blob/{'c' * 40}/LICENSE"
    assert by_label["rights"] == f"© Nobody, MIT: {terms}"


def test_console_leaves_our_text_alone(capsys):
    console(80).print("[red]:smile: https://x.org 1 'a'", end="")
    assert capsys.readouterr().out == "[red]:smile: https://x.org 1 'a'"
