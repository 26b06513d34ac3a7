"""A bank for other programs: Anki's deck, Moodle's GIFT, a QTI package; as bytes."""

from __future__ import annotations

import io
import itertools
import sqlite3
import time
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from hashlib import sha256

from readerkit.app.cited_lines import SourceLines, numbered
from readerkit.errors import ReaderkitError
from readerkit.quiz.bank import Bank
from readerkit.quiz.portable import PortableQuestion, portable
from readerkit.quiz.prompts import LocatePrompt
from readerkit.render import quiz_anki, quiz_gift, quiz_qti


def portable_bank(
    bank: Bank, names: Iterable[str], seed: int, lines: SourceLines
) -> tuple[list[PortableQuestion], list[str]]:
    """Return questions in the bank's order, and those whose lines are not at hand."""
    found, lacking = [], []
    wanted = {*names}
    for name in bank.questions:
        if name not in wanted:
            continue
        asked, code = bank.variant(name, seed).prompt, None
        if isinstance(asked, LocatePrompt):
            place = asked.search
            if lines.lacking(place):
                lacking.append(name)
                continue
            code = [*numbered(lines.lines(place) or [], place.first)]
        found.append(portable(bank, name, seed, code or ()))
    return found, lacking


def gift_file(questions: Sequence[PortableQuestion]) -> bytes:
    """Return questions for Moodle."""
    return quiz_gift.gift(questions).encode()


def qti_file(questions: Sequence[PortableQuestion], title: str) -> bytes:
    """Return questions as a zipped QTI package."""
    return _zipped(quiz_qti.package(questions, title))


def anki_file(
    questions: Sequence[PortableQuestion], title: str, lines: SourceLines
) -> bytes:
    """Return questions as a deck: a note has the same id in each export.

    Raises:
        ReaderkitError: genanki is not installed.
    """
    try:
        import genanki
    except ImportError:
        raise ReaderkitError(
            "--anki: got no genanki, which writes Anki's files: "
            "pip install 'readerkit-distributed[anki]'"
        ) from None
    model = genanki.Model(
        _number("note type of readerkit"),
        "readerkit",
        fields=[{"name": name} for name in quiz_anki.FIELDS],
        templates=[{"name": "Card", "qfmt": quiz_anki.FRONT, "afmt": quiz_anki.BACK}],
        css=quiz_anki.CSS,
    )
    phase = questions[0].phase
    # A deck of another language stands beside the English one: it is no update of it.
    other = [each for each in (questions[0].language,) if each != "en"]
    name = " ".join([f"deck of readerkit {phase}", *other])
    deck = genanki.Deck(_number(name), "::".join(["readerkit", title, *other]))
    for each in questions:
        note = genanki.Note(
            model=model,
            fields=[*quiz_anki.fields(each, lines.permalink)],
            tags=quiz_anki.tags(each),
            guid=genanki.guid_for("readerkit", phase, each.prompt.id, *other),
        )
        deck.add_note(note)
    # Package.write_to_file would leave its database behind among temporary files.
    moment = time.time()
    with closing(sqlite3.connect(":memory:")) as connection:
        ids = itertools.count(int(moment * 1000))
        genanki.Package(deck).write_to_db(connection.cursor(), moment, ids)
        connection.commit()
        collection = connection.serialize()
    return _zipped({"collection.anki2": collection, "media": b"{}"})


def _number(name: str) -> int:
    """Return an id for Anki, which is the same at each export."""
    return int.from_bytes(sha256(name.encode()).digest()[:4], "big") // 2 + (1 << 30)


def _zipped(files: Mapping[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return buffer.getvalue()
