"""The page of a file's definitions: where each stands, and every place that uses it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from html import escape
from itertools import groupby

from markupsafe import Markup

from readerkit.anchors.xref.links import File, Target
from readerkit.model import addresses
from readerkit.model.git_names import TreePath
from readerkit.model.language import Told
from readerkit.render.html.excerpt import line_text
from readerkit.render.html.file_page import crumbs, rights_of
from readerkit.render.html.site_model import Context, SiteModel

UsedIn = tuple[str, Markup]
"""A file, and a link to each of its lines, made here because there are many."""
KINDS = {"calls": "Calls", "other": "Other uses", "imports": "Imports"}
"""Lines that use a name, in the order in which they tell most of it."""
_CALLED = re.compile(r"(\w+)\s*\(")


@dataclass(frozen=True, slots=True)
class Definition:
    """A name: one definition, or the candidates; and the lines that use it."""

    name: str
    is_one: bool
    lines: Markup
    """A link to each line that defines it."""
    others: tuple[UsedIn, ...]
    """Where else a use of it may be defined: syntax alone cannot tell."""
    uses: tuple[tuple[str, int, tuple[UsedIn, ...]], ...]
    """Calls, other uses, imports: how many lines, and those of each file."""
    count: int
    """Lines that use it."""


def uses_page(model: SiteModel, file: File) -> Context:
    """Return the page of uses of a file's definitions."""
    upstream, path = model.book.upstreams[file[0]], file[1]
    shown = {
        place.upstream
        for name, lines in model.sheets[file].names.defined.items()
        for line in lines
        for place in model.uses.get(Target(*file, line, name), ())
    }
    return {
        "title": Told("Uses of {file}", file=path.rpartition("/")[2]),
        "path": path,
        "crumbs": crumbs(upstream, path),
        "source": addresses.source_page(*file),
        "definitions": list(_definitions(model, file)),
        "rights": rights_of(model, sorted(shown)),
    }


def _definitions(model: SiteModel, file: File) -> Iterator[Definition]:
    root = addresses.to_root(addresses.uses_page(*file))
    source = escape(root + addresses.href(addresses.source_page(*file)))
    for name, lines in model.sheets[file].names.defined.items():
        places: set[Target] = set()
        others: set[Target] = set()
        for line in lines:
            target = Target(*file, line, name)
            places.update(model.uses.get(target, ()))
            others.update(model.rivals_of(target))
        others -= {Target(*file, line, name) for line in lines}
        if places:
            yield Definition(
                name,
                len(lines) == 1,
                _links(source, lines),
                tuple(_files(others, root, model)),
                tuple(_uses(places, name, root, model)),
                len(places),
            )


def _uses(
    places: set[Target], name: str, root: str, model: SiteModel
) -> Iterator[tuple[str, int, tuple[UsedIn, ...]]]:
    """Yield the lines that call a name, then others, then those that import it."""
    own = name.rpartition(".")[2]
    groups: dict[str, dict[Target, Markup]] = {kind: {} for kind in KINDS}
    for place in places:
        file = (place.upstream, TreePath(place.path))
        text = line_text(model, file, place.line)
        is_import = place.line in model.sheets[file].names.import_lines
        kind = "calls" if own in _CALLED.findall(text) else "other"
        groups["imports" if is_import else kind][place] = text
    for kind, texts in groups.items():
        if texts:
            yield KINDS[kind], len(texts), tuple(_lines(texts, root))


def _lines(texts: Mapping[Target, Markup], root: str) -> Iterator[UsedIn]:
    ordered = sorted(texts, key=lambda place: (place.upstream, place.path, place.line))
    for (upstream, path), group in groupby(ordered, lambda p: (p.upstream, p.path)):
        page = escape(root + addresses.href(addresses.source_page(upstream, path)))
        rows = (
            f'<li><a href="{page}#L{each.line}">{each.line}</a> '
            f"<code>{texts[each].strip()}</code>"
            for each in group
        )
        yield path, Markup("\n".join(rows))


def _files(places: set[Target], root: str, model: SiteModel) -> Iterator[UsedIn]:
    ordered = sorted(places, key=lambda place: (place.upstream, place.path, place.line))
    for (upstream, path), group in groupby(ordered, lambda p: (p.upstream, p.path)):
        if not upstream:
            elsewhere = model.words.say("imported, and not defined here")
            yield path, elsewhere
            continue
        page = escape(root + addresses.href(addresses.source_page(upstream, path)))
        yield path, _links(page, (each.line for each in group))


def _links(page: str, lines: Iterable[int]) -> Markup:
    links = (f'<a href="{page}#L{line}">{line}</a>' for line in lines)
    return Markup(", ".join(links))
