"""The benchmark of the minis runs, on work that its ranks can share."""

import importlib.util
import os
import subprocess
import sys

import pytest

from mini_impls.compare.comparisons import comparisons
from tests.helpers import ROOT

SCRIPT = ROOT / "benchmarks/minis/run.py"
ROW = ("pipeline", "--upstream", "megatron_1f1b", "--rounds", "1", "--warm-up", "0")


@pytest.fixture(scope="module")
def benchmark():
    spec = importlib.util.spec_from_file_location("benchmark_minis", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


TABLE = SCRIPT.with_name("README.md").read_text("utf-8")


@pytest.mark.parametrize("comparison", comparisons(), ids=lambda c: c.name)
def test_every_comparison_has_a_row_or_is_said_to_have_none(benchmark, comparison):
    row = f"\n| {comparison.mini} | {comparison.upstream} |"
    if comparison.mini in benchmark.NOT_TRAINED:
        assert f"`{comparison.mini}` has no row" in TABLE
    else:
        assert row in TABLE


def test_the_seconds_of_every_comparison_are_told():
    _, _, table = TABLE.partition("# How long does `readerkit compare` take?")
    table, _, _ = table.partition("\n## ")
    told = [line.split(" | ")[:2] for line in table.splitlines() if line[:2] == "| "]
    there_are = [[f"| {each.mini}", each.upstream] for each in comparisons()]
    assert told[1:] == there_are  # below the head


@pytest.mark.parametrize("comparison", comparisons(), ids=lambda c: c.name)
def test_every_comparison_shares_the_sixteen_rows(benchmark, comparison):
    sized = benchmark.sized(comparison)
    ranks = benchmark.WORLD_SIZE if sized.data_parallel else 1
    assert sized.rows_per_rank * ranks == 16
    parts = {"pipeline": 4, "zero_bubble": 4, "layout": 2}
    assert sized.microbatches == parts.get(sized.mini, 1)
    assert sized.config.num_layers % (benchmark.WORLD_SIZE * sized.chunks) == 0
    # A side is built from the kind of configuration that its comparison has.
    assert type(sized.config) is type(comparison.config)


@pytest.mark.slow
def test_a_row_of_the_table_holds_what_was_timed(real_cache):
    ended = subprocess.run(
        [sys.executable, SCRIPT, *ROW],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    mini, upstream, *numbers = ended.stdout.splitlines()[-1].strip("| ").split(" | ")
    assert (mini, upstream) == ("pipeline", "megatron_1f1b")
    least = [float(number) for number in numbers[:3]]
    assert len(numbers) == 9 and min(least) > 0
    # After one round the least is the median, so both ratios are of the same times.
    assert numbers[3] == numbers[4]
    assert float(numbers[3]) == pytest.approx(least[0] / least[1], abs=0.02)
