"""Drawings: what is in them is where the numbers say, and is also said in words."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET

import pytest

from readerkit.render.html.charts import (
    Cell,
    MemoryStack,
    gantt,
    loss_chart,
    memory_chart,
    stack_chart,
)

SVG = "{http://www.w3.org/2000/svg}"


def parsed(markup):
    markup = str(markup)  # which would escape what replace is given
    return ET.fromstring(
        markup.replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" ')
    )


def boxes(svg, kind):
    found = svg.iter(f"{SVG}rect")
    return [box for box in found if box.get("class").split()[0] == kind]


def test_losses_fall_on_the_page_as_they_fall_in_the_record():
    svg = parsed(
        loss_chart("l", {"mini": [4.0, 3.0, 2.5], "upstream": [4.0, 3.1, 2.5]})
    )
    lines = [line.get("points").split() for line in svg.iter(f"{SVG}polyline")]
    heights = [[float(point.split(",")[1]) for point in line] for line in lines]
    assert heights[0] == sorted(heights[0])
    assert heights[0][0] == heights[1][0]
    assert heights[0][1] > heights[1][1]
    assert "mini from 4 to 2.5" in svg.find(f"{SVG}desc").text


def test_equal_losses_make_a_line_and_no_error():
    assert parsed(loss_chart("l", {"mini": [1.0], "upstream": [1.0]})) is not None


def test_bars_are_as_long_as_their_bytes():
    svg = parsed(memory_chart("m", [("p", "mini", 1000), ("p", "upstream", 500)]))
    longer, shorter = (float(box.get("width")) for box in boxes(svg, "key"))
    assert longer == 2 * shorter
    assert "p, upstream: 500 B" in svg.find(f"{SVG}desc").text


def test_a_gantt_chart_puts_each_step_in_its_row_and_time():
    cells = [
        Cell(0, 0, 1, "F0", "F"),
        Cell(1, 1, 2, "F0", "F"),
        Cell(1, 2, 4, "B0", "B"),
    ]
    svg = parsed(gantt("g", "a schedule", ["rank 0", "rank 1"], cells))
    first, second, third = boxes(svg, "work")
    assert float(first.get("y")) < float(second.get("y")) == float(third.get("y"))
    ends = float(first.get("x")) + float(first.get("width"))
    assert abs(ends - float(second.get("x"))) < 1
    assert re.search(r"rank 1: F0 B0", svg.find(f"{SVG}desc").text)


def test_a_hostile_label_is_only_text():
    chart = gantt("g", "<script>", ["</svg><script>"], [Cell(0, 0, 9, "<b>", "F")])
    assert "<script>" not in chart
    assert parsed(chart) is not None


def test_stacks_are_as_long_as_what_they_hold_and_the_limit_cuts_them():
    stacks = [
        MemoryStack("a", (("weights", 30e9), ("gradients", 60e9))),
        MemoryStack("b", (("weights", 30e9),)),
    ]
    svg = parsed(stack_chart("m", "Held", stacks, 45e9))
    first, second, third = (
        (float(box.get("x")), float(box.get("width"))) for box in boxes(svg, "part")[:3]
    )
    assert second[1] == pytest.approx(2 * first[1], rel=0.01)
    assert third == first
    limit = next(line for line in svg.iter(f"{SVG}line"))
    middle = first[0] + (second[0] + second[1] - first[0]) / 2
    assert float(limit.get("x1")) == pytest.approx(middle, abs=1)
    said = svg.find(f"{SVG}desc").text
    assert "a: 90 GB, of it weights 30 GB, gradients 60 GB" in said
