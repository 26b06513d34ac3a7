"""Drawings: what is in them is where the numbers say, and is also said in words."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from functools import partial

import pytest

from readerkit.app.interface_translation import read_words
from readerkit.render.html.charts import (
    Cell,
    MemoryStack,
    gantt,
    loss_chart,
    memory_chart,
    phrase_of,
    stack_chart,
)
from readerkit.render.html.words import Words

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
    svg = parsed(gantt("g", lambda say: "a schedule", ["rank 0", "rank 1"], cells))
    first, second, third = boxes(svg, "work")
    assert float(first.get("y")) < float(second.get("y")) == float(third.get("y"))
    ends = float(first.get("x")) + float(first.get("width"))
    assert abs(ends - float(second.get("x"))) < 1
    assert re.search(r"rank 1: F0 B0", svg.find(f"{SVG}desc").text)


def test_a_hostile_label_is_only_text():
    chart = gantt(
        "g", lambda say: "<script>", ["</svg><script>"], [Cell(0, 0, 9, "<b>", "F")]
    )
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


def charts(words):
    """Return one of each drawing, in the languages of these words."""
    cells = [Cell(0, 0, 1, "F0", "F"), Cell(1, 1, 2, "B0", "B")]
    series = {"mini": [4.0, 3.0], "upstream": [4.0, 3.5]}
    held = [("parameters", "mini", 1000), ("optimizer state", "upstream", 500)]
    stacks = [MemoryStack("all", (("gradients", 30e9), ("parameters", 6e9)))]
    step = partial(phrase_of, "One step, event by event")
    return (
        loss_chart("l", series, words),
        memory_chart("m", held, words),
        stack_chart("s", "Memory by category", stacks, 45e9, words),
        gantt("g", step, ["upstream 0", "mini 0"], cells, words),
        gantt("h", step, ["rank 0", "rank 1"], [*cells, cells[1]], words),
    )


NO_WORD = re.compile(r"[FBW]\d+|rank \d+|[\d.,]+( [kMG]?B)?|mini( \d+)?|")


def test_every_word_of_a_drawing_is_in_both_languages():
    phrases = read_words().all
    for chart in charts(Words(phrases)):
        svg = parsed(chart)
        told = {"en": [], "es": [], None: []}
        for text in svg.iter(f"{SVG}text"):
            if not NO_WORD.fullmatch(text.text):
                told[text.get("lang")].append(text.text)
        assert told[None] == [] and len(told["en"]) == len(told["es"]) > 0
        assert not {*told["en"]} & {*told["es"]}
        for tag in ("title", "desc"):
            aloud = svg.find(f"{SVG}{tag}")
            other = aloud.get("data-es")
            assert other and other != aloud.text, tag
            for word in ("Bytes that", "Losses", "upstream", "forward, B a", "of it"):
                assert word not in other


def test_a_drawing_without_spanish_says_that_it_is_english():
    for chart in charts(Words()):
        svg = parsed(chart)
        assert "lang=es" not in chart and "data-es" not in chart
        assert svg.find(f"{SVG}title").get("lang") == "en"
