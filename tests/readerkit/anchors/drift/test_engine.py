"""Spans carried through refactorings whose truth is known, because they are made here.

Each case is a tree before and after; the span is the lines between two marks.
"""

import random
import time
from textwrap import dedent

import pytest

from readerkit.anchors.drift.engine import carry
from readerkit.model.anchor import Span

BANK = '''\
"""Accounts of a bank."""

from decimal import Decimal

RATE = Decimal("0.02")


class Ledger:
    """All that was booked."""

    def __init__(self, opened: str) -> None:
        self.opened = opened
        self.rows = []

    def deposit(self, amount: Decimal, note: str) -> None:
        if amount <= 0:
            raise ValueError(f"a deposit of {amount}")
        self.rows.append((amount, note))
        self.notify("deposit", amount)

    def withdraw(self, amount: Decimal, note: str) -> None:
        if amount > self.balance():
            raise ValueError(f"{amount} is more than {self.balance()}")
        self.rows.append((-amount, note))
        self.notify("withdrawal", amount)

    def balance(self) -> Decimal:
        return sum(amount for amount, _ in self.rows)

    def notify(self, kind: str, amount: Decimal) -> None:
        print(f"{self.opened}: {kind} of {amount}")


def interest(ledger: Ledger, years: int) -> Decimal:
    """Return what a balance earns, compounded each year."""
    total = ledger.balance()
    for _ in range(years):
        total += total * RATE
    return total - ledger.balance()
'''
OTHER = '''\
"""Reports."""

import json


def report(rows, stream):
    """Write rows as JSON, a line each."""
    for row in rows:
        stream.write(json.dumps(row) + "\\n")
'''
TREE = {"shop/bank.py": BANK, "shop/report.py": OTHER}


def lines_of(text: str, first: str, last: str) -> tuple[int, int]:
    """Return the numbers of the lines that begin with two texts."""
    rows = [row.strip() for row in text.split("\n")]
    start = next(n for n, row in enumerate(rows) if row.startswith(first))
    end = next(n for n, row in enumerate(rows[start:], start) if row.startswith(last))
    return start + 1, end + 1


def carried(before, after, path, first, last=""):
    start, end = lines_of(before[path], first, last or first)
    encoded = [{p: t.encode() for p, t in tree.items()} for tree in (before, after)]
    [verdict] = carry([Span(path, start, end)], *encoded)
    return verdict


def stands(verdict, after, path, first, last=""):
    """Tell whether a verdict is the lines between two texts of a file."""
    return verdict.to == Span(path, *lines_of(after[path], first, last or first))


INTEREST = BANK[BANK.index("def interest") :]
WITHDRAW = dedent(
    BANK[BANK.index("    def withdraw") : BANK.index("    def balance")]
).rstrip()


def test_lines_of_an_untouched_file_are_the_same():
    verdict = carried(TREE, TREE, "shop/bank.py", "def deposit", "self.notify")
    assert (verdict.status, verdict.confidence) == ("same", 1.0)


def test_lines_below_an_insertion_moved():
    after = {**TREE, "shop/bank.py": BANK.replace("RATE =", "FEE = 3\nRATE =")}
    verdict = carried(TREE, after, "shop/bank.py", "def withdraw", "self.notify")
    assert verdict.status == "moved"
    assert stands(verdict, after, "shop/bank.py", "def withdraw", "self.notify")


def test_a_function_is_found_in_another_file():
    after = {
        "shop/bank.py": BANK.replace(INTEREST, ""),
        "shop/report.py": OTHER + "\n\n" + INTEREST,
    }
    verdict = carried(TREE, after, "shop/bank.py", "def interest", "return total")
    assert verdict.status == "moved"
    assert stands(verdict, after, "shop/report.py", "def interest", "return total")


def test_a_line_of_a_function_is_found_in_another_file_with_it():
    after = {
        "shop/bank.py": BANK.replace(INTEREST, ""),
        "shop/earnings.py": OTHER + "\n\n" + INTEREST,
    }
    verdict = carried(TREE, after, "shop/bank.py", "for _ in range", "total += total")
    assert stands(
        verdict, after, "shop/earnings.py", "for _ in range", "total += total"
    )


def test_a_file_is_found_under_its_new_name():
    after = {"shop/ledger.py": "# licence\n" + BANK, "shop/report.py": OTHER}
    verdict = carried(TREE, after, "shop/bank.py", "if amount > self", "raise")
    assert verdict.status == "moved"
    assert stands(verdict, after, "shop/ledger.py", "if amount > self", "raise")


def test_a_function_that_was_renamed_keeps_its_body():
    renamed = BANK.replace("def withdraw(self", "def take_out(self")
    after = {**TREE, "shop/bank.py": renamed.replace("RATE =", "A = 1\n\nRATE =")}
    verdict = carried(TREE, after, "shop/bank.py", "def withdraw", "self.notify")
    assert verdict.status == "edited"
    assert stands(verdict, after, "shop/bank.py", "def take_out", "self.notify")


def test_statements_wrapped_in_a_condition_are_found_inside_it():
    wrapped = BANK.replace(
        "        self.rows.append((-amount, note))\n"
        '        self.notify("withdrawal", amount)\n',
        "        if not self.frozen:\n"
        "            self.rows.append((-amount, note))\n"
        '            self.notify("withdrawal", amount)\n',
    )
    after = {**TREE, "shop/bank.py": wrapped}
    verdict = carried(TREE, after, "shop/bank.py", "self.rows.append((-", "self.notify")
    assert verdict.status == "moved"
    assert stands(verdict, after, "shop/bank.py", "self.rows.append((-", "self.notify")


def test_a_method_of_a_class_that_was_split_is_found_in_the_other_half():
    half = (
        "\n\nclass Notifier:\n"
        + BANK[BANK.index("    def notify") : BANK.index("\n\ndef interest")]
    )
    text = BANK.replace(half.partition("Notifier:\n")[2], "") + half
    after = {**TREE, "shop/bank.py": text}
    verdict = carried(TREE, after, "shop/bank.py", "def notify", "print")
    assert verdict.status == "moved"
    assert stands(verdict, after, "shop/bank.py", "def notify", "print")


def test_a_call_whose_arguments_were_reflowed_is_whole():
    flowed = BANK.replace(
        '        self.notify("withdrawal", amount)\n',
        '        self.notify(\n            "withdrawal",\n'
        "            amount\n        )\n",
    )
    after = {**TREE, "shop/bank.py": flowed}
    first = "self.rows.append((-"
    verdict = carried(TREE, after, "shop/bank.py", first, "self.notify")
    assert stands(verdict, after, "shop/bank.py", first, ")")


def test_a_comment_that_changed_takes_nothing_away():
    noted = BANK.replace(
        "    total = ledger", "    # what is there\n    total = ledger"
    )
    changed = noted.replace("what is there", "what the client holds")
    before, after = {**TREE, "shop/bank.py": noted}, {**TREE, "shop/bank.py": changed}
    verdict = carried(before, after, "shop/bank.py", "def interest", "return total")
    assert verdict.status == "edited"
    assert stands(verdict, after, "shop/bank.py", "def interest", "return total")


def test_of_a_text_that_stands_twice_each_keeps_its_own_place():
    twice = BANK + "\n\ndef second(ledger):\n" + INTEREST.partition("\n")[2]
    before = {"shop/bank.py": twice}
    after = {
        "shop/bank.py": "import os\n" + twice.replace("Return what", "Give what", 1)
    }
    for name in ("def interest", "def second"):
        verdict = carried(before, after, "shop/bank.py", name, "return total")
        assert stands(verdict, after, "shop/bank.py", name, "return total")


def test_a_copy_elsewhere_is_not_where_deleted_code_went():
    before = {"shop/bank.py": BANK, "shop/copy.py": OTHER + "\n\n" + INTEREST}
    after = {
        "shop/bank.py": BANK.replace(INTEREST, ""),
        "shop/copy.py": before["shop/copy.py"],
    }
    verdict = carried(before, after, "shop/bank.py", "def interest", "return total")
    assert verdict.status in ("gone", "unsure")
    assert verdict.to is None


def test_deleted_code_is_gone():
    after = {**TREE, "shop/bank.py": BANK.replace(INTEREST, "")}
    verdict = carried(TREE, after, "shop/bank.py", "def interest", "return total")
    assert (verdict.status, verdict.to) == ("gone", None)
    assert verdict.confidence >= 0.9


def test_a_function_moved_within_its_file_takes_its_lines_along():
    moved = BANK.replace(INTEREST, "").replace(
        "class Ledger", INTEREST + "\n\nclass Ledger"
    )
    after = {**TREE, "shop/bank.py": moved}
    verdict = carried(TREE, after, "shop/bank.py", "total += total")
    assert verdict.status == "moved"
    assert stands(verdict, after, "shop/bank.py", "total += total")


JS = """\
export function area(shape) {
  const { width, height } = shape;
  if (width < 0 || height < 0) {
    throw new RangeError("negative");
  }
  return width * height;
}

export class Scene {
  add(shape) {
    this.shapes.push(shape);
    this.total += area(shape);
  }
}
"""
CPP = """\
#include "ring.h"

Ring::Ring(size_t size) : slots_(size) {
  head_ = 0;
}

void Ring::push(int value) {
  slots_[head_ % slots_.size()] = value;
  head_ += 1;
}

int Ring::last() const {
  return slots_[(head_ - 1) % slots_.size()];
}
"""
GO = """\
package queue

type Queue struct {
\titems []int
}

func (q *Queue) Push(item int) {
\tq.items = append(q.items, item)
}

func (q *Queue) Pop() int {
\titem := q.items[0]
\tq.items = q.items[1:]
\treturn item
}
"""


@pytest.mark.parametrize(
    ("name", "text", "first", "last"),
    [
        ("a.js", JS, "add(shape)", "}"),
        ("a.cpp", CPP, "void Ring::push", "}"),
        ("a.go", GO, "func (q *Queue) Pop", "}"),
    ],
    ids=["javascript", "c++", "go"],
)
def test_definitions_of_other_languages_move_to_other_files(name, text, first, last):
    start, end = lines_of(text, first, last)
    rows = text.split("\n")
    taken = "\n".join(rows[start - 1 : end])
    left = "\n".join(rows[: start - 1] + rows[end:])
    before = {name: text, f"other/{name}": "// nothing yet\n"}
    after = {name: left, f"other/{name}": "// nothing yet\n\n" + taken + "\n"}
    verdict = carried(before, after, name, first, last)
    assert verdict.status == "moved"
    assert stands(verdict, after, f"other/{name}", first, last)


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ({}, {}, "the old tree has no such file"),
        ({"a": b"\0\1"}, {"a": b"\0\1"}, "it is a binary file"),
        ({"a": b"one\n"}, {"a": b"one\n"}, "the file has 1 lines"),
        ({"a": b"\n \n\t\n"}, {"a": b""}, "its lines are blank"),
    ],
    ids=["no file", "binary", "beyond the file", "blank"],
)
def test_what_cannot_be_carried_is_unsure_and_says_why(before, after, said):
    [verdict] = carry([Span("a", 2, 3)], before, after)
    assert (verdict.status, verdict.to, verdict.reason) == ("unsure", None, said)


def test_line_ends_byte_order_marks_and_encodings_do_not_count():
    before = {
        "a.txt": b"\xef\xbb\xbfone thing\r\nanother thing\r\n\xe9t\xe9 is summer\r\n"
    }
    after = {"a.txt": b"title\none thing\nanother thing\n\xe9t\xe9 is summer\n"}
    [verdict] = carry([Span("a.txt", 1, 3)], before, after)
    assert (verdict.status, verdict.to) == ("moved", Span("a.txt", 2, 4))


def test_a_line_of_twenty_megabytes_is_carried_in_a_second():
    long = b"x = [" + b"1, " * 7_000_000 + b"]\n"
    before = {"a.py": b"import os\n" + long + b"print(os.name)\n"}
    after = {"a.py": b"import os\nimport sys\n" + long + b"print(os.name)\n"}
    [verdict] = carry([Span("a.py", 2, 2)], before, after)
    assert (verdict.status, verdict.to) == ("moved", Span("a.py", 3, 3))


def test_any_bytes_get_an_answer():
    rng = random.Random(3)
    for _ in range(60):
        alphabet = rng.choice([b"ab(\n{} ", b"\n\r\t #", bytes(range(1, 256))])
        made = [bytes(rng.choices(alphabet, k=rng.randint(0, 400))) for _ in range(3)]
        before = {"a.py": made[0], "b.c": made[1]}
        after = {"a.py": made[2], "c": made[1], "b.c": made[0][:200]}
        spans = [
            Span(path, first, first + rng.randint(0, 5))
            for path in ("a.py", "b.c")
            for first in range(1, 12, 3)
        ]
        verdicts = carry(spans, before, after)
        assert len(verdicts) == len(spans)
        for verdict in verdicts:
            assert 0 <= verdict.confidence <= 1
            if verdict.to:
                lines = after[verdict.to.path].split(b"\n")
                assert 1 <= verdict.to.first <= verdict.to.last <= len(lines)


def test_a_file_whose_every_function_was_renamed_is_carried_in_a_second():
    def file(prefix):
        return "".join(
            f"def {prefix}{n}(a):\n    x = a + {n}\n    log('{n}')\n    return x\n\n\n"
            for n in range(900)
        ).encode()

    spans = [Span("a.py", 6 * n + 1, 6 * n + 4) for n in range(0, 900, 30)]
    begun = time.process_time()
    verdicts = carry(spans, {"a.py": file("old")}, {"a.py": b"\n" + file("new")})
    assert time.process_time() - begun < 2
    for verdict in verdicts:
        first, last = verdict.span.first + 1, verdict.span.last + 1
        assert verdict.to == Span("a.py", first, last)
