"""Proved sentences as a page shows them: a quiet mark, and behind it the check."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from markupsafe import Markup

from readerkit.claims.checks_in_words import say_check, say_printed
from readerkit.claims.proof import Proof, Sentence, lines_of
from readerkit.claims.proof_marks import MARK, together, with_marks
from readerkit.content.claims import Claimed
from readerkit.model import addresses
from readerkit.model.anchor import Span
from readerkit.render.html.markdown import line, prose
from readerkit.render.html.words import Text, Words

MAX_PLACES = 6
MAX_SHOWN = 3
"""Of so many places the lines are shown, of the others only where they stand."""
MAX_LINES = 6
"""Of each place, and in all before they are folded."""

_MARK_LINK = re.compile(r"<a class=proved.*?</a>")
Held = Sequence[tuple[Sentence, Proof]]


@dataclass(frozen=True, slots=True)
class ProofLines:
    """Lines that a check looked at."""

    text: str
    """``layers.py:1274-1294``"""
    page: str
    code: Markup
    """The first of them; empty where none are shown."""


@dataclass(frozen=True, slots=True)
class Proved:
    """One claim of a note: its words, its check, and where to look."""

    sentence: Sentence
    passage: int
    """The number of the first claim on the same sentence."""
    says: Markup
    check: Text
    places: tuple[ProofLines, ...]
    record: str
    """Where the record that it is about is shown, if it is about one."""
    torch: str
    """On which version of it a program ran; empty where on none."""
    printed: tuple[str, ...]
    """The lines of that which it asks for."""
    program: str
    """The text of that program."""
    is_proved: bool
    """Whether it holds; not where no output is kept, or one of other code."""

    @property
    def is_short(self) -> bool:
        """Whether its lines are few enough to stand open."""
        return sum(len(each.code.splitlines()) for each in self.places) <= MAX_LINES

    def is_told_in(self, text: str) -> bool:
        """Tell whether this text of its entry is the one that has its words."""
        part = self.sentence.claimed
        field = part.field_of(self.sentence.claim)
        return part.texts.get(field, "") in text


@dataclass(frozen=True, slots=True)
class Passage:
    """All that proves a sentence, and the way back to its mark."""

    number: int
    proofs: tuple[Proved, ...]
    back: Text | None
    """None where the page shows no mark: of a title, of what is not proved."""

    @property
    def count(self) -> int:
        """How many proofs it has."""
        return len(self.proofs)


def proved(
    held: Held,
    words: Words,
    homes: Mapping[str, str],
    strips: Mapping[str, str],
    code: Callable[[Span], Markup],
) -> tuple[Proved, ...]:
    """Return what a page shows of the claims of a note, in the order of the claims.

    ``homes`` has the upstream of each file that has a page, ``strips`` the page of each
    record; ``code`` returns the first lines of a place.
    """
    rows = shown(held)

    def places(proof: Proof) -> Iterable[ProofLines]:
        known = [each for each in proof.places[:MAX_PLACES] if each.path in homes]
        for at, span in enumerate(known):
            lines = (span.path, span.first, span.last)
            page = addresses.lines_page(homes[span.path], *lines)
            some = code(span) if at < MAX_SHOWN else Markup()
            yield ProofLines(addresses.lines_text(*lines), page, some)

    return tuple(
        Proved(
            sentence,
            passage,
            line(sentence.claim.says),
            _check(sentence, proof, words),
            tuple(places(proof)),
            strips.get(sentence.claim.run.record, "") if sentence.claim.run else "",
            proof.output.torch if proof.output else "",
            lines_of(sentence, proof),
            proof.program,
            proof.state == "holds",
        )
        for (sentence, proof), passage in zip(rows, _together(rows), strict=True)
    )


def shown(held: Held) -> Held:
    """Return those of some claims that a page shows."""
    return [each for each in held if each[1].state in ("holds", "open")]


def _together(rows: Held) -> list[int]:
    """Return of each claim the number of the first on the same sentence."""
    found = list(range(1, len(rows) + 1))
    for part in {id(row[0].claimed): row[0].claimed for row in rows}.values():
        own = [n for n, row in enumerate(rows) if row[0].claimed is part]
        says = [rows[n][0].claim.says for n in own]
        for n, first in zip(own, together(part.texts.values(), says), strict=True):
            found[n] = own[first - 1] + 1
    return found


def passages(
    proofs: Sequence[Proved], place: str, texts: Iterable[Text | Markup]
) -> tuple[Passage, ...]:
    """Return proofs by the sentence, each program once; ``texts`` have the marks."""
    told = [each if isinstance(each, Text) else Text(each) for each in texts]
    both = ("".join(each.en for each in told), "".join(each.es or "" for each in told))
    groups: dict[int, list[Proved]] = {}
    numbers: dict[int, list[int]] = {}
    programs: set[str] = set()
    for number, each in enumerate(proofs, 1):
        if each.program in programs:
            each = replace(each, program="")
        programs.add(each.program)
        groups.setdefault(each.passage, []).append(each)
        numbers.setdefault(each.passage, []).append(number)
    return tuple(
        Passage(first, tuple(group), _back(place, numbers[first], both))
        for first, group in groups.items()
    )


def _back(place: str, numbers: Iterable[int], both: tuple[str, str]) -> Text | None:
    """Return links to the marks of a sentence, one for each language."""
    links = []
    for html, suffix in zip(both, ("", "-es"), strict=True):
        names = (f"{place}-at-{number}{suffix}" for number in numbers)
        name = next((name for name in names if f'id="{name}"' in html), None)
        to = Markup('<a class="back" href="#{}">↑</a>')
        links.append(to.format(name) if name else None)
    return Text(links[0], links[1]) if links[0] else None


def _check(sentence: Sentence, proof: Proof, words: Words) -> Text:
    has_printed = proof.state == "holds" and sentence.claim.experiment is not None
    ask = say_printed if has_printed else say_check
    told = words.text(partial(ask, sentence.claim))
    own = line(ask(sentence.claim))
    if not told.es:
        return Text(own)
    other = line(ask(sentence.claim, words.in_spanish))
    if sentence.claim.undecided:  # why is told in English
        why = line(sentence.claim.undecided)
        marked_why = Markup('<span lang="en">{}</span>').format(why)
        other = Markup(str(other).replace(str(why), str(marked_why)))
    return Text(own, other)


def marked(
    text: str,
    english: str,
    proofs: Sequence[Proved],
    part: Claimed | None,
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
        if each.is_proved and part in (None, each.sentence.claimed)
        else ""
        for each in proofs
    ]
    named: set[int] = set()

    def link(match: re.Match[str]) -> str:
        number = int(match[1])
        proof = proofs[number - 1]
        name = ""
        if number not in named and proof.is_told_in(english):
            suffix = "" if text == english else "-es"
            name = Markup(' id="{}-at-{}{}"').format(place, number, suffix)
        named.add(number)
        return str(
            Markup(
                '<a class=proved{} href="#{}-claim-{}"><span class=unseen>{}</span></a>'
            ).format(name, place, proof.passage, number)
        )

    return Markup(MARK.sub(link, str(render(with_marks(text, english, says)))))


def only_marks(html: Markup) -> Markup:
    """Return the marks of a text that is a link itself."""
    return Markup("".join(_MARK_LINK.findall(html)))
