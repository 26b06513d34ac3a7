"""The planner against the functions it sums up, and against what people run."""

import re
from dataclasses import replace

import pytest

from readerkit.errors import EstimateError
from readerkit.estimate.layout import Layout
from readerkit.estimate.lint import Setting, check_batch, lint
from readerkit.estimate.memory import most_loaded
from readerkit.estimate.plan import plan
from readerkit.estimate.plan_search import PlanRequest, divisors
from readerkit.estimate.states import precision
from readerkit.estimate.step_time import step_time
from tests.readerkit.estimate.catalog import CLUSTERS, shape

H100 = CLUSTERS["dgx-h100"]
SEVENTY = PlanRequest(
    shape=shape("llama-2-70b"), cluster=H100, gpus=64, global_batch=1024
)


@pytest.fixture(scope="module")
def seventy():
    return plan(SEVENTY, top=1000)


def test_70b_on_64_gpus_keeps_tp_inside_the_node(seventy):
    best = seventy.ranked[0].layout
    assert (best.dp, best.tp, best.pp, best.zero) == (4, 4, 4, 1)
    assert best.recompute == "none"
    assert seventy.memory_reason.startswith("does not fit: 18 B × 68.98 B parameters")
    assert "so 18 GPUs at the least" in seventy.memory_reason


def test_405b_on_8192_gpus_gets_the_tp_and_pp_of_llama_3():
    # Dubey et al. 2407.21783, table 4, row 1: tp 8, cp 1, pp 16, dp 64. The plan cuts
    # the context in two as well, because full activations need it.
    question = PlanRequest(
        shape=shape("llama-3.1-405b"),
        cluster=H100,
        gpus=8192,
        global_batch=2048,
        sequence=8192,
    )
    best = plan(question, top=1).ranked[0]
    assert (best.layout.tp, best.layout.pp) == (8, 16)
    assert (best.layout.dp, best.layout.cp) == (32, 2)
    assert best.time.mfu == pytest.approx(0.43, abs=0.02)


def test_ranked_layouts_fit_and_come_in_order(seventy):
    assert len(seventy.ranked) == seventy.fitting > 20
    totals = [each.time.total for each in seventy.ranked]
    assert totals == sorted(totals)
    for each in seventy.ranked:
        assert each.memory.total <= SEVENTY.usable_bytes
        assert each.layout.world_size == 64
        assert each.layout.global_batch == 1024


def test_all_of_the_best_keep_tensor_parallel_inside_a_node(seventy):
    for each in seventy.ranked[:10]:
        assert each.layout.tp <= 8


def test_fsdp_beside_a_pipeline_is_a_layout_as_llama_3_ran_it():
    # Dubey et al. 2407.21783, section 3.3.2: the order is tp, cp, pp, dp, dp is FSDP
    # that shards optimizer and gradients. nvidia-smi shows 85.5e9 bytes of an H100.
    question = PlanRequest(
        shape=shape("llama-3.1-405b"),
        cluster=replace(H100, gpu=replace(H100.gpu, memory_bytes=85_520_809_984)),
        gpus=16384,
        global_batch=2048,
        sequence=8192,
    )
    found = {
        (each.dp, each.tp, each.pp, each.cp, each.zero)
        for each in (ranked.layout for ranked in plan(question, top=60).ranked)
    }
    assert (128, 8, 16, 1, 2) in found


def brute_force(question):
    """Weigh every variant by the functions that are shown to people, one by one."""
    kept, best = precision(question.convention), {}
    gpus, batch = question.gpus, question.global_batch
    for tp in divisors(gpus):
        for pp in divisors(gpus // tp):
            dp = gpus // tp // pp
            for zero in (0, 1, 2, 3):
                if zero and dp == 1:
                    continue
                for micro in (1, 2, 4, 8, 16):
                    for recompute in ("none", "full"):
                        for v in range(1, 9):
                            if batch % (dp * micro):
                                continue
                            layout = Layout(
                                dp=dp,
                                tp=tp,
                                pp=pp,
                                zero=zero,
                                micro_batch=micro,
                                microbatches=batch // dp // micro,
                                recompute=recompute,
                                virtual_stages=v,
                                schedule="interleaved" if v > 1 else "1f1b",
                                sequence=question.sequence,
                                flash=True,
                            )
                            try:
                                time = step_time(
                                    question.shape,
                                    layout,
                                    question.cluster,
                                    question.assumptions,
                                )
                            except EstimateError:
                                continue
                            held = most_loaded(question.shape, layout, kept).total
                            if held <= question.usable_bytes:
                                key = (dp, tp, pp, zero)
                                best[key] = min(best.get(key, 1e99), time.total)
    return best


@pytest.mark.parametrize("name", ["llama-2-13b", "gpt2-xl"])
def test_search_finds_what_weighing_each_variant_finds(name):
    question = PlanRequest(shape=shape(name), cluster=H100, gpus=16, global_batch=64)
    made = plan(question, top=1000)
    found = {
        (each.layout.dp, each.layout.tp, each.layout.pp, each.layout.zero): (
            each.time.total
        )
        for each in made.ranked
    }
    expected = brute_force(question)
    assert found.keys() == expected.keys()
    for key, seconds in expected.items():
        assert found[key] == pytest.approx(seconds), key


def test_every_layout_is_ranked_or_rejected(seventy):
    short = plan(SEVENTY, top=3)
    dropped = sum(each.count for each in short.rejected)
    assert short.fitting - 3 == sum(
        each.count for each in short.rejected if each.why.startswith("slower")
    )
    everything = sum(each.count for each in seventy.rejected)
    assert dropped == everything + short.fitting - 3
    for each in short.rejected:
        assert re.search(r"\d", each.example), each


def test_experts_and_long_contexts_get_axes_of_their_own():
    mixtral = PlanRequest(
        shape=shape("mixtral-8x22b"), cluster=H100, gpus=128, global_batch=1024
    )
    assert plan(mixtral).ranked[0].layout.ep > 1
    long = replace(SEVENTY, gpus=256, global_batch=64, sequence=131072)
    assert plan(long).ranked[0].layout.cp > 1


def test_slow_network_moves_the_plan_away_from_sharded_data_parallel():
    slow = replace(SEVENTY, cluster=CLUSTERS["h100-ethernet"])
    fast, slowed = plan(SEVENTY, top=1), plan(slow, top=1)
    assert slowed.ranked[0].time.total > fast.ranked[0].time.total
    assert slowed.ranked[0].layout.tp <= 8
    assert slowed.ranked[0].layout.zero < 3


@pytest.mark.parametrize(
    ("name", "tokens", "days", "memory", "time"),
    [
        (
            "llama-2-70b",
            None,
            None,
            "does not fit:",
            "a step of 4,194,304 tokens takes",
        ),
        ("llama-2-70b", 2e12, 365, "does not fit:", "too slow on one:"),
        ("llama-2-70b", 2e12, 30, "does not fit:", "too slow even so:"),
        ("gpt2", 1e9, 30, "fits one GPU", "not too slow on one:"),
    ],
)
def test_both_reasons_are_answered(name, tokens, days, memory, time):
    question = replace(SEVENTY, shape=shape(name), tokens=tokens, deadline_days=days)
    made = plan(question, top=1)
    assert made.memory_reason.startswith(memory)
    assert made.time_reason.startswith(time)


def test_nothing_fits_is_an_answer_too():
    made = plan(replace(SEVENTY, gpus=8, shape=shape("gpt3-175b")))
    assert made.ranked == ()
    assert made.time_reason == "no time: nothing fits"
    assert made.rejected[0].why == "does not fit"
    assert "nearest:" in made.rejected[0].example


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"gpus": 0}, "gpus: got 0, expected at least 1"),
        ({"gpus": 12}, "gpus: got 12, expected whole nodes of 8"),
        ({"global_batch": 0}, "global batch: got 0"),
        ({"reserve": 1.5}, "reserve: got 1.5, expected a share"),
        ({"tokens": -1}, "tokens: got -1"),
        ({"convention": "mixed"}, "unknown precision"),
    ],
)
def test_a_question_that_cannot_be_is_named(change, message):
    with pytest.raises(EstimateError, match=message):
        plan(replace(SEVENTY, **change))


# --- lint ---


def findings(model="llama-2-70b", cluster="dgx-h100", **layout):
    given = {"flash": True, "recompute": "none"} | layout
    setting = Setting(
        shape=shape(model), layout=Layout.parse(given), cluster=CLUSTERS[cluster]
    )
    return {finding.code: finding for finding in lint(setting)}


def test_the_best_plan_has_nothing_to_condemn(seventy):
    best = seventy.ranked[0].layout
    setting = Setting(shape=SEVENTY.shape, layout=best, cluster=H100)
    assert lint(setting) == []


def test_tensor_parallel_across_nodes_is_condemned_by_its_share():
    found = findings(cluster="h100-ethernet", tp=16, pp=4, microbatches=64)
    number = found["tp-across-nodes"].number
    across, inside = map(int, re.findall(r"(\d+)%", number))
    assert across > 80 > inside
    assert "450 GB/s a GPU inside, 1.56 GB/s between" in number


def test_sixteen_stages_and_four_microbatches():
    found = findings(tp=8, pp=16, microbatches=4)
    assert "bubble 78.9% of total time, 375.0% of ideal" in (
        found["few-microbatches"].number
    )
    # What it proposes instead is enough.
    assert "60 microbatches" in found["few-microbatches"].instead
    assert "few-microbatches" not in findings(tp=8, pp=16, microbatches=60)


def test_groups_that_do_not_divide_a_node_are_counted():
    found = findings("gpt2", tp=3, dp=8, sequence=3072)
    # Of ranks 0-2, 3-5, 6-8, ... each third group reaches over a multiple of 8.
    assert found["straddling-groups"].number.startswith("2 of 8 groups")
    assert "straddling-groups" not in findings("gpt2", tp=2, dp=12)


def test_less_than_a_sequence_for_each_replica():
    finding = check_batch(global_batch=64, dp=128)
    assert finding.number.startswith("0.5 sequences for each replica: 64 of them")
    assert check_batch(global_batch=128, dp=128) is None


def test_tiny_batches_do_not_pay_for_their_sums():
    found = findings("llama-2-7b", "h100-ethernet", dp=128, sequence=2048, zero=1)
    share = int(re.match(r"(\d+)%", found["tiny-batch-large-dp"].number)[1])
    assert share > 80


def test_accumulation_that_buys_nothing():
    found = findings("gpt2", dp=8, microbatches=8, sequence=1024, zero=2)
    assert found["needless-accumulation"].instead == "--micro-batch 8"
    full = findings("gpt2", dp=8, micro_batch=8, sequence=1024, zero=2)
    assert "needless-accumulation" not in full


def test_accumulation_that_sends_the_same_bytes_is_left_alone():
    found = findings("gpt2", dp=8, microbatches=8, sequence=1024, zero=1)
    assert found == {}


def test_sums_after_each_microbatch_are_the_fault_and_not_the_batch():
    given = {"dp": 128, "sequence": 2048, "microbatches": 8, "flash": True}
    setting = Setting(
        shape=shape("llama-2-7b"),
        layout=Layout.parse(given | {"recompute": "none"}),
        cluster=CLUSTERS["dgx-h100"],
        no_sync=False,
    )
    found = lint(setting)
    assert found[0].code == "needless-sync"
    sent, waiting = map(float, re.findall(r"(?:sends|and) ([\d.]+)", found[0].number))
    assert sent > 4 * waiting
    # With it mended, the rest is as it would be.
    assert found[1:] == lint(replace(setting, no_sync=True))


def test_a_zero_bubble_schedule_with_too_few_microbatches_is_found():
    given = {"tp": 8, "pp": 16, "schedule": "zb-h1"}
    few = findings(**given, microbatches=4)["few-microbatches"]
    # ((p - 1)(F + B) - (m - 1) W) / (m (F + B + W)) = 27 / 12
    assert "225.0% of ideal" in few.number
    assert few.instead.startswith("20 microbatches for 20%")
    assert "few-microbatches" not in findings(**given, microbatches=20)
    assert "few-microbatches" in findings(**given, microbatches=19)


def test_stages_of_zero_without_replicas_are_left_alone():
    assert "zero-with-accumulation" not in findings(tp=8, pp=8, microbatches=64, zero=2)


def test_zero_and_recompute_that_are_not_needed():
    assert "zero-with-accumulation" in findings(
        dp=2, tp=8, pp=8, microbatches=64, zero=2
    )
    found = findings("llama-2-7b", dp=8, zero=3, microbatches=8, sequence=1024)
    assert "stage 1 once" in found["zero-with-accumulation"].number
    found = findings("gpt2", dp=8, recompute="full", sequence=1024)
    assert found["needless-recompute"].instead == "--recompute none"


def test_what_does_not_fit_says_when_it_fails():
    found = findings("llama-2-70b", dp=8)
    assert "fails at 'model on the GPU'" in found["does-not-fit"].number
