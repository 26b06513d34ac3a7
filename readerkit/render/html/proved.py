"""Proved sentences as a page shows them: a quiet mark, and behind it the check."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from markupsafe import Markup

from readerkit.claims.proof import Proof, Sentence
from readerkit.claims.unproved import sentences_of
from readerkit.claims.words import say_check
from readerkit.content.claims import one_spaced
from readerkit.model import addresses
from readerkit.render.html.markdown import line
from readerkit.render.html.words import Text, Words

MAX_LINES = 6
_MARK = re.compile(r"⟦(\d+)⟧")


@dataclass(frozen=True, slots=True)
class Proved:
    """One claim of a note: its words, its check, and where to look."""

    says: Markup
    check: Text
    lines: tuple[tuple[str, str], ...]
    """``layers.py:1274-1294`` each, and where they stand."""
    record: str
    """Where the record that it is about is shown, if it is about one."""
    is_proved: bool
    """Whether it holds, or a program of its own proves it."""


def proved(
    held: Sequence[tuple[Sentence, Proof]],
    words: Words,
    homes: Mapping[str, str],
    strips: Mapping[str, str],
) -> tuple[Proved, ...]:
    """Return what a page shows of the claims of a note, in the order of the claims.

    ``homes`` has the upstream of each file that has a page, ``strips`` the page of each
    record.
    """
    return tuple(
        Proved(
            line(sentence.claim.says),
            _check(sentence, words),
            tuple(
                (
                    addresses.lines_text(span.path, span.first, span.last),
                    addresses.lines_page(
                        homes[span.path], span.path, span.first, span.last
                    ),
                )
                for span in proof.places[:MAX_LINES]
                if span.path in homes
            ),
            strips.get(sentence.claim.run.record, "") if sentence.claim.run else "",
            _is_proved(sentence, proof),
        )
        for sentence, proof in shown(held)
    )


Held = Sequence[tuple[Sentence, Proof]]


def shown(held: Held) -> Held:
    """Return those of some claims that a page shows."""
    return [each for each in held if each[1].state in ("holds", "open")]


def words_of(held: Held) -> list[str]:
    """Return the words of each claim that a page shows; empty where unproved."""
    return [each[0].claim.says if _is_proved(*each) else "" for each in shown(held)]


def _is_proved(sentence: Sentence, proof: Proof) -> bool:
    return proof.state == "holds" or sentence.claim.kind == "experiment"


def _check(sentence: Sentence, words: Words) -> Text:
    told = words.text(partial(say_check, sentence.claim))
    spanish = say_check(sentence.claim, words.in_spanish) if told.es else None
    return Text(line(say_check(sentence.claim)), line(spanish) if spanish else None)


def with_marks(text: str, english: str, says: Sequence[str]) -> str:
    """Return a text with the number of its first claim behind each proved sentence.

    ``says`` are the words of all claims, in English, empty where one proves nothing. In
    a translation with as many sentences the mark stands behind the one of its number.
    """
    whole, own = one_spaced(english), [*sentences_of(english)]
    there = [*sentences_of(text)]
    if len(own) != len(there):
        return text
    spaced, ends = text, []
    for (begin, sentence), (_, other) in zip(own, there, strict=True):
        end = begin + len(sentence)
        number = next(
            (n for n, each in enumerate(says, 1) if _touches(each, whole, begin, end)),
            0,
        )
        if number:
            ends.append((other, number))
    at = 0
    for sentence, number in ends:
        found = _end_of(sentence, spaced, at)
        if found is not None:
            spaced = f"{spaced[:found]}⟦{number}⟧{spaced[found:]}"
            at = found
    return spaced


def _touches(says: str, whole: str, begin: int, end: int) -> bool:
    words = one_spaced(says)
    at = whole.find(words)
    return bool(words) and 0 <= at < end and begin < at + len(words)


def _end_of(sentence: str, text: str, begin: int) -> int | None:
    """Return where a sentence ends in a text whose white space is its own."""
    pattern = r"\s+".join(map(re.escape, sentence.split()))
    found = re.compile(pattern).search(text, begin)
    return found.end() if found else None


def marks_in(html: Markup, note: str) -> Markup:
    """Return a rendered text whose marks lead to the proofs of a note."""

    def link(match: re.Match[str]) -> str:
        place = f"{note}-claim-{match[1]}"
        return str(
            Markup(
                '<a class="proved" href="#{}"><span aria-hidden="true">✓</span>'
                '<span class="unseen">{}</span></a>'
            ).format(place, match[1])
        )

    return Markup(_MARK.sub(link, str(html)))
