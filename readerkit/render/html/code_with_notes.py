"""The lines of a file's page, with its notes between them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from markupsafe import Markup

from readerkit.anchors.xref.links import File
from readerkit.render.html.environment import Templates
from readerkit.render.html.file_page import FilePage, code_html
from readerkit.render.html.site_model import SiteModel

if TYPE_CHECKING:
    from readerkit.render.html.pages import Site

CUT = "\x00"  # no note holds it: it would be spelt out


def code_with_notes(
    model: SiteModel, templates: Templates, site: Site, file: File, values: FilePage
) -> bytes:
    """Return a file's lines, each note after the last line that it covers.

    So it never stands between its own lines; of two that end together the inner one
    comes first.
    """
    lines = code_html(model, file, values)
    asides = notes_html(templates, site, values)
    in_order = sorted(values.notes, key=lambda each: (each.last, -each.first))
    count = len(lines)  # none, where the file was not fetched
    for view in reversed(in_order):
        lines.insert(min(view.last, count), asides[view.id] + b"\n")
    return b"".join(lines)


def notes_html(templates: Templates, site: Site, values: FilePage) -> dict[str, bytes]:
    """Return the notes of a file's page by their ids."""
    if not values.notes:
        return {}
    cut = Markup(CUT)
    text = templates.render("notes.html", values.address, values, site=site, cut=cut)
    asides = text.encode("utf-8", "replace").split(CUT.encode())
    pairs = zip(values.notes, asides[:-1], strict=True)
    return {view.id: aside.strip() for view, aside in pairs}
