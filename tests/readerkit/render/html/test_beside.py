"""Side-by-side pages of a small book: what a record's events say and lead to."""

from __future__ import annotations

import re

import pytest
from msgspec.structs import replace

from mini_impls.compare.ops import OPS
from readerkit.evidence.record import EventMatch, ExecutedLine, Lit, Record
from readerkit.render.html.event_strip import BY_HARNESS, IN_CPP, SHORT, STALE
from tests.events import event
from tests.helpers import make_book, read_search_index, run, write_files
from tests.snapshots.book import FILES, MINI, MINIS, MIRROR, add_upstream, record_of

pytestmark = pytest.mark.sampled

NAME = "sums_sample"
LAUNCHER = ExecutedLine("minis", "mini_impls/launch.py", 122, "_with_group")


@pytest.fixture
def built(capsys, tmp_path):
    """Build the small book with its record changed; return the text of a page."""

    book = make_book(tmp_path)
    add_upstream(book, MINIS)

    def build(change=lambda record: record, files=(), page="beside/closing.html"):
        write_files(book.root, {**FILES, **dict(files)})
        record = change(Record.parse(record_of(book, NAME), NAME))
        path = f"annotations/records/{record.comparison}.json"
        write_files(book.root, {path: record.to_text()})
        options = ("--book", str(book.root), "--output", str(tmp_path / "site"))
        result = run(capsys, "site", "build", *options)
        assert result.code == 0, result.err
        return (tmp_path / "site" / page).read_text()

    return build


def with_events(record, mini=None, upstream=None, **more):
    """Return a record whose only rank has these events, one beside the other."""
    [rank] = record.events
    mini = rank.mini if mini is None else mini
    upstream = rank.upstream if upstream is None else upstream
    rank = replace(rank, mini=mini, upstream=upstream, **more)
    return replace(record, events=(rank,))


def between(html, start, end):
    assert html.count(start) == 1, start
    return html.partition(start)[2].partition(end)[0]


def strip(html):
    return between(html, '<ol class="strip"', '<div class="picked')


def column(html, side):
    sites = between(html, '<div class="columns sites">', '<div class="columns plots">')
    return between(sites, f'<div class="side {side}">', "</div>\n\n")


@pytest.mark.parametrize(
    ("count", "told"),
    [
        (
            1,
            "1 matrix product between issue and wait; issued when 1 gradient was ready",
        ),
        (
            2,
            "2 matrix products between issue and wait; issued when 2 gradients were "
            "ready",
        ),
    ],
)
def test_what_is_counted_of_a_call_is_in_its_number(built, count, told):
    call = event(products_hidden=count, gradients_ready=count)
    html = built(lambda record: with_events(record, (call,), (call,)))
    assert told in html


def test_an_event_leads_to_its_line_and_to_all_that_called_it(built):
    html = strip(built())
    event, *_ = re.findall(r'<a class="ev[^>]*>', html)
    assert 'href="../read/sample/lib/linear.py.html#L17"' in event
    way = re.search(r'data-way="([^"]+)"', event)[1]
    frames = between(html, f'<template id="{way}">', "</template>")
    assert re.findall(r'<li data-site="([^"]+)"><a href="([^"]+)"', frames) == [
        ("sample:lib/linear.py:17", "../read/sample/lib/linear.py.html#L17"),
        ("sample:lib/linear.py:23", "../read/sample/lib/linear.py.html#L23"),
    ]
    assert "launch.py" not in html


def test_events_of_a_stale_record_lead_to_no_line(built):
    html = built(files={"mini_impls/sums.py": "# one\n# more\n" + MINI})
    assert html.index("This record is stale") < html.index('class="verdict')
    assert "#L" not in strip(html) and 'class="way"' not in html
    assert re.search(r'<button type="button" class="ev op-all_reduce"', strip(html))
    for side in ("up", "mini"):
        assert STALE in column(html, side) and "figure" not in column(html, side)


@pytest.mark.parametrize(("site", "why"), [(None, IN_CPP), (LAUNCHER, BY_HARNESS)])
def test_an_event_that_no_line_of_a_side_issued_says_so(built, site, why):
    def change(record):
        [rank] = record.events
        event = replace(rank.upstream[0], site=site, stack=1)
        stacks = (rank.stacks[0], (LAUNCHER,))
        return with_events(record, upstream=(event,), stacks=stacks)

    html = built(change)
    assert f'<span class="unplaced" hidden><span class=b lang=en>{why}' in html
    assert f"all-reduce: <span class=b lang=en>{why}" in column(html, "up")
    assert "figure" not in column(html, "up")
    assert "sums.py:5-8" in column(html, "mini")
    assert "launch.py" not in html


def test_a_column_shows_the_events_of_its_lane_whatever_code_issued_them(built):
    def change(record):
        [rank] = record.events
        event = replace(rank.upstream[0], site=rank.mini[0].site, stack=0)
        return with_events(record, upstream=(event,))

    html = built(change)
    assert "sums.py:5-8" in column(html, "up")
    assert "sums.py:5-8" in column(html, "mini")


def test_issuers_stand_in_the_order_of_the_step(built):
    def change(record):
        [rank] = record.events
        [event] = rank.upstream
        first = replace(event, site=replace(event.site, line=23))
        last = replace(event, site=replace(event.site, line=9))
        matches = (EventMatch(None, 0, "flagged"), EventMatch(0, 1, "matched"))
        return with_events(record, upstream=(first, last), matches=matches)

    places = re.findall(r"<code>(linear.py:[0-9-]+)", column(built(change), "up"))
    assert places == ["linear.py:21-24", "linear.py:7-11"]


@pytest.mark.parametrize(
    ("calls", "asked", "choices"),
    [
        ([{}], "", []),
        ([{}, {}], "", []),
        ([{}, {"op": "send"}], "issue next", ["all-reduce", "send"]),
        ([{}, {"payload_bytes": 8}], "How many bytes", ["8 B", "1.02 kB"]),
    ],
)
def test_what_is_asked_is_what_the_record_holds(built, calls, asked, choices):
    def change(record):
        [rank] = record.events
        mini, upstream = (
            tuple(replace(side[0], **changed) for changed in calls)
            for side in (rank.mini, rank.upstream)
        )
        matches = tuple(EventMatch(i, i, "matched") for i in range(len(calls)))
        return with_events(record, mini=mini, upstream=upstream, matches=matches)

    html = built(change)
    assert ('class="guess' in html) == bool(asked)
    assert asked in html
    found = re.findall(r'<button type="button" data-value="([^"]+)">', html)
    assert found == choices


def test_every_operation_that_a_record_can_hold_has_a_mark_of_its_own():
    assert set(SHORT) == set(OPS.values())
    assert len(set(SHORT.values())) == len(SHORT)


def test_the_legend_names_operations_and_frames(built):
    legend = built().partition("upper lane")[2].partition("</dl>")[0]
    assert re.findall(r'swatch op-\w+">(\w+)<', legend) == ["AR"]
    for frame in ("dotted", "flagged", "none"):
        assert f'class="swatch {frame}"' in legend


SECOND = """\
id: else
title: Something else
idea: Not about sums.
concepts: [all-reduce]
sections:
- title: Another
  relation: differs
  why: It has a mini of its own.
  upstream: [whole-step]
  mini: [{file: mini_impls/other.py, symbol: f},
         {file: mini_impls/other.py, symbol: g}]
- title: The sum again
  relation: differs
  why: Beside the other.
  upstream: [close]
  mini: [{file: mini_impls/sums.py, symbol: close}]
"""


def test_a_record_of_another_page_comes_last_with_the_reason(built):
    files = {
        "annotations/mirrors/else.yaml": SECOND,
        "mini_impls/other.py": "def f(): ...\n\n\ndef g(): ...\n",
    }
    html = built(files=files, page="beside/else.html")
    assert f'id="r-{NAME}"' not in html
    guest = between(html, '<section class="guest">', "</section>")
    assert f'href="../beside/closing.html#r-{NAME}"' in guest
    assert "<code>sums.py</code>" in guest
    assert '<a href="#s2">2. <span lang="en">The sum again</span></a>' in guest


def test_the_reason_of_a_difference_is_marked_where_a_claim_holds_it(built):
    differing = (
        MIRROR
        + """\
  differences:
  - comparisons: [sums_sample]
    what: order
    at_most: 1
    why: The mini returns y.
    claims:
    - {says: returns y, stands: {file: mini_impls/sums.py, code: return y}}
"""
    )
    files = {"annotations/mirrors/closing.yaml": differing}
    html = built(files=files, page="beside/closing.html")
    reason = between(html, '<dd><span lang="en">The mini returns y.', "</dd>")
    assert 'href="#s1-claim-1"' in reason and 'id="s1-at-1"' in reason
    assert 'href="#s1-at-1">↑' in between(html, 'id="s1-claim-1"', "</section>")


# --- notes ---


TWICE = """\
id: closing
title: How a block is closed
idea: Sum at the end.
concepts: [all-reduce]
sections:
- title: The sum
  relation: simplified
  why: One collective, no switch.
  upstream: [close]
  mini: [{file: mini_impls/sums.py, symbol: close},
         {file: mini_impls/sums.py, symbol: close, code: "return y"}]
  events:
  - {phase: forward, op: all_reduce, comparisons: [sums_sample]}
"""
LINEAR = "read/sample/lib/linear.py.html"


def note(html, name):
    return between(html, f'id="{name}"', "</aside>")


def test_a_note_names_a_section_once_with_all_its_mini_lines(built):
    html = built(files={"annotations/mirrors/closing.yaml": TWICE}, page=LINEAR)
    there = note(html, "close")
    assert there.count(">The sum</span></a>") == 1
    assert re.findall(r"<code>(sums.py:[^<]+)</code>", there) == [
        "sums.py:6-8",
        "sums.py:8",
    ]


ONE_LINE = """\
- id: sum
  at: {file: lib/linear.py, symbol: Linear.forward, code: "y = all_reduce(...)"}
  kind: note
  title: The sum
  text: Over all ranks.
  concepts: [all-reduce]
"""


def test_a_note_on_one_line_names_one_line(built):
    html = built(files={"annotations/sample/sum.yaml": ONE_LINE}, page=LINEAR)
    there = note(html, "sum")
    assert 'linear.py.html#L17"><span class=b lang=en>line</span>' in there
    assert "<code>lib/linear.py:17</code>" in there
    assert "17-17" not in there


def test_a_list_of_notes_names_one_line_too(built):
    html = built(files={"annotations/sample/sum.yaml": ONE_LINE}, page="concepts.html")
    assert '<span class="dim">linear.py:17</span>' in html


def without_lines(record):
    """Return a record of which no line of upstream ran."""
    lit = tuple(row for row in record.lit if row.upstream == "minis")
    [rank] = record.events
    event = replace(rank.upstream[0], site=None, stack=0)
    return replace(with_events(record, upstream=(event,)), lit=lit)


def test_a_note_says_that_a_record_of_its_mirror_did_not_run_it(built):
    html = built(without_lines, page=LINEAR)
    said = note(html, "close")
    assert "not run (watched: set-up and steps 0 to 4, imports aside)" in said
    assert "no se ejecutó (observado: preparación y los pasos 0 a 4" in said
    assert f"#r-{NAME}" in note(html, "close")


def test_a_note_whose_lines_ran_in_setup_says_only_that(built):
    def change(record):
        lit = Lit("sample", "lib/linear.py", "14", {"0-4": "23"})
        return replace(without_lines(record), lit=(lit,))

    there = note(built(change, page=LINEAR), "close")
    assert "ran in set-up only" in there
    assert "not run" not in there


def test_a_note_of_no_mirror_tells_of_a_record_that_ran_other_lines_of_its_file(built):
    def change(record):
        lit = Lit("sample", "lib/linear.py", "", {"0-4": "14"})
        return replace(without_lines(record), lit=(lit,))

    there = note(built(change, page=LINEAR), "whole-step")
    assert "not run (" in there and NAME in there


def test_a_note_of_no_mirror_names_no_record_that_is_not_about_it(built):
    there = note(built(without_lines, page=LINEAR), "whole-step")
    assert "no record runs this code" in there
    assert NAME not in there


def test_a_record_says_how_its_events_stand_and_what_it_does_not_say(built):
    html = built()
    assert "1 of 1 events identical." in html
    assert "1 de 1 eventos idénticos" in html
    assert "Not seen" in html and "order between ranks (no common clock)" in html


def test_the_search_knows_a_recorded_step_by_its_name_and_its_calls(built, tmp_path):
    built()
    found = read_search_index(tmp_path / "site")
    (_, name, calls, *_), _ = found[f"beside/closing.html#r-{NAME}"]
    assert (name, calls) == (NAME, "all-reduce")
