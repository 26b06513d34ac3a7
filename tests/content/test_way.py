"""The reader's way through the shipped book: an order, and what is about the same."""

from __future__ import annotations

import pytest

from readerkit.app.library import open_library
from readerkit.content.concept_order import mirrors_in_turn, teaching_order
from readerkit.render.html.estimate_examples import SECTIONS


@pytest.fixture(scope="module")
def book():
    return open_library(None, quiet=True).book


def test_a_concept_comes_after_what_it_needs(book):
    order = [*teaching_order(book.concepts)]
    assert {*order} == {*book.concepts}
    for name, concept in book.concepts.items():
        assert all(order.index(need) < order.index(name) for need in concept.requires)


def test_side_by_side_pages_come_as_they_are_taught(book):
    order = [each.id for each in mirrors_in_turn(book.mirrors.values(), book.concepts)]
    assert order == [
        "collectives",
        "data-parallel",
        "gradient-compression",
        "zero",
        "matrix-optimizer",
        "fsdp",
        "fsdp-flat",
        "offload",
        "tensor-parallel",
        "sequence-parallel",
        "pipeline-schedules",
        "pipeline-executor",
        "zero-bubble",
        "recompute",
        "half-precision",
        "layout",
        "experts",
        "context-parallel",
        "sharded-checkpoint",
        "recovery",
        "inference",
    ]


def test_concepts_name_sections_of_the_estimates(book):
    named = {name for each in book.concepts.values() for name in each.estimates}
    assert named <= {*SECTIONS}
    assert {"memory", "traffic", "bubble", "ring", "runs", "plan"} <= named
