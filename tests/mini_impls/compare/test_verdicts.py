import math

import pytest

from mini_impls.compare.judge import AllowedDifference, line
from mini_impls.compare.rank_worker import largest
from mini_impls.compare.wire import gloo_bytes, ring_bytes
from tests.events import event


@pytest.mark.parametrize(
    ("op", "world_size", "sent"),
    [
        ("all_reduce", 2, 1200),
        ("all_reduce", 4, 1800),
        ("all_gather", 4, 900),
        ("reduce_scatter", 4, 900),
        ("send", 4, 1200),
        ("recv", 4, 0),
    ],
)
def test_a_ring_sends_its_share(op, world_size, sent):
    assert ring_bytes(event(op=op, payload_bytes=1200), 0, world_size) == sent


@pytest.mark.parametrize("root", [0, 1, 3])
def test_a_tree_delivers_to_everyone_else(root):
    call = event(op="broadcast", payload_bytes=10, peer=root)
    sent = [gloo_bytes(call, rank, 4) for rank in range(4)]
    assert sum(sent) == 30
    assert sent[root] == 20


def test_gloo_reduce_scatter_is_an_all_reduce_inside():
    call = event(op="reduce_scatter", payload_bytes=1200)
    assert gloo_bytes(call, 0, 4) == 2 * ring_bytes(call, 0, 4)


@pytest.mark.parametrize("root", [0, 2])
def test_gloo_reduces_in_a_ring_and_gathers_the_chunks_at_the_root(root):
    call = event(op="reduce", payload_bytes=1200, peer=root)
    sent = [gloo_bytes(call, rank, 4) for rank in range(4)]
    assert sent[root] == 900
    assert sorted(sent) == [900, 1200, 1200, 1200]


@pytest.mark.parametrize("values", [[0.0, math.nan], [math.nan, 0.0]])
def test_what_is_no_number_is_never_passed_over(values):
    assert math.isnan(largest(values))
    assert largest([0.0, 2.0, 1.0]) == 2.0
    assert largest([]) == 0.0


@pytest.mark.parametrize(
    ("difference", "excuse", "state"),
    [
        (0.0, AllowedDifference(), "agree"),
        (0.5, AllowedDifference(), "agree"),
        (0.6, AllowedDifference(), "differ"),
        (0.6, AllowedDifference("a reason", "a-mirror", 0.6), "explained"),
        (0.7, AllowedDifference("a reason", "a-mirror", 0.6), "differ"),
        (float("nan"), AllowedDifference("a reason", "a-mirror", 9.0), "differ"),
        (float("inf"), AllowedDifference("a reason", "a-mirror", 9.0), "differ"),
        (
            float("nan"),
            AllowedDifference("a reason", "a-mirror", float("inf")),
            "explained",
        ),
        (float("nan"), AllowedDifference("", "", float("inf")), "differ"),
    ],
)
def test_a_line_differs_unless_a_reason_covers_it(difference, excuse, state):
    made = line("it", 0, 1, 2, 0.5, "why", difference=difference, excuse=excuse)
    assert made.state == state
    assert made.mirror == ("a-mirror" if state == "explained" else "")
