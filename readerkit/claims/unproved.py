"""Sentences that say how something is, by the words that make them so, and no proof.

A sentence asserts what a program could refute where it says default, only, never,
always, nothing, none, every, neither, nowhere, first, a state of a switch, a count
or a number. Code, identifiers and numbers that are names (``fp32``, section 4.2,
rank 0, the 2. of a list) do not count, and a question asserts nothing.

A word that speaks of all or of none must itself stand in what a claim says, and that
lines stand somewhere does not prove it; so must a default and the state of a switch.
A count or a number is covered where a claim touches its clause: most are what another
number of it is reckoned from.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from readerkit.claims.printed import COUNTS
from readerkit.content.claims import Claim, Claimed, one_spaced

_COUNTS = "|".join(
    (
        *COUNTS[2:],
        "twice",
        "thrice",
        "half",
        "dozens?",
        "(?:two|three|four|five|ten)-?fold",
    )
)
_TRIGGERS = re.compile(
    r"\b(?P<all>(?<!not )only|never|always|nothing|none|every|neither|nowhere"
    r"|(?:is|are|has|have|passes|(?:know|need|take|raise|send|make|add|leave|keep|hold"
    r"|allocate|capture)s?) no(?! (?:longer|more|less)\b))\b"
    r"|\b(?P<state>defaults?\b"
    r"|(?:is|are|was|were|be|stays?|set|turn(?:s|ed)?|switch(?:es|ed)?|left)"
    r"(?: it| them)? (?:on|off)"
    r"(?=[.,;:()]|$| (?:by|in|and|or|if|when|unless|for|as|too|also|again)\b)"
    r"|(?:turn|switch)(?:s|es|ed|ing)? (?:on|off)\b)"
    rf"|\b(?:first|(?<!a )(?:second|third)|exactly one|must be|{_COUNTS}"
    r"|(?<!at )once(?= (?:per|each|in|for|more|every)\b|[.,;:)]|$))\b"
    r"|(?<![\w.-])\d[\d,.]*",
    re.IGNORECASE,
)
_CODE = re.compile(r"(`+).+?\1|\$[^$\n]+\$|\{[^{}\n]+\}|https?://\S+")
_NUMBERED = re.compile(
    r"\b(?:sections?|chapters?|figures?|tables?|appendix|equations?|versions?|parts?"
    r"|ranks?|stages?|levels?|layers?|steps?|ZeRO|GPT|Python|PyTorch|Megatron|torch)"
    r"[ -]\d[\d.]*(?:(?:, | and | to | or |-)\d[\d.]*)*|§+ ?\d[\d.]*|^\d+\.(?= )",
    re.IGNORECASE,
)
_TOKEN = re.compile(r"[A-Za-z0-9][\w.+/-]*")
_AMOUNT = re.compile(r"\d[\d,.]*(?:[kKMGTPE]i?B|[kKMBTx]|ms|s|%)?[.,]?")
_CUT = re.compile(r"[;:] |, (?=(?:so|but|while|hence|since|because|yet)\b)")
_SHORT = re.compile(
    r"^\d+\.$|\b(?:e\.g|i\.e|cf|vs|etc|no|fig|sec|eq|al|approx|resp|[A-Z])\.$"
)
_END = re.compile(r"[.!?][\"')\]*_]*(?= [^a-z])")
_PARAGRAPH = re.compile(r"\n\s*\n|\n\s*(?=(?:[-*|]|\d+\.)\s)")


@dataclass(frozen=True, slots=True)
class Unproved:
    """A sentence that no claim covers."""

    field: str
    """The text of the entry that it stands in."""
    sentence: str
    words: tuple[str, ...]
    """Those that make it one."""


def unproved(entry: Claimed) -> Iterator[Unproved]:
    """Yield every sentence of an entry that asserts something and has no claim."""
    for name, text in entry.texts.items():
        said = [*places_of(entry.claims, one_spaced(text))]
        for start, sentence in sentences_of(text):
            if sentence.endswith("?"):
                continue
            near = [
                (claim, first - start, last - start)
                for claim, first, last in said
                if first < start + len(sentence) and start < last
            ]
            words = tuple(
                dict.fromkeys(
                    match[0]
                    for match in _TRIGGERS.finditer(_bare(sentence))
                    if not any(_covers(*each, match) for each in near)
                )
            )
            if words:
                yield Unproved(name, sentence, words)


def _covers(claim: Claim, first: int, last: int, word: re.Match[str]) -> bool:
    """Tell whether a claim that says these letters of a sentence proves a word."""
    if word["all"] or word["state"]:
        is_inside = first <= word.start() and word.end() <= last
        return is_inside and not (word["all"] and claim.stands)
    cuts = [0, *(cut.end() for cut in _CUT.finditer(word.string)), len(word.string)]
    begin = max(cut for cut in cuts if cut <= word.start())
    return first < min(cut for cut in cuts if cut >= word.end()) and begin < last


def places_of(claims: tuple[Claim, ...], text: str) -> Iterator[tuple[Claim, int, int]]:
    """Yield each claim with where its words begin and end in a text ``one_spaced``."""
    for claim in claims:
        for match in re.finditer(re.escape(one_spaced(claim.says)), text):
            yield claim, *match.span()


def sentences_of(text: str) -> Iterator[tuple[int, str]]:
    """Yield each sentence of a text, and where it begins in the text ``one_spaced``."""
    at = 0
    for paragraph in map(one_spaced, _PARAGRAPH.split(text)):
        covered = _CODE.sub(lambda match: "X" * len(match[0]), paragraph)
        begin = 0
        for end in _END.finditer(covered):
            if _SHORT.search(covered[begin : end.start() + 1]):
                continue
            yield at + begin, paragraph[begin : end.end()]
            begin = end.end() + 1
        if begin < len(paragraph):
            yield at + begin, paragraph[begin:]
        at += len(paragraph) + (1 if paragraph else 0)


def _bare(sentence: str) -> str:
    """Return a sentence with blanks, as many, for the names in it."""
    words = _NUMBERED.sub(_blank, _CODE.sub(_blank, sentence))
    return _TOKEN.sub(
        lambda match: _blank(match) if _is_name(match[0]) else match[0], words
    )


def _blank(name: re.Match[str]) -> str:
    return " " * len(name[0])


def _is_name(token: str) -> bool:
    """Tell whether a word is an identifier: ``fp32``, ``FSDP2``, ``a_b``, ``a.b``."""
    has_digit = any(letter.isdigit() for letter in token)
    if has_digit and any(letter.isalpha() for letter in token):
        return not _AMOUNT.fullmatch(token)
    return "_" in token or ("." in token[:-1] and not has_digit) or token.count(".") > 2
