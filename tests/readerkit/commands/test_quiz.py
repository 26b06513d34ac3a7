"""``readerkit quiz``: in a terminal, for programs; killed, resumed, reviewed."""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import jsonschema_rs
import pytest

from readerkit.app.cited_lines import SourceLines
from readerkit.app.interface_translation import read_words
from readerkit.app.quiz_banks import QuizBanks, open_history
from readerkit.content.strict_yaml import parse_yaml
from readerkit.model.addresses import source_page
from tests.conftest import REAL_CACHE
from tests.helpers import (
    ROOT,
    WAIT_S,
    Result,
    made_once,
    run,
    run_process,
    run_typed,
    write_files,
)
from tests.readerkit.quiz.sample import BANK, QUESTIONS
from tests.readerkit.test_interface_translation import in_code
from tests.terminals import READERKIT, Terminal

pytestmark = pytest.mark.sampled

FORWARD = (
    "file: megatron/core/tensor_parallel/layers.py, symbol: RowParallelLinear.forward"
)
PROOF = (
    "{file: megatron/core/model_parallel_config.py, "
    "of: ModelParallelConfig.overlap_p2p_comm, is: false}"
)
HEAVY = ("torch", "jinja2", "tree_sitter", "git", "rich", "fsrs", "yaml", "genanki")


@pytest.fixture(scope="session")
def template(tmp_path_factory) -> Path:
    """The book that ships, in which phase 7 is a short quiz; to be copied."""
    text = QUESTIONS.replace("note: close", "note: tp-row-forward")
    for before, after in (
        ("notes: [close]", "notes: [tp-row-forward]"),
        ("concepts: [c]", "concepts: [collectives]"),
        ('{key: paper, section: "3"}', '{key: zero, section: "3.1"}'),
        ("{file: a.py, of: F, is: 1}", PROOF),
        ('"h(...)"', '"input_parallel = input_"'),
        ('"k(...)"', '"output = output_"'),
        ("file: m.py, symbol: f", "file: mini_impls/ddp.py, symbol: broadcast_params"),
        ("upstream: sample, file: a.py, symbol: f", f"upstream: megatron, {FORWARD}"),
        ('"g(...)"', '"output_ = reduce_scatter_to_sequence_parallel_region(...)"'),
    ):
        assert before in text
        text = text.replace(before, after)

    def make(folder: Path) -> None:
        root = folder / "book"
        write_files(root, {"quizzes/7/bank.yaml": BANK, "quizzes/7/all.yaml": text})
        (root / "annotations").symlink_to(ROOT / "annotations")
        here = {"READERKIT_CACHE": str(REAL_CACHE)}
        here["READERKIT_DATA"] = str(root / "data")
        arguments = ("quiz", "lint", "7", "--update-lock", "--book", str(root))
        done = run_process(*arguments, environment=here)
        assert done.code == 0, done.err

    return made_once(tmp_path_factory, "short-quiz", make) / "book"


@pytest.fixture
def book(template, tmp_path) -> Path:
    """A copy of it, with a cache of its own over the real source."""
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache" / "blobs").symlink_to(REAL_CACHE / "blobs")
    return Path(shutil.copytree(template, tmp_path / "book", symlinks=True))


def bank(book: Path):
    return QuizBanks(book).bank(7)


class Driver:
    """A program that takes the quiz: reads questions, writes answers."""

    def __init__(self, *arguments: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "readerkit", "quiz", *arguments, "--json"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=ROOT,
        )

    def read(self) -> dict:
        line = self.process.stdout.readline()
        assert line, self.process.stderr.read()
        return json.loads(line)

    def say(self, **message) -> dict:
        self.process.stdin.write(json.dumps(message) + "\n")
        self.process.stdin.flush()
        return self.read()

    def leave(self) -> int:
        self.process.stdin.close()
        self.process.stdout.read()
        return self.process.wait(WAIT_S)


@contextmanager
def driven(*arguments: str) -> Iterator[Driver]:
    driver = Driver(*arguments)
    try:
        yield driver
    finally:
        driver.process.kill()
        driver.process.wait()
        for stream in ("stdin", "stdout", "stderr"):
            getattr(driver.process, stream).close()


def key(book: Path, question: dict, seed: int) -> str:
    return bank(book).variant(question["id"], seed).typed_key


# --- for programs ---


def test_program_takes_the_whole_quiz(book):
    with driven("7", "--book", str(book), "--count", "10", "--seed", "4") as driver:
        session = driver.read()
        assert (session["type"], session["protocol"]) == ("session", 1)
        assert session["questions"] == 10
        seen = []
        for position in range(1, 11):
            question = driver.read()
            assert (question["type"], question["position"]) == ("question", position)
            seen.append(question["id"])
            result = driver.say(answer=key(book, question, session["seed"]))
            assert (result["type"], result["right"]) == ("result", True)
            assert result["explanation"]
            assert result["links"] or result["references"]
        score = driver.read()
        assert (score["type"], score["complete"]) == ("score", True)
        assert (score["score"], score["passed"]) == (1, True)
        assert driver.leave() == 0
    assert len(set(seen)) == 10
    assert len(open_history().answers()) == 10


def test_question_about_code_brings_the_lines(book):
    with driven("7", "--book", str(book), "--only", "line") as driver:
        driver.read()
        search = driver.read()["search"]
        assert search["path"] == "megatron/core/tensor_parallel/layers.py"
        assert len(search["lines"]) == search["last"] - search["first"] + 1
        assert "def forward" in search["lines"][0]
        [number] = [
            search["first"] + index
            for index, line in enumerate(search["lines"])
            if "output_ = reduce_scatter_to_sequence" in line
        ]
        assert driver.say(answer=number)["right"]


@pytest.mark.parametrize(
    "line",
    [
        "",
        "nonsense",
        "[]",
        "3",
        '{"answer": null}',
        '{"answer": {}}',
        '{"answer": true}',
        '{"answer": "\\ud800"}',
        '{"answer": "many"}',
        '{"answer": ""}',
        '{"unknown": 1}',
        "{" * 5000,
        pytest.param('{"answer": "' + " " * 250_000 + '112"}', id="long"),
        '{"answer": "111", "skip": true}',
        '{"hint": true, "stop": true}',
    ],
)
def test_line_that_is_no_answer_is_an_error_and_kept_nowhere(book, line):
    with driven("7", "--book", str(book), "--only", "bytes") as driver:
        driver.read(), driver.read()
        driver.process.stdin.write(line + "\n")
        if line:
            driver.process.stdin.flush()
            error = driver.read()
            assert error["type"] == "error"
            assert "expected" in error["text"]
            assert "char 0" not in error["text"]
        assert driver.say(answer="112")["right"]
        assert driver.leave() == 0
    assert [answer.answer for answer in open_history().answers()] == ["112"]


def test_byte_order_mark_before_a_message_says_nothing(book):
    with driven("7", "--book", str(book), "--only", "bytes") as driver:
        driver.read(), driver.read()
        driver.process.stdin.write('\ufeff{"answer": "112"}\n')
        driver.process.stdin.flush()
        assert driver.read()["type"] == "result"
        assert driver.leave() == 0


def test_seed_that_no_history_can_keep_is_refused(book, capsys):
    where = ("quiz", "7", "--book", str(book), "--json")
    largest = run(capsys, *where, "--seed", str(2**63 - 1))
    assert json.loads(largest.out.splitlines()[0])["seed"] == 2**63 - 1
    done = run(capsys, *where, "--seed", str(2**63))
    assert done.code == 2
    assert f"{2**63} is not in the range 0<=x<={2**63 - 1}" in done.err


def test_lists_are_answers_too(book):
    with driven("7", "--book", str(book), "--only", "grid", "--only", "row") as driver:
        driver.read(), driver.read()
        rows = [["column", "16x8"], ["row", "8x16"]]
        assert driver.say(answer=rows)["right"]
        driver.read()
        assert driver.say(answer=["F0", "F1", "B0"])["right"]


def test_cells_of_a_grid_may_be_lists(book):
    with driven("7", "--book", str(book), "--only", "grid") as driver:
        driver.read(), driver.read()
        rows = [["column", [16, 8]], ["row", "8 x 16"]]
        assert driver.say(answer=rows)["right"]


@pytest.mark.parametrize("around", [False, True])
def test_groups_of_a_grid_may_be_lists_of_lists(real_cache, around):
    with driven("35", "--only", "layout-8-groups", "--seed", "1") as driver:
        driver.read(), driver.read()
        asked = QuizBanks(ROOT).bank(35).variant("layout-8-groups", 1)
        cells = [
            [[int(rank) for rank in group.split(",")] for group in line.split("|")]
            for line in asked.typed_key.split("\n")
        ]
        rows = [[cell] for cell in cells] if around else cells
        assert driver.say(answer=rows)["right"]


def test_left_quiz_is_resumed(book):
    where = ("--book", str(book))
    with driven("7", *where, "--count", "4", "--seed", "1") as driver:
        first = driver.read()
        question = driver.read()
        driver.say(answer=key(book, question, 1))
        assert driver.read()["position"] == 2
        assert driver.say(stop=True)["complete"] is False
        assert driver.leave() == 0
    with driven("7", *where, "--resume") as driver:
        session = driver.read()
        assert (session["id"], session["answered"]) == (first["id"], 1)
        assert driver.read()["position"] == 2


def test_quiz_that_nobody_left_cannot_be_resumed(book, capsys):
    done = run(capsys, "quiz", "7", "--book", str(book), "--resume", "--json")
    assert done.code == 1
    assert "no quiz was left unfinished" in done.err


@pytest.mark.parametrize(("answer", "code"), [("112", 0), ("84", 1)])
def test_exam_says_nothing_and_ends_with_its_code(book, answer, code):
    with driven("7", "--book", str(book), "--exam", "--only", "bytes") as driver:
        assert driver.read()["seconds_left"] == pytest.approx(600, abs=5)
        driver.read()
        result = driver.say(answer=answer)
        assert result == {
            "type": "result",
            "position": 1,
            "recorded": True,
            "done": True,
        }
        score = driver.read()
        assert score["passed"] is (code == 0)
        assert score["marked"][0]["solution"] == "112 GB"
        assert driver.leave() == code


@pytest.mark.parametrize("answers", [0, 1])
def test_exam_that_is_left_is_neither_passed_nor_failed(book, answers):
    questions = ("--only", "bytes", "--only", "gap")
    with driven("7", "--book", str(book), "--exam", *questions) as driver:
        driver.read(), driver.read()
        for _ in range(answers):
            driver.say(answer="112")
            driver.read()
        score = driver.say(stop=True)
        assert (score["complete"], score["answered"], score["of"]) == (
            False,
            answers,
            2,
        )
        assert not {"score", "points", "passed", "topics", "marked"} & score.keys()
        assert driver.leave() == 130


def test_places_say_their_page_of_the_site(book):
    with driven("7", "--book", str(book), "--only", "pick") as driver:
        driver.read(), driver.read()
        [link] = driver.say(skip=True)["links"]
    assert link["page"] == f"{source_page('megatron', link['path'])}#L1274-L1294"


@pytest.mark.slow
def test_killed_in_mid_session_nothing_acknowledged_is_lost(book):
    dice = random.Random(2)
    where = ("--book", str(book))
    said = 0
    for _ in range(10):
        arguments = ("7", *where, "--count", "10", "--seed", "9", "--tries", "1")
        with driven(*arguments) as driver:
            session = driver.read()
            for _ in range(dice.randrange(1, 9)):
                question = driver.read()
                result = driver.say(answer=key(book, question, 9))
                assert result["recorded"]
                said += 1
            os.kill(driver.process.pid, signal.SIGKILL)
        kept = open_history().answers(session["id"])
        assert [answer.position for answer in kept] == list(range(len(kept)))
        assert len(kept) == result["position"]
    assert len(open_history().answers()) == said


def test_two_processes_write_one_history(book):
    arguments = ("7", "--book", str(book), "--seed", "3", "--count", "4")
    with driven(*arguments) as one, driven(*arguments) as other:
        one.read(), other.read()
        for _ in range(4):
            question = one.read()
            assert other.read()["id"] == question["id"]
            for driver in (one, other):
                assert driver.say(answer=key(book, question, 3))["right"]
    assert len(open_history().answers()) == 8


def test_stranger_fails_follows_the_links_and_passes_with_other_variants(
    book, capsys, real_cache
):
    shipped = QuizBanks(ROOT).bank(35)
    prompts, links = [], set()
    for seed, passes in ((1, False), (2, True)):
        arguments = ("35", "--exam", "--count", "12", "--seed", str(seed))
        with driven(*arguments) as driver:
            driver.read()
            for _ in range(12):
                question = driver.read()
                prompts.append(question["prompt"])
                if passes:
                    asked = shipped.variant(question["id"], seed)
                    driver.say(answer=asked.typed_key)
                else:
                    driver.say(skip=True)
            score = driver.read()
            assert score["passed"] is passes
            links |= {each["note"] for each in score["read_next"]}
            assert driver.leave() == (0 if passes else 1)
    assert len(set(prompts)) > 12, "other questions, or the same in other variants"
    assert links, "the first score names notes to read"
    for note in sorted(links):
        shown = run(capsys, "annotate", note)
        assert shown.code == 0, "each link leads to its lines"


# --- in a terminal ---


def typed(book: Path, *arguments: str, answers: str) -> Result:
    return run_typed("quiz", "7", "--book", str(book), *arguments, stdin=answers)


def test_wrong_answer_leads_to_the_lines_that_refute_it(book):
    shown = bank(book).variant("pick", 0).prompt.options
    [copy] = [option.label for option in shown if option.text == "a copy"]
    done = typed(book, "--only", "pick", "--seed", "0", answers=f"{copy}\n-\n")
    assert done.code == 0
    assert "Not yet." in done.out
    assert "Nothing is summed." in done.out
    assert "→ megatron/core/tensor_parallel/layers.py:" in done.out
    assert "output_parallel = self._forward_impl(" in done.out, "the lines themselves"
    assert "readerkit annotate tp-row-forward" in done.out
    assert re.search(
        r"https://github.com/\S+/blob/[0-9a-f]{40}/\S+#L\d+-L\d+", done.out
    )
    assert "Answer  " in done.out
    assert "what proves it: readerkit annotate pick --claims" in done.out
    assert "Score 0% of 1 question (95% interval" in done.out
    assert "Read next:" in done.out


def test_marks_that_are_no_points_are_asked_for_again(book):
    told = typed(
        book, "--only", "essay", "--seed", "0", answers="So.\n\nn\n1, 9\n1, 2\n"
    )
    assert told.code == 0
    assert "got 'n', expected points by their numbers: 1, 3" in told.out
    assert told.out.count("type the points you made") == 3
    assert "Right. 1 point." in told.out


def words_in(texts: Iterable[str]) -> set[str]:
    """Return the words of phrases, the names of their blanks aside."""
    plain = re.sub(r"{\w+}", " ", " ".join(texts))
    return set(re.findall(r"[^\W\d_]{2,}", plain.casefold()))


@pytest.fixture(scope="module")
def english_words() -> set[str]:
    """Give the words that the quiz says in English, and the sample bank does not."""
    said = [text for text, where, is_said in in_code() if is_said and "quiz" in where]
    spanish = read_words().all
    return words_in(said) - words_in((QUESTIONS, BANK, *map(spanish.get, said)))


@pytest.mark.further
@pytest.mark.parametrize(
    ("name", "unread", "wrong"),
    [
        ("pick", "?", "{wrong}"),
        ("several", "?", "{part}"),
        ("bytes", "48 Gb", "112 s"),
        ("bytes", "112,5", "112 GiB"),
        ("steps", "1 2", "{back}"),
        ("pairs", "1", "1a 2a 3a"),
        ("gap", "()", "no_grad"),
        ("line", "99999", "{first}"),
        ("row", "F0", "F0 F1 F2"),
        ("grid", "column\nrow", "row 1x2\ncolumn 2x1"),
        ("essay", "text\n\n9", "1"),
    ],
)
def test_all_but_the_question_is_spanish(name, unread, wrong, book, english_words):
    key = bank(book).variant(name, 0).typed_key
    blanks = {
        "wrong": min({"a", "b", "c"} - {key}),
        "part": key.split()[0],
        "back": " ".join(reversed(key.split())),
        "first": bank(book).lock.places["line/within"].first,
    }
    given = [unread, wrong.format(**blanks), *([] if name == "essay" else [key])]
    options = ("--only", name, "--seed", "0", "--lang", "es")
    done = typed(book, *options, answers="\n".join(given) + "\n")
    assert done.code == 0, done.err
    lines = re.sub(r"--\w+|\S*/\S+|readerkit quiz", "", done.out).splitlines()
    told = (line for line in lines if not re.match("    |  (→|readerkit)", line))
    english = english_words - words_in(given)
    assert {"got", "expected"} < english
    assert words_in(told) & english == set()


def test_place_is_led_to_where_it_can_be_looked_at(book, tmp_path, monkeypatch):
    """The page of the book's own site, once it is built; the file, of a mini."""
    monkeypatch.chdir(tmp_path)
    shown = bank(book).variant("pick", 0).prompt.options
    label = {option.text: option.label for option in shown}
    wrong = f"{label['a barrier']}\n{label['a copy']}\n"
    one = ("--only", "pick", "--seed", "0")
    done = typed(book, *one, answers=wrong)
    mini = ROOT / "mini_impls" / "ddp.py"
    assert re.search(rf"^    {re.escape(str(mini))}:\d+$", done.out, re.MULTILINE)
    page = source_page("megatron", "megatron/core/tensor_parallel/layers.py")
    write_files(tmp_path / "build" / "site", {page: "a page of another book"})
    assert "file:" not in typed(book, *one, answers=wrong).out
    write_files(book / "build" / "site", {page: "a page"})
    done = typed(book, *one, answers=wrong)
    address = (book / "build" / "site" / page).as_uri()
    assert re.search(rf"^    {re.escape(address)}#L\d+-L\d+$", done.out, re.MULTILINE)


@pytest.mark.parametrize("columns", [40, 80])
def test_code_on_a_terminal_is_coloured_and_folded_between_words(book, columns):
    where = ("7", "--book", str(book), "--only", "line")
    with at_terminal(*where, columns=columns, lines=200) as reader:
        shown = reader.read_until("(a line number")
        reader.type("q\n")
        reader.read_until("Left.")
        assert reader.close() == 0
    assert "\x1b[35mdef\x1b[0m" in shown
    plain = re.sub(r"\x1b\[[0-9;]*m", "", shown).replace("\r", "")
    # A path is one word, however long.
    assert all(len(line) <= columns for line in plain.split("\n") if " " in line)
    code = [re.sub(r"^ *\d+ ", "", line) for line in plain.split("\n")]
    layers = SourceLines(QuizBanks(book), book).lines(
        bank(book).lock.places["line/within"]
    )
    known = set(re.findall("[a-zA-Z]+", "\n".join(layers)))
    at = next(i for i, line in enumerate(code) if "def forward" in line)
    broken = set(re.findall("[a-zA-Z]+", "\n".join(code[at : at + 20]))) - known
    assert not broken
    # Below 50 columns the longest name of all does not fit behind its number.
    names = ("input_parallel", "explicit_expert_comm", "sequence_parallel_region")
    assert all(re.search(rf"\b\w*{name}\b", plain) for name in names[: columns // 25])


@pytest.mark.further
def test_what_to_read_next_fits_the_terminal(book):
    where = ("7", "--book", str(book), "--only", "line")
    with at_terminal(*where, columns=40, lines=200) as reader:
        reader.read_until("(a line number")
        reader.type("1260\n")
        reader.read_until("> ")
        reader.type("-\n")
        reader.read_until("q: leave")
        reader.type("\n")
        assert reader.close() == 0
    shown = re.sub(r"\x1b\[[0-9;]*m", "", reader.shown).replace("\r", "")
    _, _, below = shown.partition("Read next:")
    assert "readerkit annotate" in below
    long = [line.strip() for line in below.split("\n") if len(line) > 40]
    assert all(line.startswith("readerkit ") for line in long), "to be copied whole"
    assert "readerkit quiz review --book" in below


@pytest.mark.parametrize(
    ("kind", "hint"),
    [
        ("pick", "(one letter, a to c)"),
        ("several", "(the letters of all that are right, of a to d)"),
        ("steps", "(the numbers 1 to 4 in order, with blanks)"),
        ("pairs", "(a letter for each number, in the form 1x 2y)"),
    ],
)
def test_hint_names_no_answer(kind, hint, book):
    done = typed(book, "--only", kind, answers="q\n")
    assert hint in " ".join(done.out.split())


def test_part_of_a_quiz_has_no_verdict(book):
    two = ("--only", "gap", "--only", "row", "--only", "bytes")
    done = typed(book, *two, answers="no_sync\nF0 F1 B0\nq\n")
    assert done.code == 0
    assert "2 of 3 answered: so far 100% of 2 questions (95% interval" in done.out
    assert "Part of a quiz has no verdict." in " ".join(done.out.split())
    assert "passed" not in done.out and "passes" not in done.out


def test_part_of_a_quiz_has_no_verdict_for_a_program(book):
    with driven("7", "--book", str(book), "--only", "gap", "--only", "row") as driver:
        driver.read(), driver.read()
        driver.say(answer="no_sync")
        driver.read()
        score = driver.say(stop=True)
        assert (score["complete"], score["score"]) == (False, 1)
        assert (score["answered"], score["of"]) == (1, 2)
        assert "passed" not in score
        assert driver.leave() == 0


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("pipeline", "readerkit quiz 35 --topic pipeline"),
        ("fsdp", "readerkit quiz 35 --topic sharded_state"),
        ("nothing", "readerkit quiz 35 --topic memory"),
        ("reviw", "did you mean 'review'?"),
    ],
)
def test_word_that_is_no_phase_leads_to_what_may_be_asked(word, expected, capsys):
    done = run(capsys, "quiz", word)
    assert (done.code, done.out) == (2, "")
    assert expected in done.err
    assert "No such command" not in done.err


def test_phase_that_the_book_lacks_names_those_it_has(capsys):
    done = run(capsys, "quiz", "36")
    assert (done.code, done.out) == (2, "")
    assert done.err == (
        "readerkit: no quiz of phase 36 in this book: got 36, "
        "expected readerkit quiz 35\n"
    )


def test_second_try_passes_for_half_the_points(book):
    done = typed(book, "--only", "bytes", answers="84\nplenty\n112\n")
    assert "master copy of 28 GB is missing" in done.out
    assert "expected a number and a unit" in done.out
    assert "Right. 0.5 points." in done.out
    assert "Rajbhandari" in done.out, "the reference in words"


def test_points_of_a_try_before_are_kept_and_told_with_a_skip(book):
    done = typed(book, "--only", "row", answers="F0 F1 F2\n-\n")
    assert "0.67 points of before are kept." in done.out
    assert "Score 67%" in done.out


def test_grid_is_asked_row_by_row(book):
    done = typed(book, "--only", "grid", answers="column 16x8\nrow 8x16\n")
    assert "up > " in done.out
    assert "down > " in done.out
    assert "Right. 1 point." in done.out


@pytest.mark.parametrize(
    ("marks", "credit"), [("", "50% of it is right"), ("1 2", "Right. 1 point.")]
)
def test_text_ends_with_an_empty_line_and_its_reader_corrects(book, marks, credit):
    text = f"The bytes\nare bounded.\n\n{marks}\n"
    done = typed(book, "--only", "essay", answers=text)
    before, _, after = done.out.partition("1 found: “The bytes are bounded.”")
    assert "one reason" not in before
    assert "2 not found: another reason" in after
    assert credit in done.out


def test_end_of_input_leaves_and_keeps_what_was_answered(book):
    done = typed(book, "--only", "gap", "--only", "row", answers="no_sync\n")
    assert done.code == 0
    assert "interrupted" not in done.err
    assert "1 of 2 answered, and kept" in done.out
    assert [answer.question for answer in open_history().answers()] == ["gap"]
    again = typed(book, "--resume", answers="F0 F1 B0\n")
    assert again.code == 0
    assert "2/2" in again.out
    assert "Score 100% of 2 questions" in again.out


def test_leaving_tells_how_to_go_on(book):
    done = typed(book, "--only", "gap", "--only", "row", answers="no_sync\nq\n")
    assert done.code == 0
    assert "readerkit quiz 7 --resume" in done.out


def test_leaving_without_an_answer_promises_nothing(book):
    done = typed(book, "--only", "gap", answers="q\n")
    assert done.code == 0
    assert "Nothing was answered" in done.out
    assert "--resume" not in done.out


def test_what_was_skipped_counts_at_the_end_alone(book):
    three = ("--only", "gap", "--only", "row", "--only", "bytes")
    none = typed(book, *three, answers="-\nq\n")
    assert "0 of 3 answered, and kept" in none.out
    assert "so far" not in none.out
    part = typed(book, "--resume", answers="F0 F1 B0\nq\n")
    assert "1 of 3 answered: so far 100% of 1 question (" in " ".join(part.out.split())
    whole = typed(book, "--resume", answers="-\n")
    assert "3/3" in whole.out
    assert "Score 33% of 3 questions" in whole.out


def test_leaving_an_exam_shows_no_points(book):
    done = typed(book, "--exam", "--only", "bytes", "--only", "gap", answers="112\nq\n")
    assert done.code == 130
    assert "readerkit quiz 7 --exam --resume" in done.out
    assert "Score" not in done.out
    assert "Read next" not in done.out


def test_what_is_due_tells_nothing_of_an_exam_that_goes_on(book, capsys):
    typed(book, "--exam", "--only", "bytes", "--only", "gap", answers="84\nq\n")
    assert json.loads(run(capsys, "quiz", "stats", "--json").out)["due"] == []
    nothing = run(capsys, "quiz", "7", "--due", "--book", str(book))
    assert nothing.code == 1
    assert "nothing was answered yet" in nothing.err


def test_exam_in_a_terminal_explains_at_the_end(book):
    done = typed(
        book, "--exam", "--only", "bytes", "--only", "gap", answers="84\nno_sync\n"
    )
    assert done.code == 1
    before, _, after = done.out.partition("1  wrong  bytes")
    assert "112" not in before
    assert "Answer  112 GB" in after


# --- the rest ---


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("8",), 2, "no quiz of phase 8"),
        (("7", "--topic", "la"), 2, "unknown topic: got 'la', expected one of all"),
        (("7", "--only", "bites"), 2, "did you mean bytes or steps?"),
        (("7", "--due"), 1, "nothing was answered yet"),
        (("review", "--phase", "7"), 1, "nothing was answered yet"),
    ],
)
def test_what_cannot_be_asked_is_told(book, capsys, arguments, code, said):
    done = run(capsys, "quiz", *arguments, "--book", str(book))
    assert done.code == code
    assert said in done.err


def test_mistake_is_not_due_before_tomorrow(book, capsys):
    typed(book, "--only", "bytes", "--tries", "1", answers="84\n")
    done = run(capsys, "quiz", "review", "--phase", "7", "--book", str(book))
    assert done.code == 1
    assert "nothing is due: the next is due on" in done.err


def test_mistake_comes_back_when_it_is_due(book):
    typed(
        book,
        "--only",
        "bytes",
        "--only",
        "gap",
        "--tries",
        "1",
        answers="84\nno_sync\n",
    )
    history = open_history()
    history._connection.execute(
        "UPDATE answer SET answered = '2026-01-01T00:00:00.000+00:00'"
        " WHERE question = 'bytes'"
    )
    done = run_process(
        "quiz", "review", "--phase", "7", "--book", str(book), stdin="112\n"
    )
    assert done.code == 0, done.err
    assert "1 question" in done.out
    assert "billion parameters at 16 bytes" in done.out


def test_stats_export_and_delete(book, capsys, tmp_path):
    assert "Nothing was answered yet" in run(capsys, "quiz", "stats").out
    typed(book, "--only", "bytes", answers="112\n")
    assert "100% of 1" in run(capsys, "quiz", "stats").out
    values = json.loads(run(capsys, "quiz", "stats", "--json").out)
    assert values["topics"]["all"]["score"] == 1
    assert values["due"][0]["question"] == "bytes"
    file = tmp_path / "answers.json"
    assert run(capsys, "quiz", "export", str(file)).code == 0
    assert json.loads(file.read_text())["answers"][0]["answer"] == "112"
    assert json.loads(run(capsys, "quiz", "export").out) == json.loads(file.read_text())
    assert "forgot 1 answer\n" in run(capsys, "quiz", "delete", "--yes").out
    assert open_history().answers() == []


def test_delete_asks_first(book):
    typed(book, "--only", "bytes", answers="112\n")
    with at_terminal("delete") as reader:
        reader.read_until("Forget 1 answer? [y/N]")
        reader.type("n\n")
        reader.read_until("nothing was forgotten")
        assert reader.close() == 130
    for answer in ("", "y\n"):
        alone = run_process("quiz", "delete", stdin=answer)
        assert (alone.code, alone.out, alone.err.count("\n")) == (2, "", 1)
        assert "got no terminal to ask on, expected --yes" in alone.err
    assert len(open_history().answers()) == 1


def test_lint_fails_where_the_lock_is_old(book, capsys):
    path = book / "quizzes" / "7" / "keys.lock"
    path.write_text(path.read_text().replace('"first": 1290', '"first": 1288'))
    done = run(capsys, "quiz", "lint", "7", "--book", str(book))
    assert done.code == 1
    assert "line/key has changed: was" in done.err
    assert "quiz lint 7 --update-lock" in done.err


def test_lint_fails_where_an_anchor_is_gone(book, capsys):
    file = book / "quizzes" / "7" / "all.yaml"
    file.write_text(
        file.read_text().replace("RowParallelLinear.forward", "Row.forward")
    )
    done = run(capsys, "quiz", "lint", "7", "--book", str(book))
    assert done.code == 1
    assert re.search(r"quizzes/7/all.yaml:\d+:3: line:", done.err)
    assert "did you mean RowParallelLinear.forward?" in done.err


def test_schema_is_one_for_editors(capsys):
    schema = json.loads(run(capsys, "quiz", "lint", "--schema").out)
    validator = jsonschema_rs.Draft202012Validator(schema)
    question = parse_yaml(QUESTIONS.encode(), "all.yaml").value[0]
    known = {**question, "concepts": ["collectives"], "references": []}
    assert validator.is_valid([known])
    assert not validator.is_valid([{**known, "concepts": ["collective"]}])
    assert not validator.is_valid([{**known, "type": "numeric"}])


@pytest.mark.parametrize("text", ["", "{}", "[", '{"format": 9}', "\0"])
def test_lock_that_cannot_be_read_is_told_and_made_anew(book, capsys, text):
    path = book / "quizzes" / "7" / "keys.lock"
    whole = path.read_text()
    path.write_text(text)
    done = run(capsys, "quiz", "7", "--book", str(book), "--json")
    assert done.code == 1
    assert "--update-lock" in done.err
    assert (
        run(capsys, "quiz", "lint", "7", "--update-lock", "--book", str(book)).code == 0
    )
    assert path.read_text() == whole


def test_first_question_needs_nothing_heavy(book):
    script = (
        "import sys; from readerkit.cli import main\n"
        "try: main(['quiz', '7', '--only', 'pick', '--json', *sys.argv[1:]])\n"
        f"finally: print([name for name in {HEAVY!r} if name in sys.modules])"
    )
    arguments = [sys.executable, "-c", script, "--book", str(book)]
    typed(book, "--only", "gap", answers="no_sync\n")  # parsed files are remembered
    done = subprocess.run(arguments, input="", capture_output=True, text=True, cwd=ROOT)
    *messages, heavy = done.stdout.strip().split("\n")
    assert [json.loads(each)["type"] for each in messages] == [
        "session",
        "question",
        "score",
    ]
    assert heavy == "[]"


# --- on a terminal of its own ---


def at_terminal(*arguments: str, lines: int = 24, columns: int = 100) -> Terminal:
    size = {"columns": columns, "lines": lines}
    return Terminal(*READERKIT, "quiz", *arguments, **size, cwd=ROOT)


def test_interrupt_keeps_the_answers_and_the_next_start_offers_them(book):
    where = ("7", "--book", str(book))
    one = at_terminal(*where, "--only", "gap", "--only", "row")
    one.read_until("> ")
    one.type("no_sync\n")
    one.read_until("Enter: go on   q: leave")
    one.type("\n")
    one.read_until("2/2")
    one.type("\x03")
    one.read_until("1 of 2 answered, and kept. To go on: readerkit quiz 7 --resume")
    one.read_until("interrupted")
    assert one.close() == 130
    spanish = at_terminal(*where, "--resume", "--lang", "es")
    spanish.read_until("2/2")
    spanish.type("\x03")
    spanish.read_until("1 de 2 respondidas, y guardadas")
    spanish.close()
    two = at_terminal(*where)
    two.read_until("1 of 2 answered)? [Y/n]")
    two.type("\n")
    two.read_until("2/2")
    two.read_until("> ")
    two.type("F0 F1 B0\n")
    two.read_until("Enter: go on")
    two.type("\n")
    assert "Mistakes come back" in two.read_until("quiz review")
    two.read_until("passed")
    assert two.close() == 0
    assert [answer.question for answer in open_history().answers()] == ["gap", "row"]


def test_offer_to_resume_can_be_declined(book):
    where = ("7", "--book", str(book))
    typed(book, "--only", "gap", "--only", "row", answers="no_sync\nq\n")
    # Tall enough for the code of any question: none is paged.
    again = at_terminal(*where, lines=200)
    again.read_until("[Y/n]")
    again.type("n\n")
    assert "4 questions" in again.read_until("1/4")
    again.read_until("> ")
    again.type("q\n")
    again.read_until("Nothing was answered")
    assert again.close() == 0


@pytest.mark.parametrize(
    ("options", "asked", "wrong", "left", "code"),
    [
        ([], "[Y/n]", "Expected y or n; q leaves.", "0 of 2 answered, and kept", 0),
        (["--lang", "es"], "[S/n]", "Se espera s o n; q termina.", "0 de 2", 0),
        (["--exam"], "[Y/n]", "Expected y or n; q leaves.", "0 of 3 answered", 130),
    ],
    ids=["quiz", "in Spanish", "exam"],
)
def test_q_at_the_offer_to_resume_leaves(book, options, asked, wrong, left, code):
    chosen = () if "--exam" in options else ("--only", "gap", "--only", "row")
    exam = ("--exam",) if "--exam" in options else ()
    typed(book, *chosen, *exam, answers="-\nq\n")
    again = at_terminal("7", "--book", str(book), *options)
    again.read_until(asked)
    again.type("maybe\n")
    again.read_until(wrong)
    again.read_until(asked)
    again.type("q\n")
    again.read_until(left)
    assert again.close() == code
    assert "interrupted" not in again.shown


@pytest.mark.parametrize(("lines", "times"), [(24, 2), (500, 1)])
def test_prompt_stands_again_below_code_that_scrolls(book, lines, times):
    reader = at_terminal("7", "--book", str(book), "--only", "line", lines=lines)
    paged = "space: go on" if times > 1 else ""
    shown = reader.read_until(paged)
    reader.type("q" if paged else "")
    shown += reader.read_until("(a line number")
    assert shown.count("Where is it?") == times
    reader.read_until("> ")
    reader.type("c\n")
    reader.read_until(paged or "def")
    reader.type("q" if paged else "")
    reader.read_until("> ")
    reader.type("q\n")
    reader.read_until("Left.")
    assert reader.close() == 0


@pytest.mark.further
def test_result_longer_than_the_screen_is_read_from_its_beginning(book):
    asked = ("7", "--book", str(book), "--only", "gap", "--tries", "1")
    with at_terminal(*asked, lines=8) as reader:
        reader.read_until("> ")
        reader.type("forward\n")
        first = reader.read_until("space: go on")
        assert "Wrong." in first and "Answer" not in first
        rest = ""
        while "Enter: go on" not in rest:
            reader.type(" ")
            rest = reader.read_until("go on")
            reader.wait_until_asked()
        reader.type("\n")
        assert reader.close() == 0


@pytest.mark.further
def test_place_is_named_once_where_its_lines_are_shown(book):
    asked = ("7", "--book", str(book), "--only", "gap", "--tries", "1")
    with at_terminal(*asked, lines=200) as reader:
        reader.read_until("> ")
        reader.type("forward\n")
        shown = reader.read_until("Enter: go on")
        reader.type("\n")
        assert reader.close() == 0
    places = re.findall(r"→ (\S+\.py:\d+\S*)", re.sub(r"\x1b\S*?m", "", shown))
    assert places and len(places) == len(set(places))


@pytest.mark.further
def test_prompt_is_drawn_again_after_stop_and_fg(book):
    with at_terminal("7", "--book", str(book), "--only", "gap") as reader:
        reader.read_until("\n> ")
        reader.wait_until_asked()
        reader.stop()
        reader.resume()
        reader.read_until("> ")
        reader.type("no_sync\n")
        reader.read_until("Right.")
        reader.read_until("q: leave")
        reader.wait_until_asked()
        reader.stop()
        reader.resume()
        reader.read_until("q: leave")
        reader.type("\n")
        assert reader.close() == 0
    assert "passes" in reader.shown.strip().split("\n")[-1], "the verdict stands last"


@pytest.mark.parametrize(("term", "is_linked"), [("xterm", True), ("dumb", False)])
@pytest.mark.further
def test_place_is_opened_by_a_terminal_that_can(book, term, is_linked):
    command = (*READERKIT, "quiz", "7", "--book", str(book), "--only", "gap")
    with Terminal(*command, environment={"TERM": term}, cwd=ROOT) as reader:
        reader.read_until("> ")
        reader.type("-\n")
        shown = reader.read_until("Enter: go on")
    link = re.search(r"\x1b\]8;;(\S+?)\x1b\\.*?→ \S+.*?\x1b\]8;;\x1b\\", shown)
    assert bool(link) == is_linked
    assert not link or re.match(r"(https|file)://", link[1])
    assert "\x1b]8" not in typed(book, "--only", "gap", answers="-\n").out
