"""Questions as the fields of Anki's notes: HTML, for a card that is light or dark."""

from __future__ import annotations

from collections.abc import Callable
from html import escape

from readerkit.quiz.portable import PortableQuestion, reasons
from readerkit.quiz.prompts import (
    ChoicePrompt,
    CitedLines,
    Labelled,
    MatchPrompt,
    OrderPrompt,
    SketchPrompt,
)
from readerkit.render.quiz_text import marked, named, notes, sources

Link = Callable[[CitedLines], str]
"""The address of lines; empty where they have none."""

FIELDS = ("Id", "Question", "Answer", "Explanation", "Wrong", "Sources")
FRONT = '<div class="head">{{Id}}</div>{{Question}}'
BACK = """{{FrontSide}}<hr id="answer"><div class="key">{{Answer}}</div>
{{Explanation}}{{Wrong}}{{Sources}}"""
CSS = """.card { font: 18px/1.45 system-ui, sans-serif; text-align: left;
  max-width: 46em; margin: 0 auto; padding: 0.5em;
  color: #1b1b1b; background: #fdfdfb; }
.head, .how { color: #6a6a6a; font-size: 80%; }
.key { font-weight: 600; }
code, pre { font-family: ui-monospace, Menlo, Consolas, monospace; font-size: 85%;
  background: #f0efe9; }
pre { padding: 0.5em; overflow-x: auto; }
table { border-collapse: collapse; }
th, td { border: 1px solid #bbb; padding: 0.15em 0.6em; text-align: left; }
.nightMode.card { color: #e6e4df; background: #1d1f21; }
.nightMode code, .nightMode pre { background: #2b2e31; }
.nightMode th, .nightMode td { border-color: #555; }
.nightMode a { color: #8ab4f8; }
"""


def fields(question: PortableQuestion, link: Link) -> tuple[str, ...]:
    """Return the fields of a note, in the order of ``FIELDS``."""
    told = question.told
    key = "<br>".join(map(marked, told.solution.split("\n")))
    wrong = [
        f"<b>{marked(what)}</b>: {marked(remark.text)}"
        + (f" {_place(remark.place, link)}" if remark.place else "")
        for what, remark in reasons(question.form)
    ]
    read = [
        _place(each, link)
        if isinstance(each, CitedLines)
        else _anchor(named(each), each.url)
        for each in sources(question)
    ]
    return (
        question.prompt.id,
        _front(question),
        key,
        f"<p>{marked(told.explanation)}</p>",
        _listed(wrong),
        _listed(read),
    )


def tags(question: PortableQuestion) -> list[str]:
    """Return the tags of a note."""
    asked = question.prompt
    parts = {
        "topic": asked.topic,
        "objective": question.objective,
        "kind": question.kind,
        "difficulty": str(asked.difficulty),
    }
    return ["readerkit", *("::".join(each) for each in parts.items())]


def _front(question: PortableQuestion) -> str:
    asked = question.prompt
    parts = [f"<p>{marked(asked.prompt)}</p>"]
    if question.code:
        parts.append(f"<pre>{escape(chr(10).join(question.code))}</pre>")
    match asked:
        case ChoicePrompt(options=entries) | OrderPrompt(items=entries):
            parts.append(_labelled(entries))
        case MatchPrompt(left=left, right=right):
            parts += [_labelled(left), _labelled(right)]
        case SketchPrompt(columns=columns, rows=rows):
            head = "".join(f"<th>{marked(each)}</th>" for each in ("", *columns))
            blank = "<td>&nbsp;</td>" * len(columns)
            body = "".join(f"<tr><th>{marked(row)}</th>{blank}</tr>" for row in rows)
            parts.append(f"<table><tr>{head}</tr>{body}</table>")
    below = [*notes(question), f"({asked.how})"]
    if isinstance(asked, SketchPrompt):
        below = [f"{question.words}: {', '.join(asked.words)}"] if asked.words else []
    parts += [f'<p class="how">{marked(each)}</p>' for each in below]
    return "".join(parts)


def _labelled(entries: tuple[Labelled, ...]) -> str:
    rows = (f"<br>{marked(each.label)}  {marked(each.text)}" for each in entries)
    return f"<p>{''.join(rows).removeprefix('<br>')}</p>"


def _place(place: CitedLines, link: Link) -> str:
    return _anchor(named(place), link(place))


def _anchor(text: str, address: str) -> str:
    if not address:
        return marked(text)
    return f'<a href="{escape(address)}">{marked(text)}</a>'


def _listed(items: list[str]) -> str:
    return f"<ul>{''.join(f'<li>{each}</li>' for each in items)}</ul>" if items else ""
