"""What a record comes to: its kind, counts and reasons, in two languages."""

import pytest
from msgspec.structs import replace

from readerkit.app.interface_translation import say_in
from readerkit.errors import ReaderkitError
from readerkit.evidence.conclusion import Conclusion, say_conclusion
from readerkit.evidence.record import (
    PARAMETERS,
    EventMatch,
    RankEvents,
    Verdict,
    distance_line,
)
from tests.content.test_annotations import library
from tests.content.test_records import EACH, RECORDS, read
from tests.events import event

SAME = EventMatch(0, 0, "matched")
LONGER = EventMatch(1, 1, "explained", "mini-waits-longer", "later", "why", "ddp")
LATER = replace(LONGER, what="upstream-waits-longer")
PAYLOAD = replace(LONGER, what="payload")
ALONE = EventMatch(2, None, "explained", "only-mini", "alone", "why", "ddp")
FLAGGED = EventMatch(3, 3, "flagged", "payload", "other")
WRONG = Verdict("loss", None, 1, 2, 1, 0, "explained", "why", "ddp", "values", "note")
MEMORY = replace(WRONG, allowed="memory", note="")
DIFFERS = Verdict("loss", None, 1, 2, 1, 0, "differ", "equal")


def of(*matches, lines=(), unseen=0):
    """Return what a record of two ranks with these events comes to."""
    seen = (event(),) * 4
    theirs = (event(wait=None),) * unseen + seen
    ranks = [RankEvents(rank, seen, theirs, matches, None, ()) for rank in range(2)]
    record = read(RECORDS / "ddp_torch.json")
    losses = {"mini": ((), (1.0, 0.5)), "upstream": ((), (1.0, 0.75))}
    verdicts = (*record.verdicts, *lines)
    return Conclusion.of(
        replace(
            record, events=tuple(ranks), verdicts=verdicts, losses=losses, clocks=()
        )
    )


@pytest.mark.parametrize(
    ("found", "kind", "english", "spanish"),
    [
        (
            of(SAME, replace(SAME, mini=1, upstream=1), unseen=1),
            "identical",
            ["4 of 4 events identical (2 with waits unseen)."],
            ["4 de 4 eventos idénticos (2 con esperas no observadas)."],
        ),
        (
            of(SAME, lines=[MEMORY]),
            "identical",
            ["2 of 2 events identical."],
            ["2 de 2 eventos idénticos."],
        ),
        (
            of(SAME, SAME, LONGER, ALONE),
            "explained",
            [
                "4 of 8 events identical, 4 explained: 2 waited for longer by the "
                "mini, 2 in the mini alone."
            ],
            [
                "4 de 8 eventos idénticos, 4 con razón conocida: 2 con espera más "
                "larga en el mini, 2 solo en el mini."
            ],
        ),
        (
            of(SAME, LONGER, LATER),
            "explained",
            [
                "2 of 6 events identical, 4 explained: 2 waited for longer by the "
                "mini, 2 waited for longer upstream.",
                "Every call is on both sides with the same bytes; what differs is "
                "how long each is waited for.",
                "After 12 steps every parameter is equal.",
            ],
            None,
        ),
        (
            of(SAME, PAYLOAD, ALONE),
            "explained",
            [
                "2 of 6 events identical, 4 explained: 2 with another payload, "
                "2 in the mini alone.",
                "4 calls are on both sides, 2 on one alone.",
                "After 12 steps every parameter is equal.",
            ],
            None,
        ),
        (
            of(SAME, lines=[WRONG]),
            "trap",
            [
                "A trap: upstream's loss is wrong here. It ends at 0.75, that of the "
                "mini at 0.5.",
                "2 of 2 events identical.",
            ],
            [
                "Una trampa: aquí la pérdida del original está mal. Acaba en 0.75; "
                "la del mini, en 0.5.",
                "2 de 2 eventos idénticos.",
            ],
        ),
        (
            of(SAME, FLAGGED, lines=[WRONG, DIFFERS]),
            "unexplained",
            [
                "It differs without a reason (events: 2; other lines: 1).",
                "A trap: upstream's loss is wrong here. It ends at 0.75, that of the "
                "mini at 0.5.",
                "2 of 4 events identical, 2 without a reason: 2 with another payload.",
            ],
            None,
        ),
    ],
)
def test_a_record_says_what_happened(found, kind, english, spanish):
    assert found.kind == kind
    assert list(say_conclusion(found)) == english
    told = list(say_conclusion(found, say_in("es")))
    assert spanish is None or told == spanish
    assert not set(told) & set(english)


def test_every_reason_is_told_once_and_what_has_none_first():
    found = of(FLAGGED, LONGER, LATER, lines=[DIFFERS, MEMORY, MEMORY, WRONG])
    assert [(r.why, r.mirror, r.events, r.what) for r in found.reasons] == [
        ("other", "", 2, ""),
        ("1 / 2", "", 0, "loss"),
        ("why", "ddp", 4, ""),
        ("why", "ddp", 0, "loss"),
    ]
    assert found.trap and found.trap.note == "note"


@EACH
def test_a_record_mostly_apart_says_what_is_common_all_the_same(path):
    record = read(path)
    found = Conclusion.of(record)
    said = list(say_conclusion(found))
    states = [match.state for rank in record.events for match in rank.matches]
    both = [
        match
        for rank in record.events
        for match in rank.matches
        if match.mini is not None and match.upstream is not None
    ]
    assert found.is_mostly_apart == (2 * states.count("matched") < len(states))
    if found.is_mostly_apart:
        if not found.trap:
            assert "parameter" in said.pop()
        assert said[-1].startswith(
            "No call is common"
            if not both
            else "Every call is on both sides"
            if len(both) == len(states)
            else f"{len(both)} calls are on both sides"
        )


def test_a_trap_is_where_the_losses_of_both_sides_part_and_only_there():
    for path in RECORDS.glob("*.json"):
        record = read(path)
        found = Conclusion.of(record)
        ours, theirs = (
            next(filter(None, record.losses[side]), ())  # none where nothing trains
            for side in ("mini", "upstream")
        )
        parted = any(not abs(a - b) <= 1e-3 for a, b in zip(ours, theirs, strict=True))
        assert (found.kind == "trap") == parted, path.stem
        assert bool(found.trap) == parted
        if found.trap:  # what a reader must know stands in a note of its own
            noted = library().book.annotations[found.trap.note]
            assert noted.kind == "pitfall"


def test_a_record_that_says_no_distance_is_refused_and_not_taken_for_equal():
    record = read(RECORDS / "ddp_torch.json")
    end = distance_line(PARAMETERS[-1])
    [line] = [each for each in record.verdicts if each.what == end]
    assert Conclusion.of(record).apart == line.difference
    others = tuple(each for each in record.verdicts if each.what != end)
    with pytest.raises(ReaderkitError, match="readerkit compare ddp --upstream torch"):
        Conclusion.of(replace(record, verdicts=others))
