"""A step on one scale: where calls and products stand, and what is hidden."""

import pytest

from readerkit.evidence.lanes import Lanes
from readerkit.evidence.record import RankEvents
from tests.content.test_records import EACH, RECORDS, read
from tests.events import event


def lanes(mini, upstream=()):
    return Lanes.of(RankEvents(0, tuple(mini), tuple(upstream), (), None, ()))


def call(issue, wait, before=0, hidden=0, **more):
    """Return a call issued after so many products, and awaited after some more."""
    more |= {"products_before": before, "products_hidden": hidden}
    return event(issue=issue, wait=wait, **more)


def flights(lane):
    return [(each.first, each.last, each.row) for each in lane.flights]


def test_each_issue_wait_and_product_has_a_column_of_its_own():
    found = lanes([call(0, 1, before=1), call(2, 3, before=1, hidden=2)])
    # product, issue, wait, issue, product, product, wait
    assert found.columns == 7
    assert flights(found.mini) == [(1, 2, 0), (3, 6, 0)]
    assert [(p.column, p.is_beside) for p in found.mini.products] == [
        (0, False),
        (4, True),
        (5, True),
    ]
    assert found.mini.beside == 2


def test_a_product_stands_in_one_column_on_both_sides():
    found = lanes([call(0, 1), call(2, 3)], [call(0, 1, before=0, hidden=1)])
    assert [p.column for p in found.upstream.products] == [4]
    assert flights(found.upstream) == [(0, 5, 0)]
    assert found.upstream.beside == 1 and found.mini.products == ()


def test_calls_that_are_under_way_at_once_lie_below_each_other():
    found = lanes([call(0, 3), call(1, 2), call(4, 5)])
    assert flights(found.mini) == [(0, 3, 0), (1, 2, 1), (4, 5, 0)]
    assert found.mini.rows == 2


def test_a_wait_that_nobody_saw_hides_nothing():
    found = lanes([event(issue=0, wait=None, products_before=0), call(1, 2, before=3)])
    assert flights(found.mini)[0] == (0, 0, 0)
    assert found.mini.beside == 0


def test_a_phase_lasts_until_a_call_of_another():
    steps = [call(0, 3), call(1, 2), call(4, 5, phase="optimizer")]
    assert [(p.name, p.first, p.last) for p in lanes(steps).mini.phases] == [
        ("backward", 0, 3),
        ("optimizer", 4, 5),
    ]
    assert lanes([]).columns == 0


@EACH
def test_what_is_drawn_is_what_the_record_counts(path):
    for rank in read(path).events:
        found = Lanes.of(rank)
        for side in ("mini", "upstream"):
            lane, events = getattr(found, side), getattr(rank, side)
            columns = [each.column for each in lane.products]
            for each in lane.flights:
                of = events[each.event]
                hidden = sum(each.first < at < each.last for at in columns)
                assert hidden == (of.products_hidden or 0)
                before = sum(at < each.first for at in columns)
                assert before == min(of.products_before, len(columns))
            assert all(each.last < found.columns for each in lane.flights)


@pytest.mark.parametrize(
    ("comparison", "beside"),
    [("ddp_megatron", (12, 12)), ("fsdp_fully_shard", (0, 22))],
)
def test_overlap_is_counted_on_both_sides(comparison, beside):
    found = Lanes.of(read(RECORDS / f"{comparison}.json").events[0])
    assert (found.upstream.beside, found.mini.beside) == beside
