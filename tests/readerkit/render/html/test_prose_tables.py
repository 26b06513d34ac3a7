"""A table in prose: a corner without words is no heading."""

from readerkit.render.html.markdown import prose


def test_an_empty_corner_is_no_heading():
    html = prose("| | a |\n|---|---|\n| b | 1 |\n")
    assert "<th></th>" not in html
    assert "<td></td>" in html and "<th>a</th>" in html
