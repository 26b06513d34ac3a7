"""A page marks an answer as the quiz does: one table of answers, both ways."""

from __future__ import annotations

import json
import re
from itertools import islice, product

import pytest

from readerkit.app.folders import shipped_book
from readerkit.app.interface_translation import read_words
from readerkit.app.page_questions import read_banks, variants_of
from readerkit.model.language import said
from readerkit.quiz.page_key import PageKey
from readerkit.quiz.variant import AnswerError, ended, format_number
from readerkit.render.html.quiz_rules import quiz_rules
from readerkit.render.html.words import Words
from tests.quick import quick_first
from tests.readerkit.quiz.sample import sample_bank

THEME = shipped_book() / "site" / "theme"
# As text: Playwright looks at each value that it carries, and these are millions.
MARK = """text => {
  const [key, answers] = JSON.parse(text);
  return JSON.stringify(answers.map(answer => {
    try {
      const given = window.readerkit.quiz.mark(key, answer);
      return [given.credit, given.remarks, given.ends || []];
    } catch (refusal) {
      const {told} = refusal;
      return told ? ["refused", told, []] : ["bug", String(refusal), []];
    }
  }));
}"""
NUMBERS = """\
8; 0; -3; 3/16; 1,120; 1,12; 1.120,5; 2^-9; 2⁻⁹; 30*16; 30 x 16; 30×16; 2*(3+4);
8.7e9; 1e400; ~480; about 480; 480.; 07; 1_000; no; 5 5; 3.279B; 3.279 billion; 8.7
bn; 1.5k; 2 M; 12 %; 12%; 12 per cent; 0.12; 7 points; 480 GB; 447 GiB; 480GB; 480
gb; 480 Gb; 480 gbit; 480 Gbit; 480 kB/s; 480 GB/s; 50 GBps; 1 h; 3 min; 3 days; 90
s; 90 seconds; 2 ms; $5; 5 usd; USD 5; 5 $; 16 B/param; 16 bytes; 4 weights; 3
elements; 7 apples; 7 TFLOP/s; 7 tflops; 1 GPU-hours; 3 x; 3 times; (2; 2); --2; 2 -
-1; 5//2; 5%2; 1/0; 3**99; =12; ≈ 12 GB; 0x1F; 0x10; 1.0*5; 12 gigabytes; 4 Gbytes;
2 weeks; 350 cents; US$5; 3 días; 480e9; 8.7e9; 16*30e9; 4 miles de millones; 7.5;
16 * 7B; 112B; 112e9 B; 2000000 B; 1.120; 7,875; 45,500 GB; 1.024 GiB; ~3,221 GB.;
1\N{THIN SPACE}120; 1\N{NARROW NO-BREAK SPACE}120 GB
"""
WORDS = """\
no_sync; no sync; No-Sync; `no_sync`; model.no_sync; with no_sync():; nosync;
ddp.no_sync(); with model.no_sync() as x:; no_grad; with torch.no_grad():; ()
"""
LINES = """\
{0}; L{0}; line {0}; {0}-{1}; L{0}-L{1}; x.py:{0}; {0}.; #{0}; 1; 999999; {2}-{3}; x;
{0}-x; {file}:{0}:9; b/{file}#L{0}-L{1}; {file}, line {0}; {0}..{1};
líneas {0} a {1}; {0}—{1}
"""
TEXTS = "no idea; ::; 1 ::; ¿Según qué? El ancho de banda; latency 2(N-1)/N grows"
CELLS = {
    "word": "{}; `{}`; {}-parallel; {} wise; {}s; zzz; c; r",
    "shape": "{}; [{}]; ({}); 1x2; x; 16/2x8; 4096; 1,024x8",
    "number": "{}; {}.0; 7; no",
    "groups": """\
{}; [[0, 4], [1, 5]]; 0,1|2,3; 0 1 | 2 3; 0,1/2,3; {{0,1}},{{2,3}}; 0,1|; [0,1; a;
0,4|1,5|2,6|3,7; (0,1),(2,3); [0,1] x [2,3]; 0,1 2,3; 0, 1 2, 3
""",
}


def each(text):
    """Return the answers of a list; one that is empty belongs to each."""
    return ["", " ", *re.split(r";\s", text.strip())]


def variants():
    """Yield every question of the bank and of the sample, in each variant of a page."""
    for bank in (*read_banks(shipped_book()), sample_bank()):
        for name in bank.questions:
            yield from variants_of(bank, name)


def answers(asked, table):
    """Yield the key, near-misses and what is no answer, as a page hands them over."""
    variant = asked.variant
    yield variant.typed_key
    if "tolerance" in table:
        yield from each(NUMBERS)
        unit = variant.unit
        wrong = [value for value, _ in (*table["before"], *table["after"])]
        for value in (variant.key, *wrong):
            for factor in (
                1,
                1.004,
                0.996,
                1.03,
                0.97,
                8,
                1 / 8,
                100,
                1e6,
                1e9,
                1.073741824,
            ):
                shown = f"{value * factor:.6g}"
                yield from (shown, f"{shown} {unit}", format_number(value * factor))
            yield from (f"{value / 2:.9g}*2 {unit}", f"~{value:.4g}{unit}")
            yield from (
                f"{value:.5g} {other}" for other in ("GB", "GiB", "%", "s", "B")
            )
    elif "answers" in table:
        yield from table["answers"]
    elif "orders" in table:
        keys = sorted(variant.typed_key.split())
        yield from (" ".join(keys), " ".join(reversed(keys)))
        for shift in range(len(keys)):
            yield " ".join([*keys[shift:], *keys[:shift]])
    elif "lines" in table:
        within, key = variant.within, variant.key
        yield from (str(line) for line in range(within.first, within.last + 1))
        ends = (key.first, key.last, within.first, within.last)
        yield from (form.format(*ends, file=variant.file) for form in each(LINES))
        yield from (f"{key.first - 1}-{key.last}", f"{within.first}-{within.first + 1}")
    elif "parts" in table:
        columns = [[f"{n}{label}" for label in variant.labels] for n in variant.key]
        yield from map(" ".join, islice(product(*columns), 0, 4000, 17))
    elif "cells" in table:
        key = list(variant.key)
        offered = variant.words or (".", "F0", "B1", "f2a", "-", "idle", "zz", "W3")
        for at in range(len(key)):
            for word in offered:
                yield " ".join([*key[:at], word, *key[at + 1 :]])
        yield from (" ".join([word] * len(key)) for word in offered)
        yield from (" -> ".join(key), "-".join(key), " ".join(key[:-1]))
        yield " ".join([*key, *key])
        yield from (" ".join(words) for words, _ in variant.refuted)
        yield from (", ".join(key), " → ".join(key).lower(), " ".join(key[1:]), "")
    elif "accept" in table:
        yield from (*each(WORDS), *table["accept"], *table["mistakes"])
    elif "points" in table:
        yield from each(TEXTS)
        texts = [trap.text for trap in variant.traps]
        for text in (
            variant.typed_key,
            *texts,
            f"Not so. {texts[0]} {variant.typed_key}",
            variant.typed_key.replace(" not ", "n't ").replace(" no ", "n\u2019t "),
        ):
            yield from (
                text,
                f"1 :: {text}",
                f"0 :: {text}",
                f"1 2 (found 1) :: {text}",
            )
            yield from (text.upper(), text[: len(text) // 2], text.replace(".", "\n\n"))
        yield from (f"99 :: {variant.typed_key}", "word " * 300, variant.prompt.prompt)
    elif "rows" in table:
        rows = table["rows"]
        for at, row in enumerate(rows):
            for column, kind in enumerate(table["columns"]):
                for form in (*each(CELLS[kind]), *table["words"]):
                    cells = list(row)
                    cells[column] = form.format(cells[column])
                    lines = [" ".join(each) for each in rows]
                    lines[at] = " ".join(cells)
                    yield "\n".join(lines)
        yield "\n".join(" ".join(rows[0]) for _ in rows)
        yield from ("", "\n".join(" ".join(row) for row in rows[1:]))


def told(text, say):
    return [str(text), said(text, say)]


def marked(variant, answer, say):
    """Return what the quiz says to an answer, as a page would."""
    try:
        grade = variant.grade(answer)
    except AnswerError as error:
        return ["refused", told(error.args[0], say), []]
    ends = ended(variant, answer, grade)
    said_at_all = [[told(e.text, say) for e in each] for each in (grade.remarks, ends)]
    return [round(grade.credit, 6), *said_at_all]


@pytest.mark.further
@pytest.mark.parametrize("each", quick_first([4, 1]))
def test_a_page_marks_every_answer_as_the_quiz_does(open_page, each):
    """In `make test` of each fourth variant."""
    spanish = read_words()
    words = Words(spanish.all, spanish.scripts)
    scripts = [(THEME / "marks.js").read_text("utf-8")]
    page = open_page("about:blank")
    page.evaluate("window.readerkit = {}")
    page.add_script_tag(content=quiz_rules(scripts, words).decode())
    page.add_script_tag(content=scripts[0])
    faults, count, unmarked = [], 0, set()
    for asked in islice(variants(), 0, None, each):
        key = PageKey.of(asked, [])
        if not key.table:
            unmarked.add(asked.variant.prompt.kind)
            continue
        table = json.loads(key.unfolded(words.in_spanish))
        given = list(dict.fromkeys(answers(asked, table)))
        count += len(given)
        found = json.loads(page.evaluate(MARK, json.dumps([table, given])))
        for answer, [credit, *said_of_it] in zip(given, found, strict=True):
            if credit not in ("refused", "bug"):
                credit = round(credit, 6)
                said_of_it = [
                    [
                        told(key.remarks[each].text, words.in_spanish)
                        if isinstance(each, int)
                        else each
                        for each in remarks
                    ]
                    for remarks in said_of_it
                ]
            expected = marked(asked.variant, answer, words.in_spanish)
            if [credit, *said_of_it] != expected:
                faults.append(
                    (asked.question.id, asked.seed, answer, expected, said_of_it)
                )
    first = {fault[0]: fault for fault in faults}.values()
    assert not faults, f"{len(faults)} of {count} differ: " + "\n".join(map(str, first))
    assert count > 20_000 / each
    assert not unmarked
