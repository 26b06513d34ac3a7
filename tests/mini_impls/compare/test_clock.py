"""A step by the clock: which wait is whose, which step is kept, what records have."""

from types import SimpleNamespace

import pytest
from msgspec.structs import replace

from mini_impls.compare import clock
from mini_impls.compare.clock import Clocked, fastest, told_apart
from readerkit.errors import ContentError
from readerkit.evidence.clock import StepClock, joined, length, within
from readerkit.evidence.lanes import Lanes
from readerkit.evidence.record import Record
from tests.content.test_records import EACH, read
from tests.events import event
from tests.mini_impls.compare.test_records import RECORD

CALLS = [event(issue=0, wait=3), event(issue=1, wait=2), event(issue=4, wait=None)]
CLOCK = StepClock(
    rank=0,
    side="mini",
    step_us=100,
    issues=((10, 12),),
    waits=((40, 50),),
    moving=((11, 45),),
    computing=((0, 10), (12, 40), (60, 90)),
    products=((20, 30),),
)


@pytest.mark.parametrize(
    ("waits", "known"),
    [
        ([(3, 4), (5, 6)], [(5, 6), (3, 4), None]),
        ([(3, 4)], [None, None, None]),  # whose?
        ([(3, 4), (5, 6), (8, 9)], [(5, 6), (3, 4), None]),
        ([(1.5, 1.6), (3, 4), (5, 6)], [(5, 6), (3, 4), None]),
    ],
)
def test_a_wait_is_whose_the_traced_step_says(waits, known):
    assert told_apart(CALLS, [1, 2, 7], waits) == known


def test_of_all_ranks_the_step_is_kept_whose_slowest_was_fastest():
    def ranks(*times):
        return [
            Clocked(
                None,
                {
                    "upstream": [None],
                    "mini": [each and replace(CLOCK, step_us=each) for each in rank],
                },
            )
            for rank in times
        ]

    kept = fastest(ranks([100, 300, None], [900, 310, 100]))
    assert [each.step_us for each in kept] == [300, 310]


def test_nobody_asks_for_the_clock_and_no_step_is_recorded(monkeypatch):
    def watch(*args):
        return SimpleNamespace(trace=None, asked=args[5])

    monkeypatch.setattr(clock, "watch", watch)
    alone = clock.watch_and_clock(None, "ddp", "torch", 6, None)
    assert not alone.seen.asked
    assert fastest([alone, alone]) == ()


def test_spans_are_joined_cut_and_measured():
    assert joined([(5, 6), (0, 2), (2, 3)]) == [(0, 3), (5, 6)]
    assert joined([(0, 2), (4, 5)], gap=2) == [(0, 5)]
    assert within([(0, 10)], [(3, 4), (8, 12)]) == [(3, 4), (8, 10)]
    assert length([(0, 4), (2, 6)]) == 6
    assert CLOCK.waiting == [(40, 50)] and length(CLOCK.hidden) == 28


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"waits": ()}, "1 issues, but 0 waits"),
        ({"issues": (), "waits": ()}, "1 events of rank 0"),
        ({"moving": ((50, 60), (1, 2))}, "not in order"),
        ({"products": ((90, 101),)}, "outside of the step's 100 us"),
        ({"issues": ((-1, 3),)}, "outside of the step's 100 us"),
    ],
)
def test_times_that_cannot_be_are_refused(changed, told):
    fields = {name: getattr(CLOCK, name) for name in CLOCK.__struct_fields__}
    with pytest.raises((ValueError, ContentError), match=told):
        Record.parse(
            replace(RECORD, clocks=(StepClock(**fields | changed),)).to_text(), "a"
        )


@EACH
def test_each_record_has_its_step_by_the_clock(path):
    record = read(path)
    each = {(clock.rank, clock.side): clock for clock in record.clocks}
    assert len(each) == 2 * record.world_size
    for rank in record.events:
        lanes = Lanes.of(rank)
        for side in ("mini", "upstream"):
            clock, events = each[rank.rank, side], getattr(rank, side)
            assert len(clock.products) >= len(getattr(lanes, side).products)
            pairs = list(zip(events, clock.issues, clock.waits, strict=True))
            assert all(wait is None for event, _, wait in pairs if event.wait is None)
            assert all(wait[0] >= issue[0] for _, issue, wait in pairs if wait)
            assert not clock.waiting or within(clock.waiting, [(0, clock.step_us)])
