"""Questions in GIFT, the text format of Moodle.

Follows what ``question/format/gift/format.php`` of Moodle reads: a question is one
block without an empty line, and ``~ = # { } :`` and the backslash are escaped
everywhere.
"""

from __future__ import annotations

import html
from collections.abc import Iterable, Iterator

from readerkit.quiz.portable import (
    ChoiceForm,
    NumberForm,
    OrderForm,
    PairsForm,
    PortableQuestion,
    WordsForm,
    key_lines,
)
from readerkit.render.quiz_text import bare, marked, named, notes, sources

_RESERVED = str.maketrans(
    {**{each: f"\\{each}" for each in "\\#=~{}:"}, "\n": "\\n", "\r": None}
)


def escaped(text: str) -> str:
    """Return text that GIFT reads as it stands.

    >>> print(escaped("a = {b}\\nc"))
    a \\= \\{b\\}\\nc
    """
    return text.translate(_RESERVED)


def gift(questions: Iterable[PortableQuestion]) -> str:
    """Return questions as one file, in a category for each topic."""
    blocks, category = [], ""
    for each in questions:
        path = f"readerkit {each.phase}/{each.prompt.topic.replace('_', ' ')}"
        if path != category:
            category = path
            blocks.append(f"$CATEGORY: {path}")
        blocks.append(_block(each))
    return "\n\n".join(blocks) + "\n"


def is_essay(question: PortableQuestion) -> bool:
    """Tell whether GIFT has no form for a question: a person marks it."""
    match question.form:
        case ChoiceForm() | NumberForm() | PairsForm():
            return False
        case OrderForm(valid=valid):
            return len(valid) > 1  # a matching has one answer
        case WordsForm(accept=accept):
            return any("->" in text for text in accept)  # which makes it a matching
    return True


def _block(question: PortableQuestion) -> str:
    lines = [] if is_essay(question) else [*_answers(question)]
    opening = "{#" if isinstance(question.form, NumberForm) and lines else "{"
    name = escaped(question.prompt.id)
    body = [f"::{name}::[html]{escaped(_stem(question))}{opening}", *lines]
    return "\n".join([*body, f"####{escaped(_feedback(question))}", "}"])


def _answers(question: PortableQuestion) -> Iterator[str]:
    match question.form:
        case ChoiceForm(options=options, several=several):
            rights = sum(each.right for each in options)
            share = {True: 100 / rights, False: -100 / max(len(options) - rights, 1)}
            for each in options:
                sign = "=" if each.right else "~"
                if several:
                    sign = f"~%{share[each.right]:.7g}%"
                why = f"#{_said(each.why.text)}" if each.why else ""
                yield f"{sign}{_answer(each.text)}{why}"
        case NumberForm(key=key, within=within, mistakes=mistakes):
            yield f"=%100%{key:.12g}:{within:.12g}"
            for value, near, remark in mistakes:
                yield f"=%0%{value:.12g}:{near:.12g}#{_said(remark.text)}"
        case PairsForm(pairs=pairs, spare=spare):
            for left, right in [*pairs, *(("", text) for text in spare)]:
                yield f"={_said(left)} -> {escaped(bare(right))}"
        case OrderForm(items=items, valid=(order, *_)):
            for place, item in enumerate(order, 1):
                yield f"={place} -> {escaped(bare(items[item]))}"
        case WordsForm(accept=accept, mistakes=mistakes):
            for text in accept:
                yield f"=%100%{escaped(_literal(text))}"
            for text, remark in mistakes:
                if "->" not in text:
                    yield f"=%0%{escaped(_literal(text))}#{_said(remark.text)}"


def _literal(text: str) -> str:
    """Return a typed answer in which Moodle takes no star for any text."""
    return bare(text).replace("*", "\\*")


def _answer(text: str) -> str:
    """Return an option: one that begins with a per cent sign is no weight."""
    shown = marked(text)
    return escaped(f"&#37;{shown[1:]}" if shown.startswith("%") else shown)


def _said(text: str) -> str:
    return escaped(marked(text))


def _stem(question: PortableQuestion) -> str:
    parts = [f"<p>{marked(question.prompt.prompt)}</p>"]
    if question.code:
        parts.append(f"<pre>{html.escape(chr(10).join(question.code))}</pre>")
    parts += [f"<p>{marked(note)}</p>" for note in notes(question)]
    match question.form:
        case NumberForm() | WordsForm():
            parts.append(f"<p>({marked(question.prompt.how)})</p>")
        case OrderForm(items=items):
            shown = "".join(f"<li>{marked(item)}</li>" for item in items)
            parts.append(f"<ol>{shown}</ol>")
    return "".join(parts)


def _feedback(question: PortableQuestion) -> str:
    told = question.told
    key = "<br>".join(map(marked, key_lines(question)))
    read = "".join(f"<li>{marked(named(each))}</li>" for each in sources(question))
    return f"<p>{key}</p><p>{marked(told.explanation)}</p>" + (
        f"<ul>{read}</ul>" if read else ""
    )
