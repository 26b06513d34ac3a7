"""No number of a chapter is typed: each is computed where it stands."""

from __future__ import annotations

import re

import pytest

from readerkit.app.read_chapters import CHAPTERS
from tests.helpers import ROOT

PAGES = sorted((ROOT / CHAPTERS).glob("*.md"))
# What is code, computed, or an address.
NOT_PROSE = re.compile(
    r"^```.*?^```|\{=.*?\}|`[^`]*`|\]\([^)]*\)", flags=re.DOTALL | re.MULTILINE
)
# Names that have a number in them, and numbers that say which one and not how many.
NAMES = re.compile(
    r"\b(?:(?:bf|fp|int|FP)\d+|1F1B|FSDP[12]|ZeRO-[123]|ZB-H[12]|[HV]100s?|GPT-3"
    r"|Llama 3(?:\.1)?|Llama 2|\d+(?:x\d+)?B|1/[Nptv]|16-bit|de 16 bits"
    r"|(?:[Rr]ank|rango|[Ss]tep|[Ss]tage|chapter|issue|paso)"
    r" \d+|capítulo \d+|p - 1"
    r"|[Ss]tages 1 (?:and|y) 2|stages [02] (?:to|and|a|y) 3)(?!\w)"
)


@pytest.mark.parametrize("typed", ["It takes 12 GB.", "Rank 0 sends 8 messages."])
def test_a_typed_number_is_seen(typed):
    assert numbers_typed(typed)


def test_no_number_of_a_chapter_is_typed():
    assert PAGES
    assert {
        page.name: typed
        for page in PAGES
        if (typed := numbers_typed(page.read_text("utf-8")))
    } == {}


def numbers_typed(text: str) -> list[str]:
    prose = NAMES.sub("", NOT_PROSE.sub("", text))
    return re.findall(r"[^\n]{0,40}\d[^\n]{0,20}", prose)
