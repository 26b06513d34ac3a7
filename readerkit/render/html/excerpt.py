"""Some lines of a file on a page about something else."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from markupsafe import Markup

from readerkit.anchors import Span
from readerkit.anchors.xref.links import File
from readerkit.model import addresses
from readerkit.model.language import said
from readerkit.render.html.code import unlinked
from readerkit.render.html.linked_code import linked
from readerkit.render.html.site_model import SiteModel
from readerkit.render.html.words import Text

MAX_LINES = 60
_TAG = re.compile(b"<[^>]*>")


@dataclass(frozen=True, slots=True)
class Excerpt:
    """Lines of a file, with the way to the rest."""

    upstream: str
    place: str
    """``layers.py:1274-1294``"""
    page: str
    lines: Markup
    more: int
    """How many lines of the span are left out."""
    absent: Text | None = None
    """Why no line is shown."""


def excerpt(
    model: SiteModel,
    upstream: str,
    span: Span,
    address: str,
    *,
    limit: int | None = MAX_LINES,
    is_linked: bool = True,
) -> Excerpt:
    """Return the lines of a span, for the page at ``address``."""
    file = (upstream, span.path)
    if why := model.absent.get(upstream):
        return Excerpt(
            upstream,
            addresses.lines_text(span.path, span.first, span.last),
            addresses.source_page(*file),
            Markup(),
            0,
            model.words.text(partial(said, why)),
        )
    last = min(span.last, span.first + limit - 1) if limit else span.last
    return Excerpt(
        upstream=upstream,
        place=addresses.lines_text(span.path, span.first, span.last),
        page=addresses.lines_page(*file, span.first, span.last),
        lines=_lines(model, file, range(span.first, last + 1), address, is_linked),
        more=span.last - last,
    )


def _lines(
    model: SiteModel, file: File, numbers: range, address: str, is_linked: bool
) -> Markup:
    sheet = model.sheets[file]
    ran = frozenset().union(*model.ran.get(file, {}).values())
    page = addresses.to_root(address) + addresses.href(addresses.source_page(*file))
    out = []
    drawn = _dedented(sheet.drawn.lines[numbers.start - 1 : numbers.stop - 1])
    for number, line in zip(numbers, drawn, strict=True):
        kind = "l ran" if number in ran else "l"
        site = f"{file[0]}:{file[1]}:{number}"
        opening = '<div class="{}" data-site="{}"><a href="{}#L{}" tabindex="-1">{}</a>'
        start = Markup(opening).format(kind, site, page, number, number)
        out.append(start.encode("utf-8", "replace") + line)
    text = b"</div>\n".join(out) + b"</div>"
    text = linked(model, file, address, text) if is_linked else unlinked(text)
    return Markup(text.decode("utf-8", "replace"))


def plain_lines(model: SiteModel, file: File, span: Span, *, limit: int) -> Markup:
    """Return the first lines of a span with their numbers and without colours."""
    last = min(span.last, span.first + limit - 1)
    drawn = _dedented(model.sheets[file].drawn.lines[span.first - 1 : last])
    wide = len(str(last))
    rows = [
        f"{number:>{wide}}  {_TAG.sub(b'', unlinked(line)).decode('utf-8', 'replace')}"
        for number, line in enumerate(drawn, span.first)
    ]
    return Markup("\n".join([*rows, "…"] if last < span.last else rows))


def line_text(model: SiteModel, file: File, number: int) -> Markup:
    """Return one line without its colours and its links."""
    line = _TAG.sub(b"", unlinked(model.sheets[file].drawn.lines[number - 1]))
    return Markup(line.decode("utf-8", "replace"))


def _dedented(lines: Sequence[bytes]) -> list[bytes]:
    """Return lines without the indentation that all of them share."""
    indents = [len(line) - len(line.lstrip(b" ")) for line in lines if line.strip()]
    return [line[min(indents, default=0) :] for line in lines]
