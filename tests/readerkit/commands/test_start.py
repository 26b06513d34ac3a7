import re
import shlex
import shutil

import pytest

from tests.helpers import ANNOTATIONS, make_book, run
from tests.terminals import READERKIT, Terminal

FIRST = ANNOTATIONS.replace("id: close", "id: tp-row-forward")


def plain(shown: str) -> str:
    return re.sub(r"\x1b\[[0-9;?]*\w", "", shown)


def test_first_stop_shows_real_lines_the_note_and_the_proof(real_cache, capsys):
    done = run(capsys, "start")
    assert (done.code, done.err) == (0, "")
    assert re.search(r"^\d+ +elif self\.sequence_parallel:", done.out, re.MULTILINE)
    for words in (
        "by default its trainer takes Transformer Engine's",
        "Which collective closes the layer?",
        "Decided",
        "Instead of",
        "Cost",
    ):
        assert words in " ".join(done.out.split())
    assert "/blob/55ac7082517c3878ae653c07c09c534b8aed49f6/megatron/core/" in done.out


def test_the_first_stop_is_in_spanish_where_that_is_asked_for(real_cache, capsys):
    done = run(capsys, "start", "--lang", "es")
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith("En las capas propias de Megatron-LM, un par con")
    head, _, after = done.out.partition("Adónde ir desde aquí:")
    assert "decisión  Un solo conmutador elige" in head and "citation" not in head
    assert "readerkit annotate pytorch --lang es" in after
    assert "readerkit run tp  " in after  # what has no language is given none
    for command in re.findall(r"^  readerkit (\S.*?)(?:  .*)?$", after, re.MULTILINE):
        assert run(capsys, *shlex.split(command)[:1], "--help").code == 0
        if "--lang" in command and command.startswith("annotate"):
            assert run(capsys, *shlex.split(command)).code == 0, command
    unknown = run(capsys, "start", "--lang", "fr")
    assert (unknown.code, unknown.out) == (2, "")


def test_every_command_it_points_to_works(real_cache, capsys):
    out = run(capsys, "start").out
    _, _, after = out.partition("Where to go from here:")
    commands = re.findall(r"^  readerkit (\S.*?)(?:  .*)?$", after, re.MULTILINE)
    assert len(commands) >= 8
    for command in commands:
        words = shlex.split(command)
        # The others ask, build or need torch; each has tests of its own.
        shown = words if words[0] == "annotate" else [words[0], "--help"]
        assert run(capsys, *shown).code == 0, command


def test_question_comes_before_the_answer(tmp_path, capsys):
    book = make_book(tmp_path, annotations=FIRST)
    out = run(capsys, "start", "--book", str(book.root)).out
    order = [
        "Which collective",
        "Linear.forward",
        "Decided",
        "pinned  Sample",
        "Where to go",
    ]
    assert sorted(order, key=out.index) == order


def test_a_terminal_hides_the_answer_until_it_is_asked_for(real_cache):
    environment = {"PAGER": "cat"}
    with Terminal(*READERKIT, "start", environment=environment) as reader:
        before = reader.read_until("Enter shows the note, q leaves.")
        assert re.search(r"\d+ +.*elif.* self\.sequence_parallel", plain(before))
        for told in ("Decided", "Where to go", "reduce-scatter followed"):
            assert told not in before
        reader.type("\r")
        after = plain(reader.read_until("compare tp"))
        assert "Decided" in after and "RowParallelLinear.forward" not in after
        assert reader.close() == 0


def test_leaving_at_the_question_shows_nothing_more(real_cache):
    with Terminal(*READERKIT, "start") as reader:
        reader.read_until("Enter shows the note, q leaves.")
        reader.type("\x04")  # ^D: there will be no answer
        assert reader.close() == 130
    assert "Decided" not in reader.shown


def test_what_follows_is_shown_a_screen_at_a_time(real_cache):
    environment = {"PAGER": "head -10"}
    with Terminal(*READERKIT, "start", environment=environment) as reader:
        reader.read_until("Enter shows the note, q leaves.")
        reader.type("\r")
        assert reader.close() == 0
    after = plain(reader.shown).partition("Enter shows the note, q leaves.")[2]
    assert "Decided" in after and "Where to go" not in after


@pytest.mark.skipif(shutil.which("less") is None, reason="no less here")
@pytest.mark.further
def test_less_says_how_to_go_on_and_how_to_leave(real_cache):
    environment = {"PAGER": "less", "LESS": None}
    with Terminal(*READERKIT, "start", environment=environment) as reader:
        reader.read_until("Enter shows the note, q leaves.")
        reader.type("\r")
        for key in (" ", " ", "q"):
            shown = re.sub(r"\x1b\[[0-9;?]*\w", "", reader.read_until("q: leave"))
            assert re.search(r"(?<!\w)space: go on   q: leave$", shown)
            reader.type(key)
        assert reader.close() == 0
    spanish = ("annotate", "tp-row-forward", "--lang", "es")
    with Terminal(*READERKIT, *spanish, environment=environment) as reader:
        assert "q: leave" not in reader.read_until("espacio: seguir   q: salir")
        reader.type("q")
        assert reader.close() == 0


def test_without_source_there_is_one_message_and_no_half_page(
    tmp_path, capsys, free_port
):
    url = f"git://127.0.0.1:{free_port}/sample"
    book = make_book(tmp_path, annotations=FIRST, url=url)
    done = run(capsys, "start", "--book", str(book.root))
    assert (done.code, done.out) == (1, "")
    assert "no source could serve it" in done.err


def test_a_book_of_ones_own_starts_with_its_first_note(tmp_path, capsys):
    book = make_book(tmp_path)
    done = run(capsys, "start", "--book", str(book.root))
    assert (done.code, done.err) == (0, "")
    assert "if self.sequence_parallel:" in done.out and "Megatron" not in done.out
    _, _, after = done.out.partition("Where to go from here:")
    commands = re.findall(r"readerkit (\S+)", after)
    assert commands == ["annotate", "site", "note"]


def test_book_without_a_note_says_how_to_write_one(tmp_path, capsys):
    book = make_book(tmp_path, annotations="")
    done = run(capsys, "start", "--book", str(book.root))
    assert (done.code, done.out) == (1, "")
    assert done.err.endswith(f"readerkit note FILE:LINES --book {book.root}\n")
