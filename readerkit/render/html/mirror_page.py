"""The side-by-side page of an idea: upstream, the mini, and the evidence."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal

from markupsafe import Markup

from readerkit.anchors import Span
from readerkit.content.book import MINIS
from readerkit.content.claims import Claimed
from readerkit.content.concept_order import mirrors_in_turn
from readerkit.content.mirrors import Mirror, MirrorSection
from readerkit.content.translations import Translation
from readerkit.evidence.relevance import main_mini, related, seen_there
from readerkit.model import addresses
from readerkit.model.language import SPANISH
from readerkit.render.html.conclusion_view import conclusion_view
from readerkit.render.html.excerpt import excerpt
from readerkit.render.html.file_page import proofs_of, rights_of, say_ran, view
from readerkit.render.html.markdown import line, prose
from readerkit.render.html.notes import Seen, card, mirror_title, section_title, text
from readerkit.render.html.proved import Proved, marked, only_marks, passages
from readerkit.render.html.record_view import bars, record_view
from readerkit.render.html.schedule_play import schedule_player
from readerkit.render.html.site_model import Context, SiteModel
from readerkit.render.html.words import Text

SCHEDULE_FILE = "mini_impls/schedules.py"


def mirror_page(model: SiteModel, mirror: Mirror) -> Context:
    """Return the side-by-side page of a mirror."""
    address = addresses.mirror_page(mirror.id)
    upstreams = dict.fromkeys(
        model.notes[note].annotation.upstream
        for section in mirror.sections
        for note in section.upstream
    )
    own, guests = _records(model, mirror)
    main = next(iter(upstreams))  # its records come first
    rights = rights_of(model, upstreams)
    proofs = proofs_of(model, mirror.id, (mirror,))
    own.sort(key=lambda name: main not in model.evidence[name].record.pins)
    other = model.book.mirror_in(mirror.id, SPANISH)
    said = model.book.mirror_translations.get(SPANISH, {}).get(mirror.id)
    tell = _Teller(proofs, mirror.id)
    idea = tell.both(mirror, other, "idea", prose)
    return {
        "mirror": mirror,
        "title": mirror_title(mirror, model.book),
        "idea": idea,
        "state": _state([mirror], [other], said, mirror.stamp),
        "proofs": passages(proofs, mirror.id, (idea,)),
        "cards": [card(name, model.book) for name in mirror.concepts],
        "sections": [
            _section(model, mirror, index, section, address)
            for index, section in enumerate(mirror.sections)
        ],
        "schedules": (
            schedule_player(model.words, "schedules")
            if main_mini(mirror) == SCHEDULE_FILE
            else None
        ),
        "strips": [record_view(model, model.evidence[name], mirror) for name in own],
        "guests": [_guest(model, name, ran) for name, ran in guests.items()],
        "rights": rights,
        "upstreams": {each.upstream.name: each.url for each in rights},
    }


TranslationState = Literal["told", "untranslated", "outdated"]
"""How the Spanish of a part of a page stands."""


def _state(
    own: Iterable[Claimed],
    other: Iterable[Claimed],
    said: Translation | None,
    stamp: str,
) -> TranslationState:
    """Return whether the parts of a page have all their texts, of today's English."""
    both = zip(own, other, strict=True)
    if any(
        text == there.texts[name]
        for here, there in both
        for name, text in here.texts.items()
    ):
        return "untranslated"
    return "outdated" if said and said.is_outdated(stamp) else "told"


def _parts(section: MirrorSection) -> list[Claimed]:
    return [section, *section.leaves_out, *section.differences]


@dataclass(frozen=True, slots=True)
class _Teller:
    """Says the texts of a part of a page, with a mark behind each proved sentence."""

    proofs: Sequence[Proved]
    place: str

    def both(
        self, own: Claimed, other: Claimed, name: str, render: Callable[[str], Markup]
    ) -> Text:
        """Return a text in both languages; in one where the other has none."""
        english, spanish = own.texts.get(name, ""), other.texts.get(name, "")

        def shown(words: str) -> Markup:
            return marked(words, english, self.proofs, own, self.place, render)

        return text(english, spanish if spanish != english else None, shown)


def _records(
    model: SiteModel, mirror: Mirror
) -> tuple[list[str], dict[str, list[Context]]]:
    """Return the records that a page shows in full, and what those it names ran."""
    address = addresses.mirror_page(mirror.id)
    own: list[str] = []
    guests: dict[str, list[Context]] = {}
    for one in related(mirror, model.evidence):
        if one.is_own or model.strips.get(one.comparison) == address:
            own.append(one.comparison)
            continue
        ran = list(_sections_that_ran(model, mirror, one.comparison))
        if ran or model.evidence[one.comparison].stale:
            guests[one.comparison] = ran
    return own, guests


def _guest(model: SiteModel, comparison: str, ran: list[Context]) -> Context:
    """Return a record that another page shows in full, and what it ran of this one."""
    evidence = model.evidence[comparison]
    page = f"{model.strips[comparison]}#r-{comparison}"
    chart = bars(evidence.record, model.words)
    said = conclusion_view(model, evidence.record)
    shown: Context = {"evidence": evidence, "page": page, "ran": ran, "chart": chart}
    return {**shown, "conclusion": said}


def _sections_that_ran(
    model: SiteModel, mirror: Mirror, comparison: str
) -> Iterator[Context]:
    evidence = {comparison: model.evidence[comparison]}
    seen = [
        (index, span.path, found)
        for index in range(len(mirror.sections))
        for span in model.mirrored[mirror.id, index]
        for found in seen_there(MINIS, span, evidence)
    ]
    step = {(index, path) for index, path, found in seen if found.ran}
    in_step = {index for index, _ in step}
    elsewhere = {
        (index, path)
        for index, path, found in seen
        if found.ran_elsewhere and index not in in_step
    }
    for is_step, those in ((True, step), (False, elsewhere)):
        if those:
            numbers = sorted({index for index, _ in those})
            yield {
                "in_step": is_step,
                "minis": _files(sorted({path for _, path in those})),
                "sections": [
                    (i + 1, section_title(mirror.id, i, model.book)) for i in numbers
                ],
            }


def _section(
    model: SiteModel, mirror: Mirror, index: int, section: MirrorSection, address: str
) -> Context:
    """Return one step of the idea on both sides."""
    proofs = proofs_of(
        model, mirror.id, (section, *section.leaves_out, *section.differences)
    )

    other = model.book.mirror_in(mirror.id, SPANISH).sections[index]
    tell = _Teller(proofs, f"s{index + 1}")
    why = tell.both(section, other, "why", prose)
    marks = only_marks(tell.both(section, other, "title", line).en)
    leaves_out = [
        (tell.both(each, there, "what", line), tell.both(each, there, "why", line))
        for each, there in zip(section.leaves_out, other.leaves_out, strict=True)
    ]
    reasons: dict[tuple[str, ...], list[Text]] = defaultdict(list)
    for each, there in zip(section.differences, other.differences, strict=True):
        reason = tell.both(each, there, "why", line)
        reasons[tuple(each.comparisons)].append(reason)
    texts = [Text(marks), why, *(text for pair in leaves_out for text in pair)]
    texts += [reason for those in reasons.values() for reason in those]
    return {
        "number": index + 1,
        "title": section_title(mirror.id, index, model.book),
        "title_marks": marks,
        "state": _section_state(model, mirror, section, other),
        "relation": section.relation,
        **_columns(model, section, model.mirrored[mirror.id, index], address),
        "why": why if section.why else None,
        "proofs": passages(proofs, f"s{index + 1}", texts),
        "leaves_out": leaves_out,
        "reasons": [*reasons.items()],
        "events": dict.fromkeys(
            f"{each.phase} {each.op.replace('_', '-')}" for each in section.events
        ),
    }


def _section_state(
    model: SiteModel, mirror: Mirror, section: MirrorSection, other: MirrorSection
) -> TranslationState:
    """Return how a section stands to its Spanish; without any the page is marked."""
    mirrored = model.book.mirror_translations.get(SPANISH, {}).get(mirror.id)
    if mirrored is None:
        return "told"
    said = mirrored.sections.get(section.title)
    return _state(_parts(section), _parts(other), said, section.stamp)


def _columns(
    model: SiteModel, section: MirrorSection, minis: Iterable[Span], address: str
) -> Context:
    """Return the lines of both sides, each with what stands beside them."""
    notes = (model.notes[name] for name in section.upstream)
    return {
        "upstream": [
            (
                view(model, note.annotation.id),
                excerpt(model, note.annotation.upstream, note.span, address),
            )
            for note in notes
        ],
        "mini": [
            (
                list(_seen(model, span)),
                excerpt(model, model.book.home_of(span.path), span, address),
            )
            for span in minis
        ],
    }


def _seen(model: SiteModel, span: Span) -> Iterator[Seen]:
    for each in seen_there(MINIS, span, model.evidence):
        if each.first_rank:
            page = model.strips.get(each.comparison, "")
            said = model.words.text(partial(say_ran, each))
            yield Seen(said, True, ((each.comparison, page),))


def mirror_index(model: SiteModel) -> Context:
    """Return the list of all mirrors."""
    return {"title": "Side by side", "mirrors": mirror_lines(model)}


def mirror_lines(model: SiteModel) -> list[Context]:
    """Return a line for each mirror, in the order in which they are taught."""
    in_turn = mirrors_in_turn(model.book.mirrors.values(), model.book.concepts)
    return [_line(model, mirror) for mirror in in_turn]


def _line(model: SiteModel, mirror: Mirror) -> Context:
    own, guests = _records(model, mirror)
    other = model.book.mirror_in(mirror.id, SPANISH)
    said = model.book.mirror_translations.get(SPANISH, {}).get(mirror.id)
    minis = dict.fromkeys(
        anchor.file for section in mirror.sections for anchor in section.mini
    )
    return {
        "mirror": mirror,
        "title": mirror_title(mirror, model.book),
        "idea": _Teller((), mirror.id).both(mirror, other, "idea", prose),
        "state": _state([mirror], [other], said, mirror.stamp),
        "minis": _files(minis),
        "records": len(own) + len(guests),
    }


def _files(paths: Iterable[str]) -> str:
    return ", ".join(path.rpartition("/")[2] for path in paths)
