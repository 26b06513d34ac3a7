"""Each list of words stands in one place: what is made for each word has them all."""

from __future__ import annotations

from typing import get_args

from mini_impls.compare.ops import OPS
from readerkit.anchors.drift.verdict import SpanStatus
from readerkit.content.vocabulary import DRIFT_STATUSES, OPERATIONS
from readerkit.render.html.drift_page import TITLES
from readerkit.render.html.event_strip import SHORT


def test_every_operation_has_a_short_name_of_its_own():
    assert SHORT.keys() == {*OPERATIONS}
    assert len({*SHORT.values()}) == len(SHORT)


def test_what_a_library_calls_its_collectives_becomes_a_known_operation():
    assert {*OPS.values()} <= {*OPERATIONS}


def test_what_became_of_a_note_is_what_is_said_of_a_span_or_that_it_was_split():
    assert {*DRIFT_STATUSES} == {*get_args(SpanStatus), "split"}
    assert {*DRIFT_STATUSES} == {*TITLES, "same"}
