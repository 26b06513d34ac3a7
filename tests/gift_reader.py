"""Reads GIFT as Moodle's importer does (question/format/gift/format.php), for tests."""

from __future__ import annotations

import html
import re
from dataclasses import dataclass, field

_ESCAPED = {r"\:": ":", r"\#": "#", r"\=": "=", r"\{": "{", r"\}": "}", r"\~": "~"}
_HELD = {text: chr(0xE000 + at) for at, text in enumerate([*_ESCAPED, r"\n"])}
_WEIGHT = re.compile(r"%(-?[0-9]{1,2}\.?[0-9]*)%")


@dataclass
class GiftAnswer:
    text: str
    weight: float
    feedback: str = ""


@dataclass
class GiftQuestion:
    name: str
    text: str
    kind: str
    feedback: str
    answers: list[GiftAnswer] = field(default_factory=list)
    category: str = ""


def read_gift(text: str) -> list[GiftQuestion]:
    """Return the questions of a file; ValueError where Moodle refuses one."""
    found, category = [], ""
    for block in re.split(r"\n\s*\n", text.strip()):
        if block.startswith("$CATEGORY:"):
            category = block.removeprefix("$CATEGORY:").strip()
            continue
        found.append(_question(block))
        found[-1].category = category
    return found


def _hold(text: str) -> str:
    text = text.replace(r"\\", "\ue0ff")
    for escaped, held in _HELD.items():
        text = text.replace(escaped, held)
    return text.replace("\ue0ff", "\\")


def _free(text: str) -> str:
    for escaped, held in _HELD.items():
        text = text.replace(held, _ESCAPED.get(escaped, "\n"))
    return text.strip()


def _question(block: str) -> GiftQuestion:
    lines = [
        " " if line.strip().startswith("//") else line for line in block.split("\n")
    ]
    text = _hold("\n".join(lines).strip())
    named = re.fullmatch(r"::(.*?)::(.*)", text, re.DOTALL)
    if not named or not named[2].endswith("}"):
        raise ValueError(f"no name, or something after the answers: {block}")
    body, opening, rest = named[2].partition("{")
    answers, closing, after = rest.partition("}")
    if not (opening and closing) or after or not body.startswith("[html]"):
        raise ValueError(f"braces: {block}")
    answers, _, feedback = answers.rpartition("####")
    answers = answers.strip()
    question = GiftQuestion(
        _free(named[1]), _free(body.removeprefix("[html]")), "essay", _free(feedback)
    )
    if answers:
        question.kind, question.answers = _answers(answers)
    return question


def _answers(text: str) -> tuple[str, list[GiftAnswer]]:
    if text.startswith("#"):
        return "numerical", [_weighed(each) for each in text[1:].split("=")[1:]]
    if "~" in text:
        parts = text.replace("=", "~=").split("~")
        return "multichoice", [
            GiftAnswer(*_free_parts(each.strip()[1:], 100))
            if each.strip().startswith("=")
            else _weighed(each, 0)
            for each in parts
            if each.strip()
        ]
    if "->" in text:
        pairs = [each.partition("->") for each in text.split("=")[1:]]
        if not all(marker for _, marker, _ in pairs):
            raise ValueError(f"a matching without ->: {text}")
        return "match", [
            GiftAnswer(_free(left), 100, _free(right)) for left, _, right in pairs
        ]
    return "shortanswer", [_weighed(each) for each in text.split("=")[1:]]


def _weighed(text: str, usual: float = 100) -> GiftAnswer:
    text = text.strip()
    match = _WEIGHT.match(text)
    weight = float(match[1]) if match else usual
    return GiftAnswer(*_free_parts(text[match.end() :] if match else text, weight))


def _free_parts(text: str, weight: float) -> tuple[str, float, str]:
    answer, _, feedback = text.partition("#")
    return _free(answer), weight, _free(feedback)


def shown(text: str) -> str:
    """Return what a page shows of HTML, code in backquotes."""
    coded = re.sub(r"</?code>", "`", text)
    return html.unescape(re.sub(r"<[^>]*>", "", coded))
