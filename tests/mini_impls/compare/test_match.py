import pytest
from events import event, row

from mini_impls.compare.match import Explanation, align, count_reordered


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


def test_an_explanation_excuses_its_own_side_and_operation_only():
    known = [Explanation("a reason", side="mini", op="all_reduce")]
    assert states(align(row(8), [], known)) == ["explained"]
    assert states(align([], row(8), known)) == ["flagged"]
    assert states(align(row(8, op="broadcast"), [], known)) == ["flagged"]


def test_what_differs_is_named():
    (match,) = align(row(8), row(16))
    assert (match.state, match.why) == ("flagged", "payload_bytes 8 and 16")
    (match,) = align(row(8), row(16), [Explanation("another bucket")])
    assert (match.state, match.why) == (
        "explained",
        "payload_bytes 8 and 16: another bucket",
    )


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


def test_a_later_wait_is_flagged_unless_waits_are_explained():
    late = [event(issue=0, wait=3), event(issue=1, wait=2)]
    soon = row(8, 8)
    assert states(align(late, soon)) == ["flagged", "matched"]
    about_bytes = [Explanation("of bytes")]
    assert states(align(late, soon, about_bytes)) == ["flagged", "matched"]
    about_waits = [Explanation("of waits", waits=True)]
    assert states(align(late, soon, about_waits)) == ["explained", "matched"]


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
