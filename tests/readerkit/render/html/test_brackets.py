"""Which lane the bracket of each note stands in."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from readerkit.render.html.file_page import bracketed, in_lanes


@dataclass(frozen=True)
class Lines:
    """Of a note, what a bracket needs."""

    first: int
    last: int
    id: str = "n"
    kind: str = "note"


@pytest.mark.parametrize(
    ("spans", "lanes"),
    [
        ([(1, 3), (4, 5)], [0, 0]),
        ([(1, 3), (3, 5)], [0, 1]),
        ([(2, 3), (1, 5)], [0, 1]),  # the outer one first
        ([(1, 9), (2, 3), (4, 6)], [0, 1, 1]),
        ([(1, 4), (2, 6), (5, 8)], [0, 1, 0]),
        ([(1, 2), (1, 2)], [0, 1]),
        ([], []),
    ],
)
def test_notes_that_share_lines_stand_in_lanes_of_their_own(spans, lanes):
    found = list(in_lanes(Lines(*span) for span in spans))
    assert [lane for _, lane in found] == lanes


def test_a_bracket_passes_every_line_of_its_note_and_has_two_ends():
    lines = [b"<div id=L%d>x</div>" % n for n in range(1, 5)]
    marked = bracketed(lines, [Lines(2, 4)])
    assert marked[0] == lines[0]
    assert [b'data-of="n"' in line for line in marked] == [False, True, True, True]
    assert [b" begins" in line for line in marked] == [False, True, False, False]
    assert [b" ends" in line for line in marked] == [False, False, False, True]
