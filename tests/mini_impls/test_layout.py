"""A layout: groups from one counter, those of Megatron's example and torch's mesh."""

import itertools

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from mini_impls.layout import (
    RankLayout,
    digits_of,
    expert_layout,
    new_groups,
    rank_of,
)

NAMES = ("tp", "cp", "ep", "dp", "pp")
LAYOUTS = st.builds(
    lambda order, sizes: RankLayout.parse(
        "-".join(order), **dict(zip(NAMES, sizes, strict=True))
    ),
    st.permutations(NAMES),
    st.tuples(*[st.integers(1, 3)] * 5),
)


def test_the_groups_of_megatrons_own_example():
    """16 GPUs, tp 2, pp 4: the groups in the docstring of its `parallel_state`."""
    layout = RankLayout.parse("tp-cp-ep-dp-pp", tp=2, dp=2, pp=4)
    pairs = [[a, a + 1] for a in range(0, 16, 2)]
    assert layout.groups("tp") == pairs
    assert layout.groups("dp") == [
        [a, a + 2] for start in range(0, 16, 4) for a in (start, start + 1)
    ]
    assert layout.groups("pp") == [[a, a + 4, a + 8, a + 12] for a in range(4)]
    assert layout.groups("tp-pp") == [
        sorted(r for a in (b, b + 1) for r in range(a, 16, 4)) for b in (0, 2)
    ]


@settings(max_examples=60, deadline=None)
@given(LAYOUTS, st.sets(st.sampled_from(NAMES), min_size=1))
def test_groups_of_any_kind_are_those_of_a_mesh(layout, free):
    """Torch's device mesh is a tensor of ranks whose last name turns fastest."""
    sizes = list(layout.sizes.values())
    mesh = torch.arange(layout.world_size).view(sizes[::-1])
    names = list(layout.sizes)[::-1]
    held = [i for i, name in enumerate(names) if name not in free]
    moved = [i for i, name in enumerate(names) if name in free]
    rows = mesh.permute(*held, *moved).reshape(
        -1, max(1, torch.tensor([mesh.size(i) for i in moved]).prod())
    )
    assert layout.groups("-".join(free)) == sorted(rows.tolist())


@given(LAYOUTS)
@settings(max_examples=30, deadline=None)
def test_every_rank_is_in_one_group_of_each_kind_and_alone_in_all(layout):
    ranks = range(layout.world_size)
    for kind in layout.sizes:
        found = list(itertools.chain(*layout.groups(kind)))
        assert sorted(found) == list(ranks)
    assert len({tuple(layout.place(r).values()) for r in ranks}) == len(ranks)
    sizes = list(layout.sizes.values())
    assert [rank_of(digits_of(r, sizes), sizes) for r in ranks] == list(ranks)


def test_experts_share_the_stages_of_the_dense_layers():
    dense = RankLayout.parse("tp-cp-dp-pp", tp=2, cp=2, dp=2, pp=2)
    experts = expert_layout("tp-ep-dp-pp", 16, etp=1, ep=4, pp=2)
    assert experts.sizes == {"tp": 1, "ep": 4, "dp": 2, "pp": 2}
    assert dense.groups("pp") == experts.groups("pp")
    assert experts.groups("ep")[0] == [0, 1, 2, 3]


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: RankLayout.parse("tp-dp", pp=2), "pp 2 is not in the order tp-dp"),
        (lambda: RankLayout.parse("tp-tp", tp=2), "names a dimension twice"),
        (lambda: RankLayout.parse("tp-dp", tp=0), "tp 0 is below 1"),
        (lambda: RankLayout.parse("tp-dp").groups("cp"), "no dimension cp in tp-dp"),
        (lambda: RankLayout.parse("tp-dp").groups("tp-cp"), "no dimension cp in tp-dp"),
        (
            lambda: expert_layout("tp-ep-dp-pp", 8, etp=1, ep=3, pp=1),
            "8 ranks are not divisible by 3",
        ),
    ],
)
def test_what_does_not_fit_is_refused(make, said):
    with pytest.raises(ValueError, match=said):
        make()


def test_a_dimension_of_one_rank_needs_no_place_in_the_order():
    layout = RankLayout.parse("tp-dp", tp=2, dp=3, pp=1)
    assert layout.sizes == {"tp": 2, "dp": 3}
    assert layout.world_size == 6


def sums_along(rank):
    layout = RankLayout.parse("tp-dp-pp", tp=2, pp=2)
    groups = new_groups(layout, ["tp", "pp", "tp-pp"], rank.rank)
    found = {}
    for kind, group in groups.items():
        total = torch.tensor(float(2**rank.rank))
        torch.distributed.all_reduce(total, group=group)
        found[kind] = total.item()
    return found


def test_process_groups_add_up_their_ranks_alone(pool4):
    assert pool4.run(sums_along) == [
        {"tp": 3.0, "pp": 5.0, "tp-pp": 15.0},
        {"tp": 3.0, "pp": 10.0, "tp-pp": 15.0},
        {"tp": 12.0, "pp": 5.0, "tp-pp": 15.0},
        {"tp": 12.0, "pp": 10.0, "tp-pp": 15.0},
    ]
