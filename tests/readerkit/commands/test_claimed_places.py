"""Claims on chapters, labs, paths and a quiz: held, locked, listed and shown."""

from __future__ import annotations

import json
import re

import pytest

from tests.helpers import Result, make_book, run_typed, write_files
from tests.readerkit.commands.conftest import Desk
from tests.readerkit.commands.test_annotate import repin
from tests.readerkit.commands.test_check import ONE_OBJECTIVE

pytestmark = pytest.mark.sampled

FILES = {"lib/train.py": '"""Training."""\nREADY = False\nLIMIT = 8\n'}
CHAPTER = """\
# Training

It is off by default. A batch
holds 8 of them.

```note close
```

Only one waits.
"""
SPANISH = """\
# Entrenar

Por defecto no está activo. Un lote
tiene 8.

```note close
```

Solo uno espera.
"""
READY = "default: {file: lib/train.py, of: READY, is: false}"
LIMIT = "default: {file: lib/train.py, of: LIMIT, is: 8}"
BESIDE = f"""\
claims:
  - {{says: off by default, {READY}}}
  - {{says: A batch holds 8, {LIMIT}}}
"""
LAB = """\
# Lab 01: train

1. Run it. Is it always on?

```yaml
hours: 3
```

The batch has 8.
"""
SOLUTION = "# What it was\n\nEach batch\nhad 8. None was empty.\n"
QUESTION = f"""\
- id: pick
  type: single
  objective: one
  concepts: [collectives]
  difficulty: 1
  prompt: What is so?
  explanation: The limit is 8.
  claims: [{{says: limit is 8, {LIMIT}}}]
  notes: [close]
  options:
    - text: It is off by default
      right: true
      claims: [{{says: off by default, {READY}}}]
    - text: It is on by default
      why: The default is False.
      note: close
      claims:
        - {{says: is False, {READY}}}
    - {{text: It has none, why: It has 8 of them., note: close}}
"""
PAGE = "site/pages/chapters/01-training.md"
SIDE = PAGE.replace(".md", ".yaml")
PATHS = f"""\
failures:
  - id: late
    symptom: It is slow
    cause: The limit of 8 is low, and always was.
    notes: [close]
    claims:
      - {{says: limit of 8, {LIMIT}}}
pairs:
  - id: both
    memory: collectives
    coordination: all-reduce
    wire: Ready is False.
    notes: []
    claims:
      - {{says: Ready is False, {READY}}}
"""
ROUTES = "site/pages/paths.yaml"
QUIZ = "quizzes/7/all.yaml"
TASK, KEY = (f"site/pages/labs/01{part}.yaml" for part in ("", ".solution"))
MORE = {
    f"../{PAGE}": CHAPTER,
    f"../{PAGE[:-3]}.es.md": SPANISH,
    f"../{SIDE}": BESIDE,
    f"../{ROUTES}": PATHS,
    f"../{ROUTES[:-5]}.es.yaml": "pairs: {both: {wire: READY es False.}}\n",
    f"../{TASK[:-5]}.md": LAB,
    f"../{TASK}": f"claims:\n  - {{says: batch has 8, {LIMIT}}}\n",
    f"../{KEY[:-5]}.md": SOLUTION,
    f"../{KEY}": f"claims:\n  - {{says: batch had 8, {LIMIT}}}\n",
    "../quizzes/7/bank.yaml": ONE_OBJECTIVE,
    f"../{QUIZ}": QUESTION,
}


@pytest.fixture
def placed(tmp_path, capsys) -> Desk:
    desk = Desk(make_book(tmp_path, files=FILES, more=MORE), capsys)
    for command in (["annotate", "--update-lock"], ["quiz", "lint", "--update-lock"]):
        done = desk.run(*command)
        assert done.code == 0, done.err
    return desk


def edit(desk: Desk, file: str, old: str, new: str) -> None:
    path = desk.book.root / file
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new, 1))


def told_by(done: Result) -> str:
    """Return its errors without columns."""
    return re.sub(r"(?m)(yaml:\d+):\d+: ", r"\1: ", done.err)


def test_they_are_held_and_what_nothing_proves_is_listed(placed):
    done = placed.run("annotate", "--check", "--claims")
    assert (done.code, done.err) == (0, "")
    assert "claims: 9 sentences held\n" in done.out
    assert f"{PAGE}:9: training, text (Only): Only one waits.\n" in done.out
    told = f"{KEY[:-5]}.md:3: lab-01-solution, text (None): None was empty.\n"
    assert told in done.out and "lab-01, " not in done.out
    told = f"{ROUTES}:2: late, cause (always): The limit of 8 is low, and always was.\n"
    assert told in done.out
    assert f"{QUIZ}:19: pick, why (8): It has 8 of them.\n" in done.out


FALSE = {
    "a chapter": (SIDE, "READY, is: false", "READY, is: true", 2, "training"),
    "a lab": (TASK, "is: 8", "is: 9", 2, "lab-01"),
    "a solution": (KEY, "is: 8", "is: 9", 2, "lab-01-solution"),
    "a failure": (ROUTES, "LIMIT, is: 8", "LIMIT, is: 9", 7, "late"),
    "a pair": (ROUTES, "is: false", "is: true", 15, "both"),
    "an explanation": (QUIZ, "LIMIT, is: 8", "LIMIT, is: 9", 8, "pick"),
    "a right option": (QUIZ, "READY, is: false", "READY, is: true", 13, "pick"),
    "why one is wrong": (QUIZ, "is False, default: {file: lib/train.py, of: READY, "
                         "is: false", "is False, default: {file: lib/train.py, of: "
                         "READY, is: true", 18, "pick"),
}  # fmt: skip


@pytest.mark.parametrize("where", FALSE)
def test_a_false_one_is_told_at_its_line(where, placed):
    file, old, new, line, entry = FALSE[where]
    edit(placed, file, old, new)
    told = f"{file}:{line}: {entry}: '"
    done = placed.run("annotate", "--check")
    assert done.code == 1 and told_by(done).count(told) == 1, done.err
    assert " is not true: got lib/train.py:" in done.err
    done = placed.run("quiz", "lint")
    assert (told in told_by(done)) == (file == QUIZ), done.err
    assert done.code == (file == QUIZ)


def test_a_moved_pin_says_which_is_no_longer_true(placed):
    code = FILES["lib/train.py"].replace("False", "True")
    write_files(placed.book.repository, {"lib/train.py": code})
    repin(placed.book)
    assert placed.run("fetch", "--update-lock").code == 0
    done = placed.run("annotate", "--check")
    rows = [row for row in told_by(done).splitlines() if "is no longer true" in row]
    assert [row.removeprefix("readerkit: ").partition(": ")[0] for row in rows] == [
        f"{QUIZ}:13",
        f"{QUIZ}:18",
        f"{SIDE}:2",
        f"{ROUTES}:15",
    ]


REFUSED = {
    "words of no paragraph": (
        SIDE, "A batch holds 8", "the batch holds 8",
        f"{SIDE}:3: 'says' what no text says: got 'the batch holds 8', expected words "
        f"of one paragraph of {PAGE}",
    ),
    "words of two paragraphs": (
        SIDE, "A batch holds 8", "of them. Only one",
        f"{SIDE}:3: 'says' what no text says",
    ),
    "words of no paragraph of a lab": (
        TASK, "batch has 8", "'hours: 3'",
        f"{TASK}:2: 'says' what no text says: got 'hours: 3', expected words of one "
        f"paragraph of {TASK[:-5]}.md",
    ),
    "words of another failure": (
        ROUTES, "says: limit of 8", "says: Ready",
        f"{ROUTES}:7: 'says' what no text says: got 'Ready', expected words of "
        "symptom, cause, exactly as they stand",
    ),
    "no claims beside a chapter": (
        SIDE, BESIDE, "claim: []\n", f"{SIDE}:1: unknown key: got 'claim', expected "
        "'claims', perhaps",
    ),
    "the words of a wrong option": (
        QUIZ, "says: is False", "says: on by default",
        f"{QUIZ}:18: 'says' what no text says: got 'on by default'",
    ),
    "two checks": (
        QUIZ, f"limit is 8, {LIMIT}", f"limit is 8, {LIMIT}, value: {{of: '1'}}",
        f"{QUIZ}:8: wrong value for this entry",
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", REFUSED)
def test_what_is_no_such_claim_is_refused_once_with_its_place(what, placed):
    file, old, new, told = REFUSED[what]
    edit(placed, file, old, new)
    done = placed.run("annotate", "--check")
    assert done.code == 1 and told_by(done).count(told) == 1, done.err


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("training", ["off by default", "A batch holds 8"]),
        ("late", ["limit of 8"]),
        ("both", ["Ready is False"]),
        ("lab-01", ["batch has 8"]),
        ("lab-01-s", ["batch had 8"]),
        ("pick", ["limit is 8", "off by default", "is False"]),
        ("collectives", []),
        ("close", []),
    ],
)
def test_what_proves_an_entry_is_shown_by_its_name(name, says, placed):
    done = placed.run("annotate", name, "--claims", "--json")
    assert [each["says"] for each in json.loads(done.out)["claims"]] == says
    done = placed.run("annotate", name, "--claims")
    assert done.code == 0 and all(f"holds\t{each}" in done.out for each in says)


def test_what_proves_a_question_is_named_where_its_answer_is_told(placed):
    book = str(placed.book.root)
    done = run_typed("quiz", "7", "--only", "pick", "--book", book, stdin="-\n")
    _, _, below = done.out.partition("The limit is 8.")
    assert "what proves it: readerkit annotate pick --claims" in below


def test_a_chapters_page_marks_them_in_both_languages(placed, tmp_path):
    site = tmp_path / "site"
    done = placed.run("site", "build", "--output", str(site))
    assert done.code == 0, done.err
    page = (site / "chapters" / "training.html").read_text()
    mark = 'class=proved[^>]* href="#training-claim-1"'
    assert len(re.findall(mark, page)) == 2
    assert page.count('id="training-claim-2"') == 1


def test_a_labs_page_marks_them_and_keeps_those_of_the_solution_with_it(
    placed, tmp_path
):
    site = tmp_path / "site"
    done = placed.run("site", "build", "--output", str(site))
    assert done.code == 0, done.err
    page = (site / "labs" / "01.html").read_text()
    problem, _, solution = page.partition('id="solution"')
    for part, name in ((problem, "lab-01"), (solution, "lab-01-solution")):
        assert f'href="#{name}-claim-1"' in part
        assert part.count(f'id="{name}-claim-1"') == 1
    assert "batch had 8" not in problem
    listed = (site / "labs" / "index.html").read_text()
    assert "2 claimsafirmaciones" in re.sub("<[^>]+>", "", listed)


def test_the_page_of_paths_marks_them_where_they_stand(placed, tmp_path):
    site = tmp_path / "site"
    done = placed.run("site", "build", "--output", str(site))
    assert done.code == 0, done.err
    late, both = re.findall(
        r'<section class="symptom".*?</section>',
        (site / "paths.html").read_text(),
        re.S,
    )
    assert late.count('href="#late-claim-1"') == 1
    assert both.count('href="#both-claim-1"') == 2  # in both languages
    for name, part in (("late", late), ("both", both)):
        assert part.count(f'id="{name}-claim-1"') == 1
        assert part.count("Why these sentences are so") == 1
