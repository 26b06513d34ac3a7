"""How events stand, counted once for each pair, in words of both languages."""

import pytest
from msgspec.structs import replace

from readerkit.app.interface_words import say_in
from readerkit.evidence.record import EventMatch, RankEvents
from readerkit.evidence.tally import Tally, say_tally
from tests.events import event

SAME = EventMatch(0, 0, "matched")
LONGER = EventMatch(1, 1, "explained", "mini-waits-longer", "later", "why", "ddp")
ALONE = EventMatch(2, None, "explained", "only-mini", "alone", "why", "ddp")
FLAGGED = EventMatch(3, 3, "flagged", "payload", "other")


def ranks(*matches, unseen=0):
    seen = (event(),) * 4
    theirs = (event(wait=None),) * unseen + seen
    return [RankEvents(rank, seen, theirs, matches, None, ()) for rank in range(2)]


def test_identical_says_where_no_wait_was_seen():
    tally = Tally.of(ranks(SAME, replace(SAME, mini=1, upstream=1), unseen=1))
    assert "4 of 4 events identical (2 with waits unseen); " in say_tally(tally)
    assert "(2 con esperas no observadas)" in say_tally(tally, say_in("es"))


@pytest.mark.parametrize(
    ("matches", "english", "spanish"),
    [
        (
            [SAME, SAME],
            "4 of 4 events identical; 0 explained; 0 on one side only",
            "4 de 4 eventos idénticos; 0 explicados; 0 en un solo lado",
        ),
        (
            [SAME, LONGER, ALONE],
            "2 of 6 events identical; 2 explained: 2 waited for longer by the mini; "
            "2 on one side only (0 without a reason)",
            "2 de 6 eventos idénticos; 2 explicados: 2 el mini espera más; "
            "2 en un solo lado (0 sin razón)",
        ),
        (
            [FLAGGED, replace(ALONE, state="flagged")],
            "0 of 4 events identical; 0 explained; 2 on one side only "
            "(2 without a reason); 2 differ without a reason",
            "0 de 4 eventos idénticos; 0 explicados; 2 en un solo lado "
            "(2 sin razón); 2 difieren sin razón",
        ),
    ],
)
def test_every_event_is_in_one_count(matches, english, spanish):
    tally = Tally.of(ranks(*matches))
    assert tally.events == 2 * len(matches)
    assert say_tally(tally) == english
    assert say_tally(tally, say_in("es")) == spanish
