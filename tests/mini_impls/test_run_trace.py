"""Traces of real runs: what a viewer reads, and where the time of a step went."""

import json
import re
import resource
import subprocess
import sys
from collections import Counter, defaultdict
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from mini_impls import launch, run_trace
from mini_impls.compare import command as compare_command
from mini_impls.demos.expected import Estimated, measured_rates
from mini_impls.recorder import (
    Expected,
    RankTrace,
    Rates,
)
from mini_impls.run_metrics import (
    RankMetrics,
    RankSummary,
    RecordedRank,
    length,
    predict,
    summarize,
    union,
    within,
    without,
)
from mini_impls.run_table import table
from mini_impls.run_thin import live_tracks
from mini_impls.run_trace import drawn, merge, write
from readerkit.system.output import OutputError
from readerkit.wording.numbers import format_bytes
from tests.helpers import ROOT
from tests.processes import children, wait_for

RUN = [sys.executable, "-m", "readerkit", "run"]


def run(*command, cwd=ROOT):
    return subprocess.run(
        [*RUN, *map(str, command)], cwd=cwd, capture_output=True, text=True, check=False
    )


def spans(trace, pid, name):
    events = trace["traceEvents"]
    return [
        (e["ts"], e["ts"] + e["dur"])
        for e in events
        if e["ph"] == "X" and e["pid"] == pid and re.fullmatch(name, e["name"])
    ]


def test_spans_are_joined_cut_and_shared():
    ours, theirs = [(0, 2), (1, 4), (6, 8), (9, 9)], [(3, 7), (7.5, 7.6)]
    assert union(ours) == [(0, 4), (6, 8)]
    assert without(ours, theirs) == [(0, 3), (7, 7.5), (7.6, 8)]
    assert within(ours, theirs) == [(3, 4), (6, 7), (7.5, 7.6)]
    assert length(ours) == 6
    assert union([]) == without([], ours) == within(ours, []) == []


def event(name, start, end, **more):
    return {"ph": "X", "name": name, "ts": start, "dur": end - start, "tid": 1, **more}


def test_on_a_gpu_kernels_tell_what_runs_and_what_is_sent():
    # Python asks in 4 us for what runs long after: a product, beside it an all-reduce.
    events = [
        event("step 0", 0, 60),
        event("aten::mm", 0, 2),
        event("c10d::allreduce_", 2, 4),
        event("nccl:all_reduce", 2, 4),
        event("gemm", 10, 40, tid=7, cat="kernel"),
        event("ncclDevKernel_AllReduce_Sum_f32_RING_LL", 30, 50, tid=9, cat="kernel"),
        {"name": "[memory]", "ts": 1, "args": {"Total Allocated": 9, "Device Type": 0}},
        {"name": "[memory]", "ts": 2, "args": {"Total Allocated": 5, "Device Type": 1}},
    ]
    rank = RecordedRank(RankTrace(0, events, 0, 1, {}, {}, 1.0))
    assert rank.computing == [(10, 40)]
    assert [(t.operation, t.span) for t in rank.transfers] == [("all-reduce", (30, 50))]
    assert (rank.hidden, rank.exposed) == ([(30, 40)], [(40, 50)])
    assert rank.live == [(2, 5)]
    [found] = summarize(rank.trace).parts.values()
    assert found.computing_s == pytest.approx(30e-6)
    assert found.hidden_s == found.exposed_s == pytest.approx(10e-6)


def test_times_count_from_whichever_rank_began_first():
    traces = [
        RankTrace(rank, [event("step 0", 0, 1)], base_ns, 1, {}, {}, 1.0)
        for rank, base_ns in enumerate([5_000, 2_000])
    ]
    drawn = merge(traces)["traceEvents"]
    assert [e["ts"] for e in drawn if e["ph"] == "X"] == [3.0, 0.0]


@pytest.fixture(scope="module")
def traced(tmp_path_factory):
    """A run of DDP on two ranks: its trace and what it printed."""
    path = tmp_path_factory.mktemp("trace") / "ddp.json"
    ended = run("ddp", "--steps", "4", "--trace", path)
    assert ended.returncode == 0, ended.stderr
    assert ended.stderr == ""
    return json.loads(path.read_text()), ended.stdout


def test_a_trace_has_each_rank_with_its_tracks_on_one_clock(traced):
    trace, _ = traced
    names = defaultdict(set)
    for event in trace["traceEvents"]:
        if event["ph"] == "M":
            names[event["pid"]].add(event["args"]["name"])
    assert set(names) == {0, 1}
    for rank, tracks in names.items():
        shown = {"steps", "computing", "waiting", "transfers 1"}
        assert {f"rank {rank}", *shown} <= tracks
    steps = [spans(trace, rank, r"step \d+") for rank in (0, 1)]
    assert [len(each) for each in steps] == [4, 4]
    # The ranks wait for one another in every step: two clocks would not overlap.
    for (a, b), (c, d) in zip(*steps, strict=True):
        assert max(a, c) < min(b, d)
    assert min(e["ts"] for e in trace["traceEvents"] if "ts" in e) >= 0


def test_each_name_of_a_track_is_said_once(traced):
    trace, _ = traced
    said = [
        (e["pid"], e["name"], e["tid"]) for e in trace["traceEvents"] if e["ph"] == "M"
    ]
    assert len(said) == len(set(said))
    drawn = {(e["pid"], e["tid"]) for e in trace["traceEvents"] if e["ph"] == "X"}
    assert drawn == {(pid, tid) for pid, name, tid in said if name == "thread_name"}


def test_a_trace_is_small_and_has_the_products_and_the_copies(traced):
    trace, _ = traced
    bars = [e for e in trace["traceEvents"] if e["ph"] == "X"]
    names = Counter(e["name"] for e in bars if e["tid"] == 1)
    # Of each linear layer of the ranks' own four steps, forward and backward.
    assert names["mm"] > 2 * 4 * 20 and names["addmm"] > 2 * 4 * 10
    assert names["copy_"] and names["call of all-reduce"] == 2 * 4 * 5
    assert not names.keys() & {"as_strided", "view", "empty_strided", "to", "t"}
    assert len(trace["traceEvents"]) < 40_000, "of 100,000"


def test_the_counter_of_bytes_reaches_the_peak_of_the_table(traced):
    trace, out = traced
    peaks = re.findall(r"^ +([01]) .* ([\d.]+ [kM]B) +[\d,]+$", out, re.MULTILINE)
    assert len(peaks) == 2
    for rank, peak in peaks:
        live = [
            (e["ts"], e["args"]["live"])
            for e in trace["traceEvents"]
            if e["name"] == "bytes of tensors" and e["pid"] == int(rank)
        ]
        shown = spans(trace, int(rank), r"step [1-9]")
        most = max(
            size for at, size in live for start, end in shown if start <= at <= end
        )
        assert format_bytes(most) == peak
    beside = [e for e in trace["traceEvents"] if e["name"].endswith("process alone")]
    assert {e["ph"] for e in beside} == {"C", "X"}


def test_what_is_short_or_only_a_view_is_left_out_and_counts_in_the_table():
    events = [
        event("step 0", 0, 200),
        event("aten::linear", 10, 60, args={"Input Dims": [[2, 3], [4, 3]]}),
        event("aten::t", 11, 14),
        event("aten::transpose", 12, 13),
        event("aten::addmm", 20, 55),
        event("aten::add", 56, 58),  # short, and inside
        event("aten::mm", 58, 59),  # a product, however short
        event("aten::view", 61, 75),
        *(
            event(f"aten::{name}", 80 + 3 * i, 82 + 3 * i)
            for i, name in enumerate(["mul_", "add_", "add_", "sqrt"], 1)
        ),
        event("aten::to", 120, 131),
        event("aten::_to_copy", 121, 130),
        event("aten::copy_", 122, 129),
        event("aten::item", 190, 192),
        event("aten::sub", 160, 162),
    ]
    trace = RankTrace(0, events, 0, 1, {}, {}, 1.0)
    found = drawn(trace)
    shown = [
        (e["name"], e["ts"], e["ts"] + e["dur"], e.get("args", {}))
        for e in found.picture
        if e["ph"] == "X" and e["tid"] == 1
    ]
    assert shown == [
        ("linear", 10, 60, {"shapes": [[2, 3], [4, 3]]}),
        ("addmm", 20, 55, {}),
        ("mm", 58, 59, {}),
        ("4 short operations", 83, 94, {"short": {"mul_": 1, "add_": 2, "sqrt": 1}}),
        ("copy_", 122, 129, {}),
        ("sub", 160, 162, {}),
        ("item", 190, 192, {}),
    ]
    assert found.summary == summarize(trace)
    assert found.summary.parts[""].computing_s == pytest.approx(87e-6)
    assert not found.events, "they do not travel to the first rank"
    assert drawn(found) is found


def test_kernels_of_a_gpu_are_all_drawn():
    events = [
        event("step 0", 0, 60),
        *(event("vectorized", i, i + 2, tid=7, cat="kernel") for i in (10, 13, 16)),
    ]
    found = drawn(RankTrace(0, events, 0, 1, {}, {}, 1.0)).picture
    assert [e["ts"] for e in found if e["name"] == "vectorized"] == [10, 13, 16]


def test_the_most_the_least_and_the_last_bytes_of_a_stretch_are_drawn():
    events = [event("step 0", 0, 10_000), event("step 1", 20_000, 30_000)]
    for begin in (0, 20_000):
        for i in range(1000):
            for later, sign in ((0, 1), (5, -1)):
                size = sign << i % 7
                args = {"Addr": 1000 * i, "Bytes": size, "Device Type": 0}
                ts = begin + 10 * i + later
                events.append({"name": "[memory]", "ph": "i", "ts": ts, "args": args})
    trace = RankTrace(0, events, 0, 1, {}, {}, 1.0)
    [(name, live)] = live_tracks(RecordedRank(trace))
    assert name == "bytes of tensors"
    assert len(live) < 700, "of 4,000"
    assert live == sorted(live)
    assert {at // 100 for at, size in live if size == 64} >= {*range(100)}
    assert max(size for _, size in live) == summarize(trace).parts[""].peak_bytes == 64


def test_what_a_comparison_keeps_is_a_counter_of_its_own():
    events = [
        event("step 0", 0, 10),
        event("one process alone", 20, 30),
        event("step 1", 40, 50),
    ]
    sizes = [(5, 1, 100), (25, 2, 30), (27, 3, 7), (29, 3, -7), (45, 4, 8)]
    for at, address, size in sizes:
        args = {"Addr": 1000 * address, "Bytes": size, "Device Type": 0}
        events.append({"name": "[memory]", "ph": "i", "ts": at, "args": args})
    trace = RankTrace(0, events, 0, 1, {}, {}, 1.0)
    assert dict(live_tracks(RecordedRank(trace))) == {
        "bytes of tensors": [(5, 100), (45, 108)],
        "bytes of tensors, one process alone": [(25, 30), (27, 37), (29, 30)],
    }
    assert summarize(trace).parts[""].peak_bytes == 108


def test_each_step_sends_what_the_buckets_hold(traced):
    trace, _ = traced
    for rank in (0, 1):
        for start, end in spans(trace, rank, r"step \d+"):
            sent = [
                e["args"]["bytes"]
                for e in trace["traceEvents"]
                if e["ph"] == "X"
                and e["name"] == "all-reduce"
                and e["pid"] == rank
                and start <= e["ts"] < end
            ]
            # Four buckets of 408,064 bytes together, and the mean of the loss.
            assert len(sent) == 5
            assert sum(sent) == 408_064 + 4


def test_memory_grows_in_a_step_and_is_never_negative(traced):
    trace, _ = traced
    for rank in (0, 1):
        live = [
            e["args"]["live"]
            for e in trace["traceEvents"]
            if e["ph"] == "C" and e["pid"] == rank
        ]
        assert min(live) >= 0
        assert max(live) > 16 / 4 * 408_064, "weights, gradients, two moments"


def test_the_table_says_where_the_time_went_beside_the_estimate(traced):
    _, out = traced
    rows = {
        line.split()[0]: line.split()
        for line in out.splitlines()
        if re.match(r"\s*(rank|0|1|all)  ", line)
    }
    assert {"rank", "0", "1", "all"} <= set(rows)
    for rank in "01":
        shares = [int(cell[:-1]) for cell in rows[rank] if cell.endswith("%")]
        computing, _, exposed, waiting, other = shares
        assert abs(computing + exposed + other - 100) <= 2
        assert computing > 0 and waiting <= exposed + other
    assert len([cell for cell in rows["all"] if cell.endswith("%")]) == 5
    heads = rows["rank"]
    assert heads[-1] == "tokens/s"
    each, other, whole = (
        int(rows[row][-1].replace(",", "")) for row in ("0", "1", "all")
    )
    assert whole - 2 <= each + other  # all are as fast as the slowest
    sent = re.findall(r"sent (\d+) kB, 408 kB by formula \(([\d.]+) times\)", out)
    assert len(sent) == 2
    assert all(1 <= float(ratio) < 1.1 for _, ratio in sent)


@pytest.mark.slow
def test_each_way_has_its_own_table(tmp_path):
    path = tmp_path / "zero.json"
    ended = run("zero", "--steps", "2", "--trace", path)
    assert ended.returncode == 0, ended.stderr
    for name in ("1 with all_reduce", "1 with reduce", "2", "3"):
        assert f"\nstage {name}:\n" in ended.stdout
    steps = [
        event["name"]
        for event in json.loads(path.read_text())["traceEvents"]
        if event["ph"] == "X" and event["pid"] == 0 and ", step " in event["name"]
    ]
    assert len(steps) == len(set(steps)) == 8


@pytest.mark.slow
def test_a_comparison_records_both_sides_after_its_steps(tmp_path, real_cache):
    path = tmp_path / "tp.json"
    command = [sys.executable, "-m", "readerkit", "compare", "tp"]
    ended = subprocess.run(
        [*command, "--steps", "6", "--trace", str(path)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    assert "\nmini:\n" in ended.stdout and "\nupstream:\n" in ended.stdout
    trace = json.loads(path.read_text())
    for rank in (0, 1):
        for side in ("mini", "upstream"):
            steps = spans(trace, rank, rf"{side}, step \d+")
            assert len(steps) == 5
            begin, end = steps[0]
            live = [
                (each["ts"], each["args"]["live"])
                for each in trace["traceEvents"]
                if each["name"] == f"bytes of tensors, {side}" and each["pid"] == rank
            ]
            assert all(begin <= at <= end for at, _ in live)
            assert max(size for _, size in live) > live[0][1] > 0


@pytest.mark.further
def test_a_comparison_that_is_watched_shows_where_the_time_of_both_went(real_cache):
    command = [sys.executable, "-m", "readerkit", "compare", "ddp", "--steps", "6"]
    ended = subprocess.run(
        [*command, "--watch"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, ended.stderr
    _, mini, upstream = re.split(r"\n(?:mini|upstream):\n", ended.stdout)
    for part in (mini, upstream):
        assert [row.split()[0] for row in part.splitlines()[:4]] == [
            "rank", "0", "1", "all",
        ]  # fmt: skip
        assert "peak" in part.splitlines()[0].split()
    assert "trace of all ranks" not in ended.stdout


def test_a_record_alone_is_not_watched(capfd):
    assert compare_command.main(["ddp", "--watch", "--json"]) == 2
    assert "--watch and --json: got both, expected one" in capfd.readouterr().err


def test_waiting_is_set_beside_the_bubble():
    of = RankMetrics(0, 3, 1.0, 0.5, 0.0, 0.3, 0.3, None, 4, 80.0, None, None)
    ranks = [RankSummary(0, {"": of}, {"": Expected(idle=0.2)}, 1e9)]
    assert "waiting 30%, bubble 20% by the schedule (1.50 times)" in table(ranks)


def test_a_wait_for_nothing_that_is_under_way_is_other_and_told():
    events = [
        event("step 0", 0, 100),
        event("c10d::allreduce_", 0, 2),
        event("wait", 10, 80),
        event("gloo:all_reduce", 30, 60, tid=2),
        event("aten::add", 75, 90),
    ]
    summary = summarize(RankTrace(0, events, 0, 1, {}, {}, 1.0))
    [found] = summary.parts.values()
    assert found.exposed_s == pytest.approx(32e-6)  # the call, and the transfer
    assert found.waiting_s == pytest.approx(70e-6)
    assert found.late_s == pytest.approx((20 + 15) * 1e-6)
    assert found.late_s <= found.other_s == pytest.approx(53e-6)
    told = "rank 0: waiting 70%, for 35% of the step with nothing under way: "
    assert told in table([summary])
    less = replace(found, late_s=4e-6)
    assert "under way" not in table([replace(summary, parts={"": less})])


@pytest.mark.parametrize(
    ("sent", "as_all_reduces", "why"),
    [
        (4_610, 0, ""),
        (7_200, 0, ", with 518 bytes a call besides the tensors"),
        (
            7_200, 2, ", as gloo makes all-reduces of reduce-scatters, "
            "and sends twice as much for them",
        ),
        (12_000, 0, ""),  # more than messages cost: nobody says why
        (12_000, 2, ""),  # more than twice as much
        (4_700, 2, ""),
    ],
)  # fmt: skip
def test_why_clearly_more_is_sent_than_by_formula_is_said(sent, as_all_reduces, why):
    of = RankMetrics(
        0, 3, 1.0, 0.5, 0.0, 0.3, 0.3, sent, 5, 80.0, None, None, as_all_reduces
    )
    due = {"": Expected(sent_bytes=4_610)}
    told = table([RankSummary(rank, {"": of}, due, 1e9) for rank in (0, 1)])
    times = re.escape(f"by formula ({sent / 4_610:.2f} times){why}")
    assert len(re.findall(rf"{times}$", told, re.MULTILINE)) == 2


def test_a_reduce_scatter_that_gloo_makes_of_an_all_reduce_is_counted():
    def steps(moved):
        events = [event("step 0", 0, 10), event("step 1", 20, 40)]
        for at in (2, 22, 30):
            events += [
                event("c10d::_reduce_scatter_base_", at, at + 2),
                event(f"gloo:{moved}", at + 1, at + 5, tid=2),
            ]
        [found] = summarize(RankTrace(0, events, 0, 1, {}, {}, 1.0)).parts.values()
        return found.as_all_reduces

    assert steps("all_reduce") == 2
    assert steps("reduce_scatter") == 0


RATES = Rates(2, 8, 0.02, 0.001, 10**6, 0.101, 300_000_000)
"""Of two ranks: 10 MB sent in a second, and a call in a millisecond."""


def test_each_rank_and_all_stand_beside_what_the_estimates_make_of_the_rates():
    known = measured_rates(RATES)
    assert (known.call_s, known.bytes_per_s) == (0.001, pytest.approx(1e7))
    due = Estimated(
        sent_bytes=1e5, flops=0.05 * known.flops_per_s, peak_bytes=6e6, axis="pp"
    )
    ranks = []
    for rank, slower in enumerate((1, 2)):
        of = RankMetrics(
            rank, 3, 0.128 * slower, 0.06, 0.0, 0.028, 0.0, None, 4, 1000 / slower,
            None, 316_000_000,
        )  # fmt: skip
        made = predict({"": of}, {"": due}, RATES)
        assert made[""].step_s == pytest.approx(0.05 + 4 * 0.001 + 1e5 / 1e7)
        ranks.append(RankSummary(rank, {"": of}, {"": due}, 1e9, RATES, made))
    told = table(ranks).splitlines()
    assert told[-4:-1] == [
        "rank 0 beside the model: step 128.00 ms, 64.00 ms (2.00 times); "
        "tokens/s 500, 1,000 (0.50 times); exposed 28.00 ms, 14.00 ms (2.00 times); "
        "resident 316 MB, 306 MB (1.03 times)",
        "rank 1 beside the model: step 256.00 ms, 64.00 ms (4.00 times); "
        "tokens/s 250, 1,000 (0.25 times); exposed 28.00 ms, 14.00 ms (2.00 times); "
        "resident 316 MB, 306 MB (1.03 times)",
        "all ranks beside the model: step 256.00 ms, 64.00 ms (4.00 times); "
        "tokens/s 500, 2,000 (0.25 times); exposed 56.00 ms, 28.00 ms (2.00 times); "
        "resident 632 MB, 612 MB (1.03 times)",
    ]
    assert told[-1].startswith("the model: the sum of estimate step, with ")
    assert told[-1].endswith(" alone, 1.00 ms a call, 10 MB/s sent, by rank 0")


def test_one_rank_alone_which_sends_nothing_has_no_speed_of_sending():
    made = Estimated(flops=1e9).at(replace(RATES, ranks=1), calls=4)
    assert made is not None
    assert made.rates.endswith(" alone, 1.00 ms a call")


def test_what_nobody_measured_is_predicted_by_nobody():
    of = RankMetrics(0, 3, 1.0, 0.5, 0.0, 0.3, 0.3, None, 4, 80.0, None, None)
    due = {"": Estimated(flops=1e9)}
    assert predict({"": of}, due, None) == {}
    assert predict({"": of}, {"": Expected(flops=1e9)}, RATES) == {}
    assert "the model" not in table([RankSummary(0, {"": of}, due, 1e9)])


@pytest.mark.parametrize(
    ("target", "says"),
    [
        ("no/such/folder.json", "there is no folder no/such"),
        (".", "is a folder: name a file in it"),
        ("/dev/null", "is a device: name a file"),
        ("/proc/trace.json", "/proc cannot be written"),
        ("a" * 256, "a name of 256 characters is too long"),
    ],
)
def test_a_trace_that_cannot_be_written_is_told_before_anything_runs(
    tmp_path, target, says, monkeypatch, capfd
):
    monkeypatch.chdir(tmp_path)

    def never(rank, args):
        raise AssertionError("no process may start")

    assert launch.main(never, description="never", argv=["--trace", target]) == 2
    said = capfd.readouterr()
    assert says in said.err
    assert (said.out, said.err.count("\n")) == ("", 1)
    assert not list(tmp_path.iterdir())


def test_a_trace_that_the_disk_does_not_take_is_named_and_not_there(tmp_path):
    trace = RankTrace(0, [event("step 0", 0, 60)], 0, 1, {}, {}, 1.0)
    most, hardest = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10, hardest))
    try:
        said = f"cannot write {tmp_path}/trace.json: File too large"
        with pytest.raises(OutputError, match=re.escape(said)):
            run_trace.write(tmp_path / "trace.json", [trace])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (most, hardest))
    assert not list(tmp_path.iterdir())


KEEPING = [
    pytest.param(("run", "ddp"), "--trace", "rank   ", id="run --trace"),
    pytest.param(
        ("compare", "ddp"), "--trace", "rank   ", marks=pytest.mark.further,
        id="compare --trace",
    ),
    pytest.param(
        ("compare", "ddp"), "--save", "beside torch = ", marks=pytest.mark.further,
        id="compare --save",
    ),
]  # fmt: skip


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize(("words", "option", "table"), KEEPING)
@pytest.mark.further
def test_what_was_measured_is_told_though_its_file_cannot_be_written(
    words, option, table, tmp_path, real_cache
):
    (folder := tmp_path / "kept").mkdir()
    target = folder / "trace.json" if option == "--trace" else folder
    with subprocess.Popen(
        [*RUN[:-1], *words, "--steps", "6", option, str(target)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        # It has looked at the folder before it starts its tracker and two ranks.
        wait_for(lambda: len(children(process.pid)) == 5, 120)
        folder.rmdir()
        folder.write_text("in the way")  # as good as a disk that is full by then
        out, err = process.communicate(timeout=120)
    assert process.returncode == 1
    assert table in out
    assert (err.count("\n"), "Traceback" in err) == (1, False), err
    assert str(folder) in err


@pytest.mark.further
def test_the_tokens_of_a_generation_are_its_steps(tmp_path):
    path = tmp_path / "inference.json"
    ended = run("inference", "--steps", "4", "--trace", path)
    assert ended.returncode == 0, ended.stderr
    trace = json.loads(path.read_text())
    for part, count in (("the prompt", 1), ("a token", 3)):
        assert f"\n{part}:\n" in ended.stdout
        assert len(spans(trace, 0, rf"{part}, step \d+")) == count
    assert ended.stdout.count("by formula") == 4


@pytest.mark.further
def test_a_step_of_a_schedule_that_sleeps_is_no_communication(tmp_path):
    path = tmp_path / "zero_bubble.json"
    ended = run("zero_bubble", "--steps", "3", "--step-ms", "10", "--trace", path)
    assert ended.returncode == 0, ended.stderr
    trace = json.loads(path.read_text())
    order = ended.stdout.splitlines()[0].split(" | ")[1].split()
    for start, end in spans(trace, 0, r"step \d"):
        names = [
            (event["ts"], event["name"])
            for event in trace["traceEvents"]
            if event["ph"] == "X"
            and event["pid"] == 0
            and start <= event["ts"] < end
            and re.fullmatch(r"[FBW]\d[ab]", event["name"])
        ]
        assert [name for _, name in sorted(names)] == [o for o in order if o != "."]
    beside = r"rank \d beside the model: step ([\d.]+) (m?s), ([\d.]+) (m?s)"
    told = re.findall(beside, ended.stdout)
    assert len(told) == 2
    for took, unit, due, due_unit in told:
        took = float(took) * (1000 if unit == "s" else 1)
        due = float(due) * (1000 if due_unit == "s" else 1)
        assert took > 8 * 6 * 10, "each of its steps sleeps so long"
        assert due > 8 * 6 * 10, "and so the estimate has it"
        assert took / 20 < due < 20 * took
    rows = re.findall(r"^ +[01] .*s +(\d+)% +\d+% +(\d+)%", ended.stdout, re.M)
    for computing, exposed in rows:
        assert int(computing) > int(exposed), "it sleeps inside a step that computes"
    assert len(rows) == 2


@pytest.mark.further
def test_what_one_process_kept_is_taken_off_no_peak_that_comes_after_it(tmp_path):
    path = tmp_path / "layout.json"
    ended = run("layout", "--steps", "3", "--trace", path)
    assert ended.returncode == 0, ended.stderr
    peaks = re.findall(r"^ +[01] .* (-?[\d.]+) [kM]B +[\d,]+$", ended.stdout, re.M)
    assert len(peaks) == 4 and all(float(peak) > 0 for peak in peaks)


def test_runs_that_write_one_file_at_once_leave_one_of_them_whole(tmp_path):
    path = tmp_path / "same.json"
    of_rank = RankTrace(0, [], 0, 1, {}, {}, 1.0)
    with ThreadPoolExecutor(4) as pool:
        for _ in pool.map(lambda _: write(path, [of_rank]), range(40)):
            assert json.loads(path.read_text())["traceEvents"] is not None
    assert [each.name for each in tmp_path.iterdir()] == ["same.json"]


def test_of_one_step_a_trace_says_that_it_warms_up_and_how_many_show_another():
    told = table([RankSummary(0, {}, {}, 1e9)])
    why = "the first warms up, and no other was taken"
    assert told == f"no step to show: {why}: --steps 3 shows one"
