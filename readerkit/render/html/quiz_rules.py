"""The file by which scripts read answers: rules of the quiz, words in Spanish."""

from __future__ import annotations

import json
from collections.abc import Iterable

from readerkit.quiz.page_rules import reading_rules
from readerkit.render.html.words import Words

FILE = "theme/quiz-rules.js"


def quiz_rules(scripts: Iterable[str], words: Words) -> bytes:
    """Return the file, with each phrase that one of the scripts says."""
    texts, rules = "".join(scripts), reading_rules()
    dimensions = {dimension for dimension, _ in rules["units"].values()}
    phrases = {
        english: spanish
        for english, spanish in words.phrases.items()
        if english in dimensions or json.dumps(english, ensure_ascii=False) in texts
    }
    told = {**rules, "phrases": phrases}
    packed = json.dumps(told, ensure_ascii=False, separators=(",", ":"))
    return f"window.quizRules = {packed};\n".encode()
