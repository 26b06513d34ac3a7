"""What a record comes to, as pages say it: what happened, and every reason."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from readerkit.content.mirrors import Mirror
from readerkit.evidence.conclusion import Conclusion, Reason, say_conclusion, say_reason
from readerkit.evidence.executed_lines import op_name
from readerkit.evidence.purposes import Calls, amounts, purposes
from readerkit.evidence.record import Record
from readerkit.model import addresses
from readerkit.model.language import SPANISH, Say
from readerkit.model.told_parts import in_parts
from readerkit.render.html.escape import shown
from readerkit.render.html.markdown import line
from readerkit.render.html.notes import note_title, section_title, text
from readerkit.render.html.site_model import Context, SiteModel
from readerkit.render.html.words import Text
from readerkit.wording.numbers import format_bytes

MARKS = {"identical": "=", "explained": "~", "trap": "!", "unexplained": "✗"}
"""What stands before each, so that it is no matter of colour."""


def conclusion_view(model: SiteModel, record: Record) -> Context:
    """Return what a record comes to, in both languages."""
    found = Conclusion.of(record)
    count = len(list(say_conclusion(found)))

    def sentence(at: int, say: Say) -> str:
        return list(say_conclusion(found, say))[at]

    note = model.notes.get(found.trap.note) if found.trap else None
    return {
        "kind": found.kind,
        "mark": MARKS[found.kind],
        "said": [model.words.text(partial(sentence, at)) for at in range(count)],
        "trap": reason_of(model, found.trap.mirror, found.trap.why)
        if found.trap
        else None,
        "note": note and note.annotation,
        "note_title": note and note_title(note.annotation, model.book),
        "note_page": note
        and addresses.source_page(note.annotation.upstream, note.span.path),
        "reasons": [_reason(model, reason) for reason in found.reasons],
        "has_calls_alone": found.has_calls_alone,
    }


def work_view(model: SiteModel, record: Record, mirror: Mirror) -> Context:
    """Return what the calls of both sides are for, and what a rank sends and keeps."""
    return {
        "jobs": [
            {
                "number": job.section,
                "title": section_title(mirror.id, job.section - 1, model.book)
                if job.section
                else None,
                "upstream": list(map(_calls, job.upstream)),
                "mini": list(map(_calls, job.mini)),
                "same": job.is_as_many_bytes,
            }
            for job in purposes(record, mirror)
        ],
        "amounts": [
            (each.what, format_bytes(each.upstream), format_bytes(each.mini))
            for each in amounts(record)
        ],
    }


def _calls(calls: Calls) -> str:
    sent = format_bytes(calls.bytes)
    return f"{calls.phase}: {calls.count} × {op_name(calls.op)}, {sent}"


def reason_of(model: SiteModel, mirror: str, why: str) -> Text:
    """Return a reason that a mirror gives, in both languages where it has both."""
    other = model.book.reason_in(mirror, why, SPANISH)
    return text(why, other if other != why else None, line)


def _reason(model: SiteModel, reason: Reason) -> Context:
    """Return a reason, and the section of a side-by-side page that gives it."""
    mirror = model.book.mirrors.get(reason.mirror)
    number = next(
        (
            number
            for number, section in enumerate(mirror.sections if mirror else (), 1)
            if any(each.why == reason.why for each in section.differences)
        ),
        0,
    )
    what = in_parts(reason.what, model.words.records) or reason.what
    own, other = say_reason(reason), replace(reason, what=what)
    return {
        "of": Text(shown(own), shown(say_reason(other, model.words.in_spanish))),
        "why": reason_of(model, reason.mirror, reason.why),
        "page": number and f"{addresses.mirror_page(reason.mirror)}#s{number}",
        "number": number,
    }
