"""A grid on a narrow terminal."""

from readerkit.wording.grid_blocks import in_blocks

GRID = "rank 0 | F0 F1 B0 B1\nrank 1 | .  F0 B0 ."


def test_a_grid_that_fits_stays_as_it_is():
    assert in_blocks(GRID, 20) == GRID


def test_a_wider_one_is_cut_between_its_columns():
    first, second = in_blocks(GRID, 16).split("\n\n")
    assert first == "rank 0 | F0 F1\nrank 1 | .  F0"
    assert second == "rank 0 | B0 B1\nrank 1 | B0 ."
