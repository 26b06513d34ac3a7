"""Model states against the tables of the ZeRO paper and Megatron's documentation."""

import pytest

from readerkit.errors import EstimateError
from readerkit.estimate.states import (
    PRECISIONS,
    fsdp_unsharded_bytes,
    model_state_bytes,
    zero_bytes_per_param,
    zero_max_params,
)

# Rajbhandari et al. 1910.02054, table 1, in GB: parameters, ranks, stages 1, 2, 3.
TABLE_1 = [
    (7.5e9, 1, 120, 120, 120),
    (7.5e9, 4, 52.5, 41.3, 30),
    (7.5e9, 16, 35.6, 21.6, 7.5),
    (7.5e9, 64, 31.4, 16.6, 1.88),
    (7.5e9, 256, 30.4, 15.4, 0.47),
    (7.5e9, 1024, 30.1, 15.1, 0.12),
    (128e9, 1, 2048, 2048, 2048),
    (128e9, 4, 896, 704, 512),
    (128e9, 16, 608, 368, 128),
    (128e9, 64, 536, 284, 32),
    (128e9, 256, 518, 263, 8),
    (128e9, 1024, 513, 257, 2),
    (1e12, 1, 16000, 16000, 16000),
    (1e12, 4, 7000, 5500, 4000),
    (1e12, 16, 4750, 2875, 1000),
    (1e12, 64, 4187, 2218, 250),
    (1e12, 256, 4046, 2054, 62.5),
    (1e12, 1024, 4011, 2013, 15.6),
]
# Table 2, 32 GB, one rank in each model-parallel group: billions of parameters.
TABLE_2 = [(0, 2), (1, 7.6), (2, 14.4), (3, 128)]
# Megatron-LM's dist_optimizer.md: bytes per parameter with the optimizer over d ranks.
MEGATRON = [
    ("mixed-20", lambda d: 4 + 16 / d),
    ("mixed-18", lambda d: 6 + 12 / d),
    ("fp32-16", lambda d: 8 + 8 / d),
]


@pytest.mark.parametrize("row", TABLE_1, ids=str)
def test_zero_table_1(row):
    params, ranks, *expected = row
    for stage, gigabytes in enumerate(expected, start=1):
        held = model_state_bytes(params=params, stage=stage, world_size=ranks) / 1e9
        # The paper rounds some figures (41.25 to 41.3), cuts others (2218.75 to 2218).
        digits = len(str(gigabytes).partition(".")[2])
        assert abs(held - gigabytes) < 10**-digits, (stage, held)


def test_zero_figure_1():
    each = [
        round(model_state_bytes(params=7.5e9, stage=stage, world_size=64) / 1e9, 1)
        for stage in range(4)
    ]
    assert each == [120, 31.4, 16.6, 1.9]


@pytest.mark.parametrize(("stage", "billions"), TABLE_2)
def test_zero_table_2(stage, billions):
    fits = zero_max_params(memory_bytes=32e9, stage=stage, world_size=64) / 1e9
    assert round(fits, 1) == billions


@pytest.mark.parametrize("ranks", [1, 2, 8, 64])
@pytest.mark.parametrize(("convention", "formula"), MEGATRON)
def test_megatron_distributed_optimizer(convention, formula, ranks):
    held = zero_bytes_per_param(stage=1, world_size=ranks, convention=convention)
    assert held == formula(ranks)


@pytest.mark.parametrize("name", PRECISIONS)
def test_a_convention_is_named_after_its_bytes(name):
    assert PRECISIONS[name].total == int(name.rpartition("-")[2])


def test_seeds_that_disagree_are_each_a_convention():
    states = {
        name: model_state_bytes(params=70e9, convention=name) for name in PRECISIONS
    }
    assert states["mixed-12"] == 840e9
    assert states["mixed-16"] == 1120e9
    # Fully mixed precision is no half of fp32: both are 16 bytes.
    assert model_state_bytes(params=7e9, convention="fp32-16") == 112e9
    assert model_state_bytes(params=7e9, convention="mixed-16") == 112e9
    # 70B over tp 8 with 8-way optimizer sharding against none.
    assert model_state_bytes(params=70e9 / 8) == 140e9
    sharded = model_state_bytes(params=70e9 / 8, stage=1, world_size=64)
    assert round(sharded / 1e9, 1) == 36.6


def test_whole_shards_stay_whole_numbers():
    held = model_state_bytes(params=6_738_415_616, stage=1, world_size=64)
    assert held == 4 * 6_738_415_616 + 12 * 6_738_415_616 // 64
    assert isinstance(held, int)


def test_stage_3_holds_two_units_in_flight():
    assert fsdp_unsharded_bytes(unit_params=202_383_360) == 2 * 2 * 202_383_360


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"stage": 4}, "unknown ZeRO stage: got '4', expected one of 0, 1, 2, 3"),
        ({"world_size": 0}, "world_size: got 0, expected at least 1"),
        ({"params": -1}, "params: got -1, expected more than zero"),
        ({"params": float("nan")}, "params: got nan"),
        ({"params": float("inf")}, "params: got inf"),
        ({"convention": "mixed"}, "unknown precision: got 'mixed', .*mixed-1"),
    ],
)
def test_states_that_cannot_be_are_named(change, message):
    with pytest.raises(EstimateError, match=message):
        model_state_bytes(**{"params": 1e9, "stage": 1, "world_size": 2} | change)
