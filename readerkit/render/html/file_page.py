"""The page of a source file: the whole of it, and notes bracketed at their lines."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import dataclass
from functools import partial
from itertools import groupby

from markupsafe import Markup

from readerkit.anchors import Span
from readerkit.anchors.xref.links import File, Target
from readerkit.content.claims import Claimed
from readerkit.content.resolved_notes import Note
from readerkit.evidence.executed_lines import LitLines, Sent, say_calls, say_when
from readerkit.evidence.relevance import expected_to_run, seen_there, worth_saying
from readerkit.model import addresses
from readerkit.model.git_names import TreePath
from readerkit.model.language import SPANISH, Say, said
from readerkit.render.html.code import numbered
from readerkit.render.html.excerpt import excerpt, plain_lines
from readerkit.render.html.linked_code import linked
from readerkit.render.html.markdown import line
from readerkit.render.html.mechanism_list import MECHANISMS, played_names
from readerkit.render.html.notes import (
    AlsoShown,
    NoteView,
    SectionBeside,
    Seen,
    note_view,
    section_title,
    text,
)
from readerkit.render.html.proved import MAX_LINES, Proved, proved
from readerkit.render.html.site_model import SiteModel
from readerkit.render.html.words import Text
from readerkit.upstreams import Upstream
from readerkit.wording.numbers import format_bytes

Crumb = tuple[str, str]
"""A step of the way to a page; without an address where it has no page."""
RanIn = tuple[tuple[str, str], ...]
"""Records in which lines ran, each with its page."""


@dataclass(frozen=True, slots=True)
class Rights:
    """Where text came from, whose it is, and under which terms."""

    upstream: Upstream
    blob: str
    url: str
    came_from: str
    terms_url: str


@dataclass(frozen=True, slots=True)
class FilePage:
    """The page of one source file."""

    address: str
    title: str
    path: str
    crumbs: tuple[Crumb, ...]
    notes: tuple[NoteView, ...]
    rights: Rights
    line_count: int
    uses: str
    """The page of uses; empty where nothing is used."""
    ran_in: RanIn
    others: tuple[Rights, ...]
    """Of the upstreams of which its notes show lines beside its own."""
    classes: tuple[tuple[int, str], ...]
    """Lines that look different: covered by notes, or run in a record."""
    warning: Text | None = None
    """Why nothing of it is shown, or not as code: not fetched, too large to parse."""


def file_page(model: SiteModel, file: File) -> FilePage:
    """Return the page of a file."""
    upstream = model.book.upstreams[file[0]]
    notes = model.notes_in(file)
    asides = [each for note in notes for each in model.asides(note.annotation.id)]
    shown = (each.annotation.upstream for each in asides)
    ran = model.ran.get(file, {})
    has_uses = any(target in model.uses for target in _definitions(model, file))
    return FilePage(
        address=addresses.source_page(*file),
        title=file[1].rpartition("/")[2],
        path=file[1],
        crumbs=crumbs(upstream, file[1]),
        notes=tuple(view(model, note.annotation.id) for note in notes),
        rights=rights(model, upstream, file[1]),
        warning=_warning(model, file),
        others=rights_of(model, (name for name in shown if name != file[0])),
        line_count=model.sheets[file].drawn.count,
        uses=addresses.uses_page(*file) if has_uses else "",
        ran_in=ran_in(model, file),
        classes=tuple(
            sorted(_classes(notes, frozenset().union(*ran.values())).items())
        ),
    )


def _warning(model: SiteModel, file: File) -> Text | None:
    why = model.absent.get(file[0]) or model.sheets[file].fault
    return model.words.text(partial(said, why)) if why else None


def view(model: SiteModel, annotation: str) -> NoteView:
    """Return what pages show of a note."""
    if annotation not in model.views:
        model.views[annotation] = note_view(
            model.notes[annotation],
            model.book,
            model.words,
            also=tuple(_also(model, model.notes[annotation])),
            beside=tuple(_beside(model, annotation)),
            seen=tuple(_seen(model, model.notes[annotation])),
            asked=model.asked.get(annotation, ()),
            plays=tuple(_plays(model, annotation)),
            proofs=proofs_of(model, annotation, (model.notes[annotation].annotation,)),
        )
    return model.views[annotation]


def _plays(model: SiteModel, annotation: str) -> Iterator[tuple[str, str]]:
    """Yield the mechanisms whose minis stand beside a note: where, and the title."""
    minis = {
        (anchor.file, (anchor.symbol or "").partition(".")[0])
        for *_, section in model.sections_with(annotation)
        for anchor in section.mini
    }
    for name in played_names(model.played):
        ran = {(f"mini_impls/{s}.py", symbol) for s, symbol in MECHANISMS[name].minis}
        if ran & minis:
            yield addresses.mechanism_page(name), MECHANISMS[name].title


def proofs_of(
    model: SiteModel,
    entry: str,
    parts: Sequence[Claimed] | None = None,
    *,
    max_lines: int = MAX_LINES,
) -> tuple[Proved, ...]:
    """Return what pages show of the claims of an entry, or of some parts of it.

    Of each place ``max_lines`` lines: where none, only where it stands.
    """
    held = [
        each
        for each in model.proofs.get(entry, ())
        if parts is None or any(each[0].claimed is part for part in parts)
    ]
    homes = {str(path): name for name, path in model.sheets} if held else {}

    def code(span: Span) -> Markup:
        if not max_lines:
            return Markup()
        return plain_lines(model, (homes[span.path], span.path), span, limit=max_lines)

    return proved(held, model.words, homes, model.strips, code)


def ran_in(model: SiteModel, file: File, lines: Iterable[int] = ()) -> RanIn:
    """Return the records in which some of these lines ran, or any of the file's."""
    return tuple(
        (name, model.strips.get(name, ""))
        for name, ran in model.ran.get(file, {}).items()
        if (ran.intersection(lines) if lines else ran)
    )


def _definitions(model: SiteModel, file: File) -> Sequence[Target]:
    names = model.sheets[file].names.defined
    return [
        Target(*file, line, name) for name, lines in names.items() for line in lines
    ]


def _also(model: SiteModel, note: Note) -> Iterator[AlsoShown]:
    """Yield the other lines that a note shows, for the page that the note is on."""
    written = note.annotation
    spanish = model.book.translated(written, SPANISH)
    address = addresses.source_page(written.upstream, note.span.path)
    translated = written.with_texts(spanish.texts).also
    for aside, other in zip(model.asides(written.id), translated, strict=True):
        upstream, says = aside.annotation.upstream, aside.annotation.title
        yield AlsoShown(
            text(says, other.says if other.says != says else None, line),
            model.book.upstreams[upstream].title,
            excerpt(model, upstream, aside.span, address),
        )


def _beside(model: SiteModel, annotation: str) -> Iterator[SectionBeside]:
    """Yield the sections of mirrors that show a note beside lines of a mini."""
    for mirror, index, section in model.sections_with(annotation):
        spans = dict.fromkeys(model.mirrored[mirror, index])
        if spans:
            yield SectionBeside(
                relation=section.relation,
                title=section_title(mirror, index, model.book),
                page=f"{addresses.mirror_page(mirror)}#s{index + 1}",
                lines=tuple(
                    (
                        addresses.lines_text(span.path, span.first, span.last),
                        addresses.lines_page(
                            model.book.home_of(span.path),
                            span.path,
                            span.first,
                            span.last,
                        ),
                    )
                    for span in spans
                ),
            )


def crumbs(upstream: Upstream, path: str) -> tuple[Crumb, ...]:
    """Return the way from an upstream's list of files to a file."""
    *folders, name = path.split("/")
    tree = addresses.tree_page(upstream.name)
    steps = [(upstream.title, tree)]
    for depth, folder in enumerate(folders, start=1):
        whole = "/".join(folders[:depth])
        steps.append((folder, f"{tree}#{whole}"))
    return (*steps, (name, ""))


def rights(
    model: SiteModel, upstream: Upstream, path: TreePath | None = None
) -> Rights:
    """Return what a page of source must say about its text."""
    lock = model.book.locks.get(upstream.name)
    where = f"{upstream.url}/blob/{upstream.commit}" if upstream.url else ""
    licence = upstream.licence
    return Rights(
        upstream,
        blob=lock.files.get(path, "") if lock and path else "",
        url=f"{where}/{addresses.href(path or '')}" if where else "",
        came_from=model.origins[upstream.name],
        terms_url=f"{where}/{licence.path}" if licence and where else "",
    )


def rights_of(model: SiteModel, upstreams: Iterable[str]) -> tuple[Rights, ...]:
    """Return what a page that shows lines of these must say, each once."""
    return tuple(
        rights(model, model.book.upstreams[name]) for name in dict.fromkeys(upstreams)
    )


def _seen(model: SiteModel, note: Note) -> Iterator[Seen]:
    """Yield what records saw in a note's lines; that nothing ran, only if none did."""
    upstream = note.annotation.upstream
    found = seen_there(upstream, note.span, model.evidence)
    file = model.ran.get((upstream, note.span.path), {})
    mirrors = model.book.mirrors.values()
    meant = expected_to_run(note.annotation, file, mirrors, model.evidence)
    told = worth_saying(found, meant)
    if found and not told:
        yield Seen(model.words.text(_none), False, ())
    for _, group in groupby(sorted(told, key=_alike), _alike):
        same = list(group)
        records = tuple(
            (e.comparison, model.strips.get(e.comparison, "")) for e in same
        )
        yield Seen(model.words.text(partial(say_ran, same[0])), same[0].ran, records)


def _alike(seen: LitLines) -> tuple[tuple[Sent, ...], str]:
    """Return what makes two records say the same of some lines."""
    return seen.first_rank, "" if seen.ran else say_when(seen)


def _none(say: Say) -> str:
    return say("no record runs this code")


def say_ran(seen: LitLines, say: Say) -> str:
    """Return ``ran here: 4 all-gathers, 1.2 MB``, or when else it ran, if at all."""
    if not seen.ran:
        return say_when(seen, say)
    if not seen.first_rank:
        return say("ran here and sent nothing")
    sent = [
        f"{say_calls(each.op, each.calls)}, {format_bytes(each.payload_bytes)}"
        for each in seen.first_rank
    ]
    return f"{say('ran here')}: {'; '.join(sent)}"


def _classes(notes: Sequence[Note], lit: Set[int]) -> dict[int, str]:
    """Return the classes of lines that notes cover or that ran."""
    depth: Counter[int] = Counter()
    for note in notes:
        depth.update(range(note.span.first, note.span.last + 1))
    classes: dict[int, str] = {}
    for number in {*depth, *lit}:
        names = [f"t{min(depth[number], 3)}"] if depth[number] else []
        names += ["ran"] if number in lit else []
        classes[number] = " ".join(names)
    return classes


def code_html(model: SiteModel, file: File, page: FilePage) -> list[bytes]:
    """Return the lines of a file's page, linked."""
    plain = numbered(model.sheets[file].drawn, dict(page.classes))
    lines = bracketed(plain, page.notes)
    whole = b"".join(lines)
    return linked(model, file, page.address, whole).splitlines(keepends=True)


def bracketed(lines: Sequence[bytes], notes: Iterable[NoteView]) -> list[bytes]:
    """Return the lines of a page, each with the brackets that pass it."""
    marked = list(lines)
    for note, lane in in_lanes(notes):
        for number in range(note.first, min(note.last, len(lines)) + 1):
            line, edge = marked[number - 1], _edge(note, lane, number)
            marked[number - 1] = line.replace(b">", b">" + edge, 1)
    return marked


def in_lanes(notes: Iterable[NoteView]) -> Iterator[tuple[NoteView, int]]:
    """Yield each note with its lane, in which no other note has the same lines.

    A note around others comes first, so its bracket is the outer one.
    """
    free_after: list[int] = []
    for note in sorted(notes, key=lambda note: (note.first, -note.last)):
        lane = next(
            (lane for lane, last in enumerate(free_after) if last < note.first),
            len(free_after),
        )
        free_after[lane:] = [note.last, *free_after[lane + 1 :]]
        yield note, lane


def _edge(note: NoteView, lane: int, number: int) -> bytes:
    kinds = ["edge", f"e{lane % 4}", f"kind-{note.kind}"]
    kinds += ["begins"] if number == note.first else []
    kinds += ["ends"] if number == note.last else []
    return f'<i class="{" ".join(kinds)}" data-of="{note.id}"></i>'.encode()
