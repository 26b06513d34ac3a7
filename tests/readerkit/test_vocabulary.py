"""Each list of words stands in one place: what is made for each word has them all."""

from __future__ import annotations

from mini_impls.compare.ops import OPS
from readerkit.content.vocabulary import OPERATIONS
from readerkit.render.html.timeline import SHORT


def test_every_operation_has_a_short_name_of_its_own():
    assert SHORT.keys() == {*OPERATIONS}
    assert len({*SHORT.values()}) == len(SHORT)


def test_what_a_library_calls_its_collectives_becomes_a_known_operation():
    assert {*OPS.values()} <= {*OPERATIONS}
