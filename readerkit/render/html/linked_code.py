"""Lines of a file with their names as links, for the page at an address."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from readerkit.anchors.xref.links import File, Target
from readerkit.model import addresses
from readerkit.render.html.code import link
from readerkit.render.html.site_model import SiteModel


def linked(model: SiteModel, file: File, address: str, lines: bytes) -> bytes:
    """Return lines of a file with their names linked, for the page at an address."""
    here = addresses.href(address)
    links = model.links[file]
    defined = model.sheets[file].names.defined
    uses = addresses.to_page(addresses.href(addresses.uses_page(*file)), here)

    def use(chain: str, owner: str) -> Iterator[tuple[int, str]]:
        found = links.get((chain, owner))
        for part, targets in found.parts if found else ():
            if where := targets_address(targets):
                page, _, inside = where.partition("#")
                is_here = page == here and inside
                yield part, f"#{inside}" if is_here else addresses.to_page(where, here)

    def definition(name: str) -> str | None:
        is_used = any(
            Target(*file, line, name) in model.uses for line in defined.get(name, ())
        )
        return f"{uses}#{name}" if is_used else None

    return link(lines, use, definition)


def targets_address(targets: Sequence[Target]) -> str:
    """Return where a name leads: its definition, or the list of its candidates.

    Nowhere, where it is one of several modules: no page lists those.
    """
    if len(targets) == 1:
        (only,) = targets
        page = addresses.href(addresses.source_page(only.upstream, only.path))
        return f"{page}#L{only.line}" if only.name else page
    for target in targets:
        if target.name and target.upstream:
            page = addresses.href(addresses.uses_page(target.upstream, target.path))
            return f"{page}#{target.name}"
    return ""
