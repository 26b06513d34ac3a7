"""Bounds of known differences: small arithmetic, and nothing else."""

import math

import pytest

from readerkit.content.mirrors import MAX_LENGTH, BoundFormula

SIZES = {
    "world": 4,
    "rank": 1,
    "layers": 2,
    "microbatches": 6,
    "chunks": 3,
    "parameters": 29,
}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("3", 3),
        ("0.5", 0.5),
        ("2 * (world - 1)", 6),
        ("chunks * microbatches - 1", 17),
        ("5 * world // 2 - 1", 9),
        ("min(world, layers) + max(rank, 7)", 9),
        ("parameters", 29),
    ],
)
def test_a_bound_is_computed_from_the_sizes_of_a_run(text, value):
    assert BoundFormula.parse(text).evaluate(SIZES) == value


def test_values_out_of_foreign_memory_may_be_anything():
    assert BoundFormula.parse("anything").evaluate({}) == math.inf
    with pytest.raises(ValueError):
        BoundFormula.parse("anything + 1")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "ranks",
        "world ** 99",
        "True",
        "'a'",
        "world < rank",
        "__import__('os')",
        "world.real",
        "min(1)",
        "min(*[1, 2])",
        "max(1, 2, key=abs)",
        "1; 2",
        "lambda: 1",
        "(" * 79,
        "1 // (world - world)",
        "1" * (MAX_LENGTH + 1),
        "1\0",
    ],
)
def test_anything_else_is_refused(text):
    with pytest.raises(ValueError):
        BoundFormula.parse(text)
