"""Reads what people wrote for the site: chapters, labs, diagrams, reading paths."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from functools import cache, partial
from importlib import metadata
from pathlib import Path
from types import MappingProxyType

from readerkit.app.cached_files import keep, read_kept
from readerkit.app.chapter_functions import chapter_functions
from readerkit.app.folders import read_at_most, shipped_book
from readerkit.app.interface_translation import read_search_words, say_of_estimates
from readerkit.app.kept_drifts import read_drifts
from readerkit.app.library import Library
from readerkit.app.mini_names import SAYS
from readerkit.app.page_estimates import computing, work_out
from readerkit.app.page_questions import (
    OwnAsked,
    asking,
    checks,
    phase_views,
    read_banks,
)
from readerkit.app.read_chapters import (
    CHAPTERS,
    LABS,
    read_chapters,
    read_labs,
    read_text,
)
from readerkit.app.read_paths import FIRST_QUESTION, FIRST_STOP, read_routes
from readerkit.content.book import MINIS
from readerkit.content.diagrams import DIAGRAM, Diagram, in_spanish, read_diagram
from readerkit.content.resolved_notes import Sources
from readerkit.content.translations import DIAGRAM_TRANSLATION
from readerkit.content.validation import read_document
from readerkit.errors import AnchorError, ContentError, ContentFault
from readerkit.model.anchor import Anchor
from readerkit.model.freshness import digest
from readerkit.model.language import SPANISH
from readerkit.quiz.bank import Bank
from readerkit.render.diagram_labels import CENTRED, place_labels
from readerkit.render.html.pages import Writing
from readerkit.render.html.supplies import Supplies

DIAGRAMS = Path("site", "pages", "diagrams")


def read_writing(
    library: Library,
    sources: Mapping[str, Sources],
    own_asked: OwnAsked = MappingProxyType({}),
) -> Writing:
    """Return the chapters, labs, diagrams and paths of a book, all checked.

    Pages ask about figures of the reader's own where they are given.

    Raises:
        ContentError: a claim of a diagram that does not hold, an unknown id.
    """
    root = library.root  # another book has its own pages, or none
    notes = library.book.annotations
    banks = read_banks(root)
    return Writing(
        scripts=tuple(read_chapters(root)),
        examples=work_out if _estimates(library) else None,
        labs=tuple(read_labs(root)),
        supplies=read_supplies(
            library,
            {each.name: each for each in _diagrams(root, sources)},
            lambda: banks,
        ),
        routes=read_routes(library),
        search_words=read_search_words(),
        first_stop=FIRST_STOP if FIRST_STOP in notes else next(iter(notes), ""),
        first_question=FIRST_QUESTION,
        is_shipped=FIRST_STOP in notes,
        drifts=read_drifts(library),
        phases=tuple(phase_views(banks, own_asked)),
        checks=partial(checks, banks, own_asked),
    )


def read_supplies(
    library: Library,
    diagrams: Mapping[str, Diagram],
    banks: Callable[[], list[Bank]],
) -> Supplies:
    """Return what fills the fences of texts."""
    return Supplies(
        ask=asking(banks),
        minis=_minis(library),
        compute=computing,
        diagrams=diagrams,
        functions=chapter_functions(library),
        say=lambda text: say_of_estimates(SPANISH)(text),  # once somebody asks
    )


def _minis(library: Library) -> dict[str, str]:
    """Return the minis of a book: those that commands run, and those of its mirrors."""
    if MINIS not in library.book.upstreams:
        return {}
    sections = (s for mirror in library.book.mirrors.values() for s in mirror.sections)
    shown = {Path(at.file).stem: "" for section in sections for at in section.mini}
    return shown | (SAYS if library.root == shipped_book() else {})


def _estimates(library: Library) -> bool:
    """Tell whether a book is about what the page of estimates computes."""
    named = any(concept.estimates for concept in library.book.concepts.values())
    if named or any((library.root / CHAPTERS).glob("*.md")):
        return True
    labs = (library.root / LABS).glob("*.md")
    return any("```setting" in read_text(path, library.root) for path in labs)


def _diagrams(root: Path, sources: Mapping[str, Sources]) -> Iterator[Diagram]:
    for path in diagram_files(root):
        yield read_diagram_at(path, root, sources)


def diagram_files(root: Path) -> list[Path]:
    """Return the English drawings of a book."""
    found = sorted((root / DIAGRAMS).glob("*.mmd"))
    return [path for path in found if not path.name.endswith(f".{SPANISH}.mmd")]


def read_diagram_at(path: Path, root: Path, sources: Mapping[str, Sources]) -> Diagram:
    """Return a diagram, with its claims held against the sources they are about.

    Raises:
        ContentError: a claim that does not hold.
    """

    def lines_of(upstream: str, anchor: Anchor) -> str | None:
        if upstream not in sources:
            raise AnchorError(f"unknown upstream '{upstream}'")
        if sources[upstream].is_absent:  # optional, and not fetched
            return None
        span = sources[upstream].resolve(anchor)
        source = sources[upstream].file(span.path)
        numbers = range(span.first, span.last + 1)
        return "\n".join(source.line(number) for number in numbers)

    claims = path.with_suffix(".yaml")
    if not claims.exists():
        what = f"a diagram without its claims: expected {claims.name} beside it"
        raise ContentError(
            [ContentFault(path.relative_to(root).as_posix(), 1, 1, what)]
        )
    file = claims.relative_to(root).as_posix()
    document = read_document(read_at_most(claims, root), file, DIAGRAM)
    diagram = read_diagram(path.stem, read_text(path, root), document, lines_of)
    spanish = path.with_suffix(f".{SPANISH}.mmd")
    texts = spanish.with_suffix(".yaml")
    if spanish.exists() and texts.exists():
        file = texts.relative_to(root).as_posix()
        told = read_document(read_at_most(texts, root), file, DIAGRAM_TRANSLATION)
        drawn = spanish.relative_to(root).as_posix()
        diagram = in_spanish(diagram, read_text(spanish, root), drawn, told)
    return diagram


def draw_diagram(library: Library, diagram: Diagram, theme: str) -> bytes:
    """Return a diagram as SVG; drawing takes a second, so each is kept by its text.

    What is kept is held against its digest, and is of one version of what draws it.

    Raises:
        ContentError: a text that Mermaid does not take.
    """
    name = {"light": "neutral", "dark": "dark"}[theme]
    before = f'%%{{init: {{"theme": "{name}"}}}}%%'
    text = f"{before}\n{diagram.mermaid}"
    made_of = digest(f"{_drawn_by()}\n{CENTRED}\n{text}")
    path = library.store.root / "diagrams" / f"{made_of}.drawn"
    kept = read_kept(path)
    if kept is not None:
        return kept
    import mermaidx  # brings a JavaScript engine

    try:
        image = place_labels(mermaidx.render(text).svg()).encode()
    except RuntimeError as error:
        raise ContentError([_mermaid_fault(diagram, str(error))]) from None
    keep(path, image)
    return image


@cache
def _drawn_by() -> str:
    """Return the version of what draws diagrams."""
    return metadata.version("mermaidx")


def _mermaid_fault(diagram: Diagram, said: str) -> ContentFault:
    """Return Mermaid's message at its line: it counts those that are no comments."""
    found = re.search(r"error on line (\d+)", said, re.I)
    rows = enumerate(diagram.mermaid.splitlines(), 1)
    counted = [number for number, row in rows if not row.lstrip().startswith("%%")]
    # The end of the text is one line after its last.
    line = [*counted[: int(found[1])][-1:], 1][0] if found else 1
    what = " ".join(said.removeprefix("Mermaid rendering failed: ").split())
    file = f"site/pages/diagrams/{diagram.name}.mmd"
    return ContentFault(file, line, 1, what)
