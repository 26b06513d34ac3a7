import pytest

from mini_impls.compare.match import align, count_reordered, excuses
from readerkit.content.mirrors import BoundFormula, Difference
from tests.events import event, row


def excuse(what, op="all_reduce", phase="backward", at_most="1"):
    known = Difference(what, BoundFormula(at_most), "a reason", phase, op)
    return excuses([("a-mirror", known)], {"world": 2})


def pairs(matches):
    return [(m.mini, m.upstream) for m in matches]


def states(matches):
    return [m.state for m in matches]


def test_equal_events_match_in_order():
    matches = align(row(8, 4, 8), row(8, 4, 8))
    assert pairs(matches) == [(0, 0), (1, 1), (2, 2)]
    assert states(matches) == ["matched"] * 3
    assert count_reordered(matches) == 0


@pytest.mark.parametrize(
    ("mini", "upstream", "alone"),
    [
        pytest.param(row(8, 4), row(8), (1, None), id="mini has one more"),
        pytest.param(row(8), row(8, 4), (None, 1), id="upstream has one more"),
        pytest.param(row(8), [], (0, None), id="upstream has none"),
    ],
)
def test_an_event_of_one_side_alone_is_flagged(mini, upstream, alone):
    (match,) = [m for m in align(mini, upstream) if m.state != "matched"]
    assert (match.mini, match.upstream) == alone
    assert match.state == "flagged"


def test_a_reason_excuses_its_own_side_and_operation_only():
    assert states(align(row(8), [], excuse("only-mini"))) == ["explained"]
    assert states(align([], row(8), excuse("only-mini"))) == ["flagged"]
    other = row(8, op="broadcast")
    assert states(align(other, [], excuse("only-mini"))) == ["flagged"]
    early = row(8, phase="forward")
    assert states(align(early, [], excuse("only-mini"))) == ["flagged"]


def test_a_reason_excuses_only_as_often_as_it_says():
    three = row(8, 8, 8)
    matches = align(three, [], excuse("only-mini", at_most="2"))
    assert states(matches) == ["explained", "explained", "flagged"]
    assert "more often than mirror a-mirror allows" in matches[2].apart
    assert [m.mirror for m in matches] == ["a-mirror", "a-mirror", ""]
    assert (
        states(align(three, [], excuse("only-mini", at_most="world + 1")))
        == ["explained"] * 3
    )


def test_what_differs_is_named():
    (match,) = align(row(8), row(16))
    assert (match.state, match.apart) == ("flagged", "payload_bytes 8 and 16")
    (match,) = align(row(8), row(16), excuse("payload"))
    assert (match.state, match.apart, match.why, match.mirror) == (
        "explained",
        "payload_bytes 8 and 16",
        "a reason",
        "a-mirror",
    )


def test_near_events_are_two_where_a_mirror_knows_each_on_its_own():
    known = [*excuse("only-mini"), *excuse("only-upstream")]
    matches = align(row(8), row(16), known)
    assert sorted(pairs(matches), key=str) == [(0, None), (None, 0)]
    assert states(matches) == ["explained"] * 2


@pytest.mark.parametrize(
    "changes",
    [{"dtype": "bfloat16"}, {"peer": 1}, {"reduction": "avg"}, {"payload_bytes": 4}],
)
def test_no_difference_passes_for_equal(changes):
    (match,) = align([event(**changes)], [event()])
    assert match.state == "flagged"


@pytest.mark.parametrize("changes", [{"phase": "forward"}, {"group": "tp"}])
def test_another_phase_or_group_is_another_event(changes):
    assert states(align([event(**changes)], [event()])) == ["flagged"] * 2


def test_a_later_wait_is_flagged_unless_it_is_that_side_that_may_wait():
    late = [event(issue=0, wait=3), event(issue=1, wait=2)]
    soon = row(8, 8)
    flagged, explained = ["flagged", "matched"], ["explained", "matched"]
    assert states(align(late, soon)) == flagged
    assert states(align(late, soon, excuse("payload"))) == flagged
    assert states(align(late, soon, excuse("upstream-waits-longer"))) == flagged
    assert states(align(late, soon, excuse("mini-waits-longer"))) == explained
    assert states(align(soon, late, excuse("upstream-waits-longer"))) == explained


def test_a_wait_in_cpp_is_not_compared():
    assert states(align(row(8), [event(wait=None, products_hidden=None)])) == [
        "matched"
    ]


def test_calls_in_another_order_are_matched_and_counted():
    matches = align(row(1, 2, 3), row(2, 3, 1))
    assert sorted(pairs(matches)) == [(0, 2), (1, 0), (2, 1)]
    assert count_reordered(matches) == 1


def test_messages_meet_within_their_direction():
    send, recv = event(op="send", peer=1), event(op="recv", peer=1)
    matches = align([send, send, recv], [recv, send, send])
    assert set(pairs(matches)) == {(0, 1), (1, 2), (2, 0)}
    assert set(states(matches)) == {"matched"}
    assert count_reordered(matches) == 1


def test_every_event_appears_once():
    mini, upstream = row(1, 9, 2, 2, 7), row(2, 1, 9, 5)
    matches = align(mini, upstream)
    assert sorted(m.mini for m in matches if m.mini is not None) == list(range(5))
    assert sorted(m.upstream for m in matches if m.upstream is not None) == [0, 1, 2, 3]
