"""The planner against the functions it sums up, and against what people run."""

import re
from dataclasses import replace
from itertools import product
from math import inf

import pytest

from readerkit.app.interface_translation import say_in
from readerkit.errors import EstimateError
from readerkit.estimate.findings import Setting
from readerkit.estimate.fit import misfits
from readerkit.estimate.layout import Layout
from readerkit.estimate.lint import check_batch, lint
from readerkit.estimate.plan import plan
from readerkit.estimate.plan_cuts import PlanRequest, cut_of
from readerkit.estimate.schedules import SOURCES, STAGGERED
from readerkit.estimate.step_time import Assumptions
from readerkit.model.language import said
from tests.readerkit.estimate.catalog import CLUSTERS, shape

pytestmark = pytest.mark.sampled

H100 = CLUSTERS["dgx-h100"]
SEVENTY_PARAMETERS = 68_976_648_192
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
        cluster=H100.with_memory(85_520_809_984),
        gpus=16384,
        global_batch=2048,
        sequence=8192,
    )
    found = {
        (each.dp, each.tp, each.pp, each.cp, each.zero)
        for each in (ranked.layout for ranked in plan(question, top=60).ranked)
    }
    assert (128, 8, 16, 1, 2) in found


def layouts(question):
    """Yield every layout that a question allows, whether or not it can be."""
    gpus, experts = question.gpus, question.shape.experts
    sizes = [n for n in range(1, gpus + 1) if gpus % n == 0]
    ways = list(product(question.schedules, range(1, 9)))
    for tp, pp, cp, zero, micro in product(*[sizes] * 3, range(4), (1, 2, 4, 8, 16)):
        dp = gpus // (tp * pp * cp)
        if dp * tp * pp * cp != gpus or question.global_batch % (dp * micro):
            continue
        if cp > 1 and question.sequence // cp < 4096:
            continue
        for (schedule, v), ep, etp, recompute, offload in product(
            ways if pp > 1 else [("1f1b", 1)],
            [n for n in range(1, experts + 1) if experts % n == 0] if experts else [1],
            (0, *sizes) if question.etps is None else (0,),
            ("none", "full"),
            question.offloads,
        ):
            if etp != tp:
                layout = Layout(
                    **{"dp": dp, "tp": tp, "pp": pp, "cp": cp, "ep": ep, "etp": etp},
                    **{"zero": zero, "micro_batch": micro, "recompute": recompute},
                    **{"schedule": schedule, "virtual_stages": v, "flash": True},
                    microbatches=question.global_batch // dp // micro,
                    sequence=question.sequence,
                    offload=offload,
                )
                # Of one replica nothing is sharded, but for what offload takes.
                least = 1 if offload == "optimizer-cpu" else 0
                if zero == least or (layout.replicas > 1 and zero > least):
                    yield layout


def brute_force(question):
    """Weigh every variant by the functions that are shown to people, one by one."""
    best = {}
    for layout in layouts(question):
        if misfits(question.shape, layout):
            continue
        if question.held(layout) <= question.usable_bytes:
            key = (*cut_of(layout), layout.zero)
            seconds = question.time(layout).total
            best[key] = min(best.get(key, inf), seconds)
    return best


@pytest.mark.parametrize(
    "asked",
    [
        {"shape": shape("llama-2-13b"), "gpus": 16, "global_batch": 64},
        {"shape": shape("gpt2-xl"), "gpus": 16, "global_batch": 64, "sequence": 1024},
        {
            **{"shape": shape("llama-2-13b"), "gpus": 8, "global_batch": 32},
            **{"schedules": tuple(SOURCES), "offloads": ("none", "optimizer-cpu")},
            "assumptions": Assumptions(pcie_bandwidth=25e9),
        },
        {
            **{"shape": shape("mixtral-8x7b"), "gpus": 16, "global_batch": 4},
            **{"sequence": 16384, "etps": None},
        },
        {"shape": shape("deepseek-moe-16b"), "gpus": 16, "global_batch": 32},
    ],
    ids=["plain", "position table", "schedules, offload", "etp, cp", "layers differ"],
)
def test_search_finds_what_weighing_each_variant_finds(asked):
    question = PlanRequest(cluster=H100, **asked)
    found = {
        (*cut_of(each.layout), each.layout.zero): each.time.total
        for each in plan(question, top=10_000).ranked
    }
    expected = brute_force(question)
    assert found.keys() == expected.keys() != set()
    for key, seconds in expected.items():
        assert found[key] == pytest.approx(seconds), key


@pytest.mark.parametrize(
    ("schedule", "weights", "idle"),
    [
        # Qi et al. 2401.10241, table 2 and section 6; DeepSeek-V3 2412.19437, table 2:
        # (p - 1)(F + B - W) = p - 1; none; none; (p / 2 - 1)(F&B + B - 3 W) = p - 2 of
        # F = B = W = 1, where a microbatch is 3. DualPipe holds the weights twice.
        ("1f1b", 1, lambda p: p - 1),
        ("zb-h1", 1, lambda p: (p - 1) / 3),
        ("zb-h2", 1, lambda p: 0),
        ("zb-v", 1, lambda p: 0),
        ("dualpipe", 2, lambda p: (p / 2 - 1) * 2 / 3),
    ],
)
def test_a_schedule_that_is_asked_for_has_its_own_bubble_and_memory(
    schedule, weights, idle
):
    question = replace(SEVENTY, schedules=(schedule,))
    piped = [
        each
        for each in plan(question, top=1000).ranked
        if each.layout.pp > 1 and each.layout.recompute == "none"
    ]
    assert piped
    for each in piped:
        layout, time = each.layout, each.time
        assert layout.schedule == schedule
        blocking = sum(time.exposed.get(axis, 0) for axis in ("tp", "pp"))
        one = (time.compute + blocking) / layout.microbatches
        assert time.bubble == pytest.approx(idle(layout.pp) * one)
        whole = 64 * each.memory.dense / layout.dp
        assert whole / SEVENTY_PARAMETERS == pytest.approx(weights, rel=0.15)
        told = f"ranks of {schedule} end one after another" in " ".join(each.reasons)
        assert told == (schedule in STAGGERED)


def test_a_batch_too_small_for_a_schedule_is_named():
    # DeepSeek-V3 2412.19437, section 3.2.1: both directions fill with p microbatches.
    small = replace(SEVENTY, schedules=("dualpipe",), global_batch=8)
    [lost] = [each for each in plan(small).rejected if "no pipeline" in each.why]
    assert lost.why == "no pipeline (dualpipe)"
    assert re.search(r"microbatches: got \d+, expected at least 2 p = ", lost.example)


def test_experts_get_tensor_parallel_ranks_of_their_own_where_asked():
    question = PlanRequest(
        shape=shape("mixtral-8x22b"),
        **{"cluster": H100, "gpus": 128, "global_batch": 1024, "etps": (1,)},
    )
    ranked = plan(question).ranked
    folded = [each for each in ranked if each.layout.folds_experts]
    assert folded and all(each.layout.etp == 1 for each in folded)
    for each in folded:
        # 8 experts of three 6144 × 16384 matrices in each of 56 layers, over ep alone.
        layers = 56 / each.layout.pp
        assert each.memory.expert == pytest.approx(
            layers * 8 * 3 * 6144 * 16384 / each.layout.ep, rel=0.02
        )
        assert any(reason.startswith("etp 1: ") for reason in each.reasons)
    assert not any(
        each.layout.etp for each in plan(replace(question, etps=(0,))).ranked
    )


def test_what_would_fit_with_offload_is_named_and_ranked_where_it_is_asked_for():
    question = PlanRequest(
        shape=shape("gpt3-175b"),
        **{"cluster": H100, "gpus": 16, "global_batch": 1024, "sequence": 2048},
    )
    bare = plan(question)
    [hint] = [each for each in bare.rejected if each.why.startswith("would fit")]
    assert not bare.ranked and hint.why == "would fit with optimizer-cpu"
    asked = replace(
        question,
        offloads=("optimizer-cpu",),
        assumptions=Assumptions(pcie_bandwidth=25e9),
    )
    ranked = plan(asked, top=100).ranked
    assert len(ranked) == hint.count
    for each in ranked:
        assert (each.memory.gradients, each.memory.optimizer) == (0, 0)
        assert each.time.exposed["PCIe"] > 0
    with pytest.raises(EstimateError, match="got no bandwidth of PCIe"):
        plan(replace(question, offloads=("optimizer-cpu",)))


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


def test_what_became_of_the_others_is_said_in_spanish(seventy):
    say = say_in("es")
    others = plan(seventy.question, top=1).rejected
    told = {str(each.why): said(each.why, say) for each in others}
    assert told["slower: communication of tp"] == "más lentas: comunicación de tp"
    assert told["context cut too short"] == "contexto cortado demasiado corto"
    for each in others:
        assert said(each.why, say) != each.why
        assert said(each.example, say) != each.example


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
        ({"schedules": ("zb-v", "zbv")}, "unknown schedule: got 'zbv'"),
        ({"offloads": ("cpu",)}, "unknown offload: got 'cpu'"),
        ({"etps": (1,)}, "etp: got 1, expected none"),
        ({"etps": None}, "etp: got all, expected none"),
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


def test_no_layout_is_weighed_that_its_schedule_cannot_have():
    # Inside a node there would be two replicas, and half of the microbatches for each.
    found = findings(tp=16, pp=2, microbatches=4, schedule="dualpipe")
    assert found["tp-across-nodes"].number.endswith("between)")
    assert "against" not in found["tp-across-nodes"].number


def test_sixteen_stages_and_four_microbatches():
    found = findings(tp=8, pp=16, microbatches=4)
    assert "bubble 78.9% of total time, 375.0% of ideal" in (
        found["few-microbatches"].number
    )
    # What it proposes instead is enough.
    assert "60 microbatches" in found["few-microbatches"].instead
    assert "few-microbatches" not in findings(tp=8, pp=16, microbatches=60)


def test_microbatches_that_are_proposed_come_in_groups_where_a_schedule_has_them():
    # 14 would be few enough: (p - 1) / (v m) = 7 / 28; but no multiple of 8.
    given = {"tp": 8, "pp": 8, "virtual_stages": 2, "schedule": "interleaved"}
    few = findings(**given, microbatches=8)["few-microbatches"]
    assert few.instead.startswith("16 microbatches for 20%")
    assert "few-microbatches" not in findings(**given, microbatches=16)


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
