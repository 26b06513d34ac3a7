"""Proved sentences as a page shows them: a quiet mark, and behind it the check."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from markupsafe import Markup

from readerkit.claims.marks import MARK, with_marks
from readerkit.claims.proof import Proof, Sentence, lines_of
from readerkit.claims.words import say_check
from readerkit.content.claims import Claimed
from readerkit.model import addresses
from readerkit.render.html.markdown import line, prose
from readerkit.render.html.words import Text, Words

MAX_LINES = 6


@dataclass(frozen=True, slots=True)
class Proved:
    """One claim of a note: its words, its check, and where to look."""

    sentence: Sentence
    says: Markup
    check: Text
    lines: tuple[tuple[str, str], ...]
    """``layers.py:1274-1294`` each, and where they stand."""
    record: str
    """Where the record that it is about is shown, if it is about one."""
    torch: str
    """On which version of it a program ran; empty where on none."""
    printed: tuple[str, ...]
    """The lines of that which it asks for."""
    is_proved: bool
    """Whether it holds; not where no output is kept, or one of other code."""


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
            sentence,
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
            proof.output.torch if proof.output else "",
            lines_of(sentence, proof),
            proof.state == "holds",
        )
        for sentence, proof in shown(held)
    )


Held = Sequence[tuple[Sentence, Proof]]


def shown(held: Held) -> Held:
    """Return those of some claims that a page shows."""
    return [each for each in held if each[1].state in ("holds", "open")]


def words_of(held: Held) -> list[str]:
    """Return the words of each claim that a page shows; empty where unproved."""
    return [
        sentence.claim.says if proof.state == "holds" else ""
        for sentence, proof in shown(held)
    ]


def _check(sentence: Sentence, words: Words) -> Text:
    told = words.text(partial(say_check, sentence.claim))
    spanish = say_check(sentence.claim, words.in_spanish) if told.es else None
    return Text(line(say_check(sentence.claim)), line(spanish) if spanish else None)


def marked(
    text: str,
    english: str,
    proofs: Sequence[Proved],
    part: Claimed,
    place: str,
    render: Callable[[str], Markup] = prose,
) -> Markup:
    """Return a text, with a mark behind each sentence that one of the proofs holds.

    ``proofs`` are shown at ``place``, and may be those of other parts of an entry too.
    """
    if not proofs:
        return render(text)
    says = [
        each.sentence.claim.says
        if each.is_proved and each.sentence.claimed is part
        else ""
        for each in proofs
    ]
    return marks_in(render(with_marks(text, english, says)), place)


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

    return Markup(MARK.sub(link, str(html)))
