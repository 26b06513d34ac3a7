"""The shipped evidence speaks of the pins, the files and the minis as they are."""

from __future__ import annotations

from functools import cache
from itertools import takewhile
from pathlib import Path

import pytest

from mini_impls.compare.comparisons import comparisons
from mini_impls.compare.match import align, excuses
from readerkit.app.records import find_stale
from readerkit.content.book import Book
from readerkit.content.vocabulary import WHOLE_DIFFERENCES
from readerkit.evidence.executed_lines import belongs, unseen_events
from readerkit.evidence.record import PARAMETERS, RankEvents, Record, distance_line
from tests.content.test_annotations import library
from tests.helpers import ROOT

pytestmark = pytest.mark.sampled

LAUNCHER = "mini_impls/launch.py"
RECORDS = ROOT / "annotations" / "records"
PATHS = sorted(RECORDS.glob("*.json"))
EACH = pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)


@cache
def read(path: Path) -> Record:
    return Record.parse(path.read_text("utf-8"), path.name)


def aligned(book: Book, record: Record) -> list[RankEvents]:
    """Return the ranks with their events aligned as today's mirrors have it."""
    known = book.differences(record.comparison)
    return [
        RankEvents(
            rank.rank,
            rank.mini,
            rank.upstream,
            align(
                rank.mini,
                rank.upstream,
                excuses(known, {**record.sizes, "rank": rank.rank}),
            ),
            rank.gradients,
            rank.stacks,
        )
        for rank in record.events
    ]


def test_every_comparison_ships_a_record() -> None:
    names = {comparison.name for comparison in comparisons()}
    assert {path.stem for path in PATHS} == names


@EACH
def test_record_is_not_stale(path: Path) -> None:
    reasons = find_stale(library(), read(path))
    assert not reasons, f"make it anew: python tools/make_records.py {path.stem}"


@EACH
def test_record_has_no_unexplained_line(path: Path) -> None:
    assert read(path).agrees


@EACH
def test_no_stack_goes_on_below_the_rank_it_is_of(path: Path) -> None:
    """A forked rank has its parent's frames below its own: they sent nothing."""
    for rank in read(path).events:
        for stack in rank.stacks:
            own = [*takewhile(lambda site: site.path != LAUNCHER, stack)]
            assert len(stack) - len(own) <= 1
            assert not any("elastic" in site.path for site in own)


@EACH
def test_record_has_the_reasons_of_todays_mirrors(path: Path) -> None:
    record = read(path)
    book = library().book
    now = [rank.matches for rank in aligned(book, record)]
    assert now == [rank.matches for rank in record.events]
    known = {
        (mirror, difference.why)
        for mirror, difference in book.differences(record.comparison)
    }
    lines = [v for v in record.verdicts if v.state == "explained" and v.mirror]
    of_events = {(m.mirror, m.why) for rank in now for m in rank}
    assert {(v.mirror, v.reason) for v in lines if "; " not in v.reason} <= (
        known | of_events
    )


@EACH
def test_known_differences_occur_as_often_as_mirrors_say(path: Path) -> None:
    """A bound that is never reached would excuse what nobody has looked at."""
    record = read(path)
    known = library().book.differences(record.comparison)
    for _, difference in known:
        if difference.what in WHOLE_DIFFERENCES:
            continue
        most = bound = 0
        for rank in record.events:
            alone = excuses(known, {**record.sizes, "rank": rank.rank})
            [own] = [excuse for excuse in alone if excuse.difference is difference]
            limit = own.left
            align(rank.mini, rank.upstream, alone)
            most = max(most, limit - own.left)
            if any(own.fits(difference.what, e) for e in (*rank.mini, *rank.upstream)):
                bound = max(bound, limit)
        assert most == bound, difference


@EACH
def test_what_may_differ_as_a_whole_does(path: Path) -> None:
    record = read(path)
    known = library().book.differences(record.comparison)
    for what, lines in (
        ("values", [v for v in record.verdicts if v.rank is None]),
        ("order", [v for v in record.verdicts if "another order" in v.what]),
        ("memory", [v for v in record.verdicts if "most bytes" in v.what]),
    ):
        bounds = [
            d.at_most.evaluate({**record.sizes, "rank": rank.rank})
            for _, d in known
            for rank in record.events
            if d.what == what
        ]
        explained = [v.difference for v in lines if v.state == "explained"]
        assert bool(explained) == any(bounds)
        if what == "order" and explained:
            assert max(explained) == max(bounds)


def test_events_that_mirrors_name_are_in_the_records() -> None:
    mirrors = library().book.mirrors.values()
    assert unseen_events(mirrors, map(read, PATHS)) == []


def test_events_of_every_comparison_belong_to_a_mirror() -> None:
    """What was sent can be read about: each event has a section that means it."""
    named = [
        event
        for mirror in library().book.mirrors.values()
        for section in mirror.sections
        for event in section.events
    ]
    lost = {
        (record.comparison, event.phase, event.op)
        for record in map(read, PATHS)
        for rank in record.events
        for side in (rank.mini, rank.upstream)
        for event in side
        if not any(
            record.comparison in name.comparisons and belongs(event, name)
            for name in named
        )
    }
    assert lost == set()


COUNTS = {15: "fifteen", 21: "twenty-one", 50: "fifty"}


def test_the_readme_counts_the_records():
    """What has run on GPUs as well: with every difference explained, as it says."""
    readme = " ".join((ROOT / "README.md").read_text().split())
    assert f"records of {COUNTS[len(PATHS)]} comparisons" in readme
    on_gpus = [read(path) for path in RECORDS.glob("nccl/*.json")]
    last = distance_line(PARAMETERS[-1])
    lines = [line for record in on_gpus for line in record.verdicts]
    assert {line.state for line in lines} == {"agree", "explained"}
    equal = [line for line in lines if line.what == last and line.difference == 0]
    assert f"{COUNTS[len(on_gpus)]} have run, on two ranks" in readme
    assert f"equal to the last bit in {COUNTS[len(equal)]}, " in readme
