"""The page of estimates: the numbers are those of the commands that it names."""

from __future__ import annotations

import json
import re
import shlex

import pytest

from readerkit.app.interface_translation import read_words
from readerkit.app.page_estimates import work_out
from readerkit.estimate.schedules import SOURCES
from readerkit.render.html.estimate_examples import SECTIONS, Examples
from readerkit.render.html.estimate_page import Case, estimate_page
from readerkit.render.html.words import Words
from tests.helpers import make_book, read_search_index, run, write_files


@pytest.fixture(scope="module")
def examples() -> Examples:
    return work_out()


@pytest.fixture(scope="module")
def section_cases(examples) -> dict[str, tuple[Case, ...]]:
    page = estimate_page(examples, Words())
    return {id: cases for id, *_, cases in page["sections"]}


@pytest.fixture(scope="module")
def cases(section_cases) -> list[Case]:
    return [case for cases in section_cases.values() for case in cases]


def test_commands_make_the_same_numbers(capsys, examples):
    groups = (
        *examples.memory,
        *examples.traffic,
        examples.bubbles,
        examples.ring,
        examples.tools,
        *examples.runs,
        *examples.more,
        examples.best,
    )
    worked = [each for group in groups for each in group.worked]
    assert len(worked) > 50
    for each in worked:
        result = run(capsys, *shlex.split(each.command)[1:], "--json")
        # What does not fit the GPU is told by the exit code too.
        assert (result.code in (0, 1), result.err) == (True, ""), each.command
        made = json.loads(result.out)["estimates"][-1]
        for item, other in zip(each.estimate.items, made["items"], strict=True):
            assert item.name == other["name"]
            wanted = pytest.approx(other["value"], rel=1e-12)
            assert item.value == wanted, each.command


def test_plan_is_that_of_its_command(capsys, examples, section_cases):
    result = run(capsys, *shlex.split(examples.plan_command)[1:], "--json")
    made = json.loads(result.out)["ranked"]
    rows = section_cases["plan"][0].grid.rows
    assert len(rows) == len(made) == 3
    for row, other in zip(rows, made, strict=True):
        layout = other["layout"]
        assert row[1:4] == tuple(str(layout[axis]) for axis in ("dp", "tp", "pp"))
        assert row[9] == f"{other['memory_bytes'] / 1e9:.1f} GB"
        assert row[13] == f"{other['time']['total']:.2f} s"


def test_first_layout_of_the_plan_is_itemised_with_the_memory_that_it_was_given(
    examples,
):
    memory, _ = examples.best.worked
    assert memory.estimate["total"] == examples.plan.ranked[0].memory.total


def test_every_number_has_its_formula_and_source(cases):
    items = [i for c in cases for each in c.worked for i in each.estimate.items]
    assert len(items) > 300
    assert all(item.formula and item.source for item in items)


def test_ring_and_tree_change_places_where_they_are_said_to_cross(examples):
    times = {each.name: each.estimate["time"] for each in examples.ring.worked}
    cross = examples.ring.worked[0].estimate["tree and ring cross at"]
    sizes = [int(name.split()[1]) for name in times if name.startswith("tree")]
    assert min(sizes) * 1e6 < cross < max(sizes) * 1e6
    for size in sizes:
        is_below = size * 1e6 < cross
        assert (times[f"tree, {size} MB"] < times[f"ring, {size} MB"]) == is_below


def test_every_heading_has_a_spanish_one(cases):
    headings = [heading for case in cases for heading, _ in case.notes]
    assert [head for head in headings if head not in read_words().phrases] == []


def test_catalog_is_that_of_the_command_and_of_the_files_that_the_page_shows(
    capsys, tmp_path, section_cases
):
    *tables, own = section_cases["catalog"]
    known = json.loads(run(capsys, *shlex.split(tables[0].command)[1:], "--json").out)
    assert tables[-1].command.endswith("list --prices")
    for case, rows in zip(tables[:-1], known.values(), strict=True):
        shown = {name: (source, day) for name, *_, source, day in case.grid.rows}
        assert shown == {k: (row["source"], row["dated"]) for k, row in rows.items()}
        assert all(re.fullmatch(r"\d{4}-\d\d-\d\d", day) for _, day in shown.values())
    write_files(tmp_path, own.files)
    command = own.command.replace("DIR", str(tmp_path))
    mine = json.loads(run(capsys, *shlex.split(command)[1:], "--json").out)
    assert mine["models"].keys() - known["models"].keys() == {"ours-7b"}
    assert mine["gpus"]["h100-80gb"]["memory_bytes"] == 85_500_000_000
    asked = [*shlex.split(command)[1:], "--prices", "--json"]
    prices = json.loads(run(capsys, *asked).out)["prices"]
    assert [each["usd_per_hour"] for each in prices if "yours" in each["source"]] == [
        2.4
    ]


def test_page_stands_in_menu_start_and_search(capsys, tmp_path):
    site = tmp_path / "site"
    book = make_book(tmp_path)
    options = ("--book", str(book.root), "--output", str(site))
    assert run(capsys, "site", "build", *options).code == 0
    assert not (site / "estimates.html").exists()  # the book computes nothing
    write_files(book.root, {"site/pages/chapters/sums.md": "# Sums\n\nOf memory.\n"})
    concepts = book.path("concepts.yaml")
    named = "layer: collective, estimates: [memory]}"
    concepts.write_text(concepts.read_text().replace("layer: collective}", named, 1))
    assert run(capsys, "site", "build", *options).code == 0
    html = (site / "estimates.html").read_text()
    assert "<script>" not in html and html.count("<svg") == 3 + len(SOURCES)
    assert set(re.findall(r'<section id="(\w+)">', html)) == set(SECTIONS)
    start = (site / "index.html").read_text()
    assert start.count('href="estimates.html"') == 2
    index = read_search_index(site)
    for name in SECTIONS:
        assert f'href="estimates.html#{name}"' in start
        assert f"estimates.html#{name}" in index


def test_the_page_shows_published_runs_as_the_command_does(capsys, section_cases):
    [case] = section_cases["against"]
    plain = json.loads(run(capsys, *case.command.split()[1:], "--json").out)
    shown = {row[0]: row[5] for row in case.grid.rows}
    assert shown == {
        each["run"]: f"{each['error']:+.1%}" for each in plain["runs"] if each["half"]
    }
    assert [*plain["halves"]] == ["fit", "judge"]
