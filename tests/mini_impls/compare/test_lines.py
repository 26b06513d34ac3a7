"""The lines that records call run, held against statements that count themselves."""

import ast
import json
import os
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest
from counted import statements

from mini_impls.compare.comparisons import comparisons
from mini_impls.compare.places import get_roots
from mini_impls.compare.upstream_files import write_megatron
from readerkit.app.library import open_library
from readerkit.evidence.executed_lines import lit, say_lit
from readerkit.evidence.line_ranges import line_numbers
from readerkit.evidence.record import Record
from readerkit.model.anchor import Span
from tests.conftest import REAL_CACHE
from tests.helpers import ROOT

NAMES = [comparison.name for comparison in comparisons()]
ON_A_THREAD = "torch/distributed/elastic/rendezvous/utils.py"
"""Its timer runs on a thread that upstream starts: records note no line of those."""
LATER = (ast.Lambda, ast.GeneratorExp)
"""Their line may run again when their statement does not."""
BY_NAME = {comparison.name: comparison for comparison in comparisons()}


@cache
def record_of(name):
    path = ROOT / "annotations" / "records" / f"{name}.json"
    return Record.parse(path.read_text("utf-8"), path.name)


@cache
def the_library():
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("READERKIT_CACHE", str(REAL_CACHE))
        return open_library(ROOT)


def files_of(name):
    """Return the files that a note could be told of by a record: name and path."""
    record, library = record_of(name), the_library()
    ran = {(row.upstream, row.path) for row in record.lit}
    noted = {
        (note.upstream, note.anchor.file)
        for note in library.book.annotations.values()
        if note.upstream in record.pins
    }
    return sorted(ran | noted)


def count(name, folder):
    """Run a comparison; return by window and file the statements that any rank ran."""
    folder.mkdir()
    roots, megatron = get_roots(None), ""
    if "megatron" in BY_NAME[name].upstreams:
        write_megatron(the_library(), folder / "megatron")
        megatron = str(folder / "megatron")
        roots = get_roots(Path(megatron))
    files = {str(roots[u] / path): (u, path) for u, path in files_of(name)}
    program = str(Path(__file__).with_name("counted.py"))
    comparison = BY_NAME[name]
    size = record_of(name).world_size
    given = (str(folder), comparison.mini, comparison.upstream, megatron, *files)
    # As the launcher sets it for its ranks: torch's agent reads it.
    env = {**os.environ, "TORCHELASTIC_SIGNALS_TO_HANDLE": ""}
    ranks = [
        subprocess.Popen(
            [sys.executable, program, str(rank), str(size), *given], cwd=ROOT, env=env
        )
        for rank in range(size)
    ]
    assert [rank.wait(timeout=600) for rank in ranks] == [0] * size
    windows = None
    for rank in range(size):
        seen = json.loads((folder / f"{rank}.json").read_text())
        windows = windows or [{} for _ in seen]
        for window, found in zip(windows, seen, strict=True):
            for path, line in found:
                window.setdefault(files[path], set()).add(line)
    return roots, windows


def differing(name, folder):
    """Run a comparison; return where its record says otherwise, and how many agree."""
    roots, counted = count(name, folder)
    record = record_of(name)
    rows = {(row.upstream, row.path): row for row in record.lit}
    wrong, checked = set(), 0
    for upstream, path in files_of(name):
        if path == ON_A_THREAD:
            continue
        row = rows.get((upstream, path))
        said = [line_numbers(row.setup) if row else frozenset()]
        for step in range(record.watched_steps):
            said.append(row.in_step(step) if row else frozenset())
        tree = ast.parse((roots[upstream] / path).read_bytes())
        for node, first, last in statements(tree):
            head = set(range(first, last + 1))
            if any(isinstance(part, LATER) for part in ast.walk(node)):
                continue
            checked += 1
            ran = [first in window.get((upstream, path), ()) for window in counted]
            told = [bool(lines & head) for lines in said]
            wrong |= {
                (f"{path}:{first}", window, "ran" if ran[window] else "did not run")
                for window in range(len(said))
                if ran[window] != told[window]
            }
    return wrong, checked


@pytest.mark.slow  # ranks that compile their upstream anew
@pytest.mark.parametrize("name", NAMES)
def test_a_line_ran_when_its_record_says_and_at_no_other_watched_time(name, tmp_path):
    wrong, checked = differing(name, tmp_path / "0")
    assert checked > 1000
    # Hash tables in C++ compare what falls into one bucket, and hashes follow
    # addresses: a line of an __eq__ may run once and not again. So may one that waits
    # for a copy on a thread. What a record says is wrong where no run bears it out.
    for attempt in range(1, 8):
        if not wrong:
            break
        wrong &= differing(name, tmp_path / str(attempt))[0]
    assert not wrong


# What one forward does once, in upstreams that set themselves up lazily.
ONCE = [
    ("fsdp2-root-stays-gathered", "fsdp_fully_shard", "ran in step 0 only ("),
    ("pp-receive-buffers", "pipeline_torch_1f1b", "ran in step 0 only ("),
    ("pp-receive-buffers", "pipeline_torch_interleaved", "ran in step 0 only ("),
    ("fsdp2-three-dtypes", "fsdp_fully_shard", "imports aside"),
]


@pytest.mark.parametrize(("note", "name", "said"), ONCE)
def test_a_note_says_when_its_lines_ran(note, name, said):
    annotation = the_library().book.annotations[note]
    sources = the_library().sources(the_library().upstream(annotation.upstream))
    span = sources.resolve(annotation.anchor)
    [text] = say_lit(lit([record_of(name)], annotation.upstream, span))
    assert said in text
    assert "(watched: set-up and steps 0 to 4" in text


def test_lazy_init_ran_in_the_first_step_only():
    path = "torch/distributed/fsdp/_fully_shard/_fsdp_param_group.py"
    sources = the_library().sources(the_library().upstream("pytorch"))
    [symbol] = sources.file(path).symbols["FSDPParamGroup.lazy_init"]
    span = Span(path, symbol.first + 1, symbol.last)
    [text] = say_lit(lit([record_of("fsdp_fully_shard")], "pytorch", span))
    assert text.startswith("ran in step 0 only (")
