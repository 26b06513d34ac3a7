"""How answers are read, as data for the script that reads them on a page."""

from __future__ import annotations

import re
from typing import Any

from readerkit.model import number_with_unit
from readerkit.quiz import found_words, number_reasons, tolerance
from readerkit.quiz.history_rows import MIGRATIONS
from readerkit.quiz.kinds import fill, grid_cells, locate, predict, question, short
from readerkit.quiz.scoring import RETRY_FACTORS

TRIES = 2
"""At each question of a page but a text to write."""


def reading_rules() -> dict[str, Any]:
    """Return units, spellings and patterns, for JSON, and what a history keeps."""
    patterns = {
        "gaps": question.GAPS,
        **number_with_unit.PATTERNS,
        **tolerance.PATTERNS,
        **grid_cells.PATTERNS,
        **locate.PATTERNS,
        **predict.PATTERNS,
        **fill.PATTERNS,
        **short.PATTERNS,
        **found_words.PATTERNS,
    }
    return {
        "history": len(MIGRATIONS),
        "tries": TRIES,
        "most_words": short.MAX_WORDS,
        "most_quoted": found_words.MAX_QUOTED,
        "marks": short.MARKS,
        "retry": RETRY_FACTORS,
        "units": number_with_unit.UNITS,
        "aliases": number_with_unit.ALIASES,
        "counts": number_with_unit.COUNTS,
        "mega": number_with_unit.MEGA,
        "factors": number_reasons.usual_factors(),
        "close": number_reasons.CLOSE,
        "countable": sorted(number_with_unit.MAY_BE_COUNTED),
        "raised": {chr(a): chr(b) for a, b in number_with_unit.RAISED_DIGITS.items()},
        "patterns": {name: _for_scripts(each) for name, each in patterns.items()},
    }


def _for_scripts(pattern: re.Pattern[str]) -> tuple[str, str]:
    """Return a pattern as scripts write it, and its flags."""
    flags = "i" if pattern.flags & re.IGNORECASE else ""
    return pattern.pattern.replace("(?P<", "(?<"), flags
