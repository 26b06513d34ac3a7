"""Sentences that say how something is, by the words that make them so, and no proof.

A sentence asserts what a program could refute where it says default, only, never,
always, nothing, none, every, first, a state of a switch, a count or a number. Code,
identifiers and numbers that are names (``fp32``, section 4.2, rank 0) do not count.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from readerkit.claims.printed import COUNTS
from readerkit.content.claims import Claimed, one_spaced

_COUNTS = "|".join((*COUNTS[2:], "twice", "half"))
_TRIGGERS = re.compile(
    rf"\b(?:defaults?|only|never|always|nothing|none|every|first|{_COUNTS})\b"
    r"|\b(?:is|are|was|were|be|stays?|turn(?:s|ed)?|switch(?:es|ed)?|left)"
    r"(?: it| them)? (?:on|off)(?=[.,;:)]|$| (?:by|in|and|or|if|when|unless|for)\b)"
    r"|(?<![\w.-])\d[\d,.]*",
    re.IGNORECASE,
)
_CODE = re.compile(r"(`+).+?\1|\$[^$\n]+\$|\{[^{}\n]+\}|https?://\S+")
_NUMBERED = re.compile(
    r"\b(?:sections?|chapters?|figures?|tables?|appendix|equations?|versions?|parts?"
    r"|ranks?|stages?|levels?|layers?|steps?|ZeRO|GPT|Python|PyTorch|Megatron|torch)"
    r"[ -]\d[\d.]*(?:(?:, | and | to | or |-)\d[\d.]*)*|§+ ?\d[\d.]*",
    re.IGNORECASE,
)
_TOKEN = re.compile(r"[A-Za-z0-9][\w.+/-]*")
_AMOUNT = re.compile(r"\d[\d,.]*(?:[kKMGTPE]i?B|[kKMBTx]|ms|s|%)?[.,]?")
_SHORT = re.compile(r"\b(?:e\.g|i\.e|cf|vs|etc|no|fig|sec|eq|al|approx|resp|[A-Z])\.$")
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
    claimed = [one_spaced(claim.says) for claim in entry.claims]
    for name, text in entry.texts.items():
        proved = [*_places(claimed, one_spaced(text))]
        for start, sentence in sentences_of(text):
            end = start + len(sentence)
            if any(first < end and start < last for first, last in proved):
                continue
            words = tuple(
                dict.fromkeys(m[0] for m in _TRIGGERS.finditer(_bare(sentence)))
            )
            if words:
                yield Unproved(name, sentence, words)


def _places(claimed: list[str], text: str) -> Iterator[tuple[int, int]]:
    for words in claimed:
        for match in re.finditer(re.escape(words), text):
            yield match.span()


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
    """Return a sentence without the names in it."""
    words = _NUMBERED.sub(" ", _CODE.sub(" ", sentence))
    return _TOKEN.sub(lambda match: " " if _is_name(match[0]) else match[0], words)


def _is_name(token: str) -> bool:
    """Tell whether a word is an identifier: ``fp32``, ``FSDP2``, ``a_b``, ``a.b``."""
    has_digit = any(letter.isdigit() for letter in token)
    if has_digit and any(letter.isalpha() for letter in token):
        return not _AMOUNT.fullmatch(token)
    return "_" in token or ("." in token[:-1] and not has_digit) or token.count(".") > 2
