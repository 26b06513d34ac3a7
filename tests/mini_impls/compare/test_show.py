"""What compare prints: the verdict first and last, each thing once, in 80 columns."""

import dataclasses
import re

import pytest
from msgspec.structs import replace
from test_records import END, RECORD

from mini_impls.compare.command import report
from mini_impls.compare.show import render
from readerkit.app.interface_translation import say_in, say_of_records
from readerkit.evidence.conclusion import Conclusion, say_conclusion
from readerkit.evidence.record import EventMatch, Record, Verdict
from tests.content.test_annotations import library
from tests.content.test_records import PATHS
from tests.events import event
from tests.quick import quick_third

pytestmark = pytest.mark.sampled


def test_the_verdict_comes_first_and_last():
    lines = render(RECORD).splitlines()
    verdict = lines.index("--- verdict ---")
    assert verdict < 6
    said = "ddp beside torch = 1 of 1 events identical."
    assert lines[verdict + 1] == lines[-1] == said


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_the_verdict_and_every_reason_are_said_as_on_the_site(path):
    record = Record.parse(path.read_text("utf-8"), path.name)
    text = " ".join(render(record).split())
    found = Conclusion.of(record)
    first_and_last = [*say_conclusion(found)]
    if found.trap:
        first_and_last += [found.trap.why, f"readerkit annotate {found.trap.note}"]
    for said in first_and_last:
        assert text.count(" ".join(said.split())) == 2, said
    for reason in found.reasons:
        assert " ".join(f": {reason.why} (mirror {reason.mirror})".split()) in text


def test_a_table_of_several_ranks_says_how_many_events_each_has():
    assert f"--- step {RECORD.traced_step} on rank 0, events: 1 ---" in render(RECORD)
    path = next(path for path in PATHS if path.stem == "ddp_torch")
    record = Record.parse(path.read_text("utf-8"), path.name)
    [(ranks, on_each)] = re.findall(
        r"on ranks (.+), events of each: (\d+)", render(record)
    )
    assert len(record.events) * int(on_each) == Conclusion.of(record).events, ranks


def test_the_verdict_speaks_spanish():
    record = next(path for path in PATHS if "batched" in path.stem)
    text = render(Record.parse(record.read_text("utf-8"), "r"), say=say_in("es"))
    said = "Una trampa: aquí la pérdida del original está mal."
    assert " ".join(text.split()).count(said) == 2
    assert "- 22 eventos: " in text


@pytest.mark.parametrize(
    ("states", "told"),
    [
        (("agree", "explained", "differ"), "1 coincide, 1 difiere, 1 difiere"),
        (("agree",) * 24, "24 coinciden, 0 difieren, 0 difieren"),
        (("explained", "differ") * 2, "0 coinciden, 2 difieren, 2 difieren"),
    ],
)
def test_a_verb_is_in_the_number_of_its_quantities(states, told):
    lines = tuple(
        replace(RECORD.verdicts[0], what=f"{number}" if number else END, state=state)
        for number, state in enumerate(states)
    )
    text = render(replace(RECORD, verdicts=lines), say=say_in("es"))
    counts = " ".join(text.split()).replace(" por una razón conocida", "")
    assert f": {told}" in counts


@pytest.mark.parametrize("path", quick_third(PATHS), ids=lambda path: path.stem)
def test_headings_and_quantities_speak_spanish_too(path):
    record = Record.parse(path.read_text("utf-8"), path.name)
    english = render(record).splitlines()
    spanish = render(record, say=say_of_records("es")).splitlines()
    headings = [
        {r for r in each if r.startswith("--- ")} for each in (english, spanish)
    ]
    assert {*headings[0]} & {*headings[1]} <= {"--- pipeline ---"}
    told = {each.what for each in record.verdicts} - {"bubble"}
    assert not [what for what in told if what == say_of_records("es")(what)]


@pytest.mark.parametrize("name", ["zero_fully_shard_stage2", "interleaved_freed"])
def test_what_mirrors_say_of_a_record_is_in_spanish_or_marked(name):
    path = next(path for path in PATHS if path.stem.endswith(name))
    record = Record.parse(path.read_text("utf-8"), path.name)
    found, book = Conclusion.of(record), library().book
    shown = " ".join(report(record, book, "es").split())
    english = " ".join(report(record, book, "en").split())
    bare = " ".join(
        report(record, dataclasses.replace(book, mirror_translations={}), "es").split()
    )
    told = [(each.mirror, each.why) for each in found.reasons]
    for mirror, why in [
        *told,
        *([(found.trap.mirror, found.trap.why)] if found.trap else []),
    ]:
        other, own = book.reason_in(mirror, why, "es"), " ".join(why.split())
        assert " ".join(other.split()) in shown and own not in shown
        assert own in english and f"[en] {own}" in bare
    assert told or found.trap
    assert "[en] " not in shown
    if found.has_calls_alone:
        assert "Stage 2: el gradiente se va, y su memoria con él (" in shown
        assert "[en] Stage 2: the gradient goes" in bare
    assert ("Vea readerkit annotate" in shown) == (found.trap is not None)


def test_a_quantity_of_several_ranks_counts_once():
    each = [replace(RECORD.verdicts[0], what="bytes", rank=rank) for rank in range(4)]
    text = render(replace(RECORD, verdicts=(*RECORD.verdicts, *each)))
    said = "2 quantities: 2 agree, 0 differ for a known reason, 0 differ"
    assert said in text
    apart = replace(each[3], state="differ", difference=2)
    text = render(replace(RECORD, verdicts=(*RECORD.verdicts, *each[:3], apart)))
    assert "1 agrees, 0 differ for a known reason, 1 differs" in " ".join(text.split())
    assert "rank 3: bytes" in text


def test_a_difference_stands_out_with_its_numbers():
    worse = replace(RECORD.verdicts[0], state="differ", difference=float("nan"))
    text = render(replace(RECORD, verdicts=(worse,)))
    assert "ddp beside torch ! It differs without a reason" in text
    [row] = [line for line in text.splitlines() if line.startswith("! ")]
    assert "nan" in row


def test_an_event_shows_its_line_and_a_flag_its_reason():
    rank = replace(
        RECORD.events[0],
        upstream=(event(wait=None),),
        matches=(EventMatch(0, None, "flagged", "only-mini", "only mini has this"),),
    )
    text = render(replace(RECORD, events=(rank,)))
    assert "mini_impls/ddp.py:100" in text
    assert "! only mini has this (1 event)" in text
    assert "- 1 event, without a reason: only mini has this" in text


def test_marks_and_columns_are_explained_where_they_are_used():
    text = render(RECORD)
    for mark in ("= agree", "~ differ for a known reason", "! differ without one"):
        assert mark in text
    head = next(line for line in text.splitlines() if "call site" in line)
    for column in ("at", "hides"):
        assert column in head.split()
        assert f"\n{column}: " in text
    assert "ready" not in head  # nobody counted here


def test_what_agrees_since_it_is_less_is_marked_apart():
    most = "most bytes alive in a step"
    less = Verdict(most, 0, 5.0, 7.0, 0.0, 0.0, "agree", "no more than upstream")
    text = render(replace(RECORD, verdicts=(*RECORD.verdicts, less)))
    [row] = [line for line in text.splitlines() if line.endswith(most)]
    assert row.split()[:3] == ["<", "5", "7"]
    assert "\n< no more than upstream\n" in text


def test_what_the_verdict_does_not_say_is_in_it():
    text = render(RECORD)
    assert "not seen: order (no clock)" in text
    assert "not in this work: dropout" in text


def test_a_pipeline_is_drawn():
    text = render(RECORD)
    assert "mini     rank 0 |F0" in text
    assert "more ranks than cores" not in text


@pytest.mark.parametrize("width", [40, 80])
@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_a_report_fits(path, width):
    record = Record.parse(path.read_text("utf-8"), path.name)
    wide = [line for line in render(record, width).splitlines() if len(line) > width]
    if width == 80:
        assert wide == []
    else:  # columns of numbers have their width; sentences fold
        assert all(len(line) <= 80 for line in wide)


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_no_two_files_look_alike_on_a_narrow_terminal(path):
    record = Record.parse(path.read_text("utf-8"), path.name)
    _, _, ran = render(record, 50).partition("--- lines that ran")
    _, *files = re.findall(r"^    (\S+)$", ran.split("\n\n")[0], re.MULTILINE)
    assert len({*files}) == len(record.lit) == len(files)
    assert all(
        each.path.endswith(file) for each, file in zip(record.lit, files, strict=True)
    )


def test_a_number_of_any_size_leaves_room_for_what_it_is():
    huge = Verdict("loss", None, 1e300, 1e300, 0.0, 0.0, "agree", "equal")
    assert "loss" in render(replace(RECORD, verdicts=(*RECORD.verdicts, huge)))
