import pytest
from events import event

from mini_impls.compare import judge


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
    assert judge.ring_bytes(event(op=op, payload_bytes=1200), 0, world_size) == sent


@pytest.mark.parametrize("root", [0, 1, 3])
def test_a_tree_delivers_to_everyone_else(root):
    call = event(op="broadcast", payload_bytes=10, peer=root)
    sent = [judge.gloo_bytes(call, rank, 4) for rank in range(4)]
    assert sum(sent) == 30
    assert sent[root] == 20


def test_gloo_reduce_scatter_is_an_all_reduce_inside():
    call = event(op="reduce_scatter", payload_bytes=1200)
    assert judge.gloo_bytes(call, 0, 4) == 2 * judge.ring_bytes(call, 0, 4)


@pytest.mark.parametrize(
    ("difference", "explained", "state"),
    [
        (0.0, "", "agree"),
        (0.5, "", "agree"),
        (0.6, "", "differ"),
        (0.6, "a reason", "explained"),
        (float("nan"), "", "differ"),
        (float("inf"), "", "differ"),
    ],
)
def test_a_line_agrees_within_its_tolerance_only(difference, explained, state):
    made = judge.line(
        "it", 0, 1, 2, 0.5, "why", difference=difference, explained=explained
    )
    assert made.state == state
