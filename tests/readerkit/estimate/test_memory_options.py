"""Memory under offload, partial recompute, FP8 states, experts cut on their own."""

import pytest

from readerkit.errors import EstimateError
from readerkit.estimate.activations import LayerKind, layer_activations
from readerkit.estimate.fit import misfits
from readerkit.estimate.layer_estimate import estimate_layers
from readerkit.estimate.layout import Layout
from readerkit.estimate.memory import (
    activation_pieces,
    most_loaded,
    rank_layer_bytes,
    rank_weights,
)
from readerkit.estimate.memory_estimates import estimate_states, estimate_training
from readerkit.estimate.offload import offload_traffic
from readerkit.estimate.states import PRECISIONS
from readerkit.estimate.step_time import Assumptions, microbatch_flops, step_time
from readerkit.estimate.traffic_estimate import estimate_step_traffic
from tests.readerkit.estimate.catalog import CLUSTERS, shape


@pytest.mark.parametrize(
    ("layers", "thousands", "published"),
    [(80, 10, 1.83), (100, 20, 9.16), (128, 25, 18.31), (195, 64, 182.81)],
)
def test_states_on_nvme_are_those_of_zero_infinity(layers, thousands, published):
    # Rajbhandari et al. 2104.07857, figure 2a: TiB a model, of 12 nl hd² parameters.
    ranks, hidden = 512, thousands * 1024
    estimate = estimate_states(
        **{"params": 12 * layers * hidden**2, "stage": 3, "world_size": ranks},
        **{"convention": "mixed-20", "offload": "states-nvme"},
    )
    share = estimate["NVMe, this GPU's share"]
    assert round(share * ranks / 2**40, 2) == published
    assert estimate["total"] == 0


def test_zero_offload_leaves_the_weights_on_the_gpu():
    # Ren et al. 2101.06840, section 3: 2 of 16 bytes stay, an eighth.
    given = {"params": 10**10, "world_size": 1, "convention": "mixed-16"}
    off = estimate_states(**given, stage=2, offload="optimizer-cpu")
    assert off["total"] == 2 * 10**10
    assert off["CPU, this GPU's share"] == 14 * 10**10
    llama, kept = shape("llama-2-7b"), PRECISIONS["mixed-16"]
    away = Layout.parse({"dp": 4, "zero": 3, "offload": "states-cpu"})
    held = most_loaded(llama, away, kept)
    assert (held.weights, held.gradients, held.optimizer, held.master) == (0, 0, 0, 0)
    assert held.gathered > 0
    estimate = estimate_training(llama, away, convention="mixed-16")
    assert estimate["CPU, this GPU's share"] == 16 * 6_738_415_616 / 4


def test_experts_have_tensor_parallel_ranks_of_their_own():
    # Liu et al. 2504.14960, section 3: attention and experts are cut apart.
    mixtral = shape("mixtral-8x7b")
    alike, apart = (
        Layout.parse({"dp": 2, "tp": 4, **more})
        for more in ({"ep": 2}, {"ep": 8, "etp": 1})
    )
    assert (alike.expert_replicas, apart.expert_replicas) == (1, 1)
    both = [rank_weights(mixtral, each, 0) for each in (alike, apart)]
    assert both[0] == both[1]
    assert misfits(mixtral, Layout.parse({"tp": 4, "ep": 8, "etp": 1}))


def test_modules_that_are_recomputed_are_not_kept():
    # By hand, with Megatron's --recompute-modules; bf16, one sequence of 4096.
    v3 = shape("deepseek-v3")

    def kept(recompute, moe=True):
        return sum(
            layer_activations(
                v3, LayerKind(4096, 1, 1, False, recompute, True, moe)
            ).values()
        )

    none, hidden = kept("none"), 4096 * 7168
    assert none - kept("layernorm") == 2 * 2 * hidden
    assert none - kept("mla_up_proj") == 2 * 4096 * 128 * (2 * 192 + 128)
    assert none - kept("moe_act") == 2 * 4096 * 8 * 2048
    assert none - kept("shared_experts") == 2 * 3 * 4096 * 2048
    inside = 2 * 3 * 4096 * (8 + 1) * 2048 + 2 * hidden * 8
    assert none - kept("moe") == inside
    assert kept("none", moe=False) - kept("mlp", moe=False) == 2 * 3 * 4096 * 18432
    assert none - kept("moe,layernorm") == inside + 4 * hidden
    assert kept("selective") == kept("core_attn") == none - 4 * 128 * 4096


def test_full_recompute_of_some_layers_keeps_the_others_whole():
    llama, sizes = shape("llama-2-7b"), {"zero": 0, "sequence": 4096, "flash": True}
    none, full, some = (
        most_loaded(llama, Layout.parse(sizes | each), PRECISIONS["mixed-16"])
        for each in (
            {"recompute": "none"},
            {"recompute": "full"},
            {"recompute": "full", "recompute_layers": 8},
        )
    )
    expected = full.activations * 8 / 32 + none.activations * 24 / 32
    assert some.activations == pytest.approx(expected)
    # Of a rank with 3 dense layers and 58 with experts, the first 8: 3 and 5.
    v3, cut = shape("deepseek-v3"), {"zero": 0, "recompute": "full", "flash": True}
    given = Layout.parse(cut | {"recompute_layers": 8})
    (some_of, all_of) = (
        activation_pieces(v3, each, [0])[0].one_pass
        for each in (given, Layout.parse(cut))
    )
    left = rank_layer_bytes(v3, given, "none", moe=True)
    left -= rank_layer_bytes(v3, given, "full", moe=True)
    assert some_of == all_of + 53 * left


def test_modules_that_a_model_has_not_are_refused():
    for modules in ("mla_up_proj", "mlp,moe_act"):
        found = misfits(shape("llama-2-7b"), Layout.parse({"recompute": modules}))
        assert len(found) == 1 and found[0].startswith("recompute: got")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"recompute": "mpl"}, "unknown recompute: got 'mpl'"),
        ({"recompute": "full,mlp"}, "unknown recompute: got 'full'"),
        ({"recompute_layers": 2}, "recompute_layers: got 2 with selective"),
        (
            {"offload": "states-cpu"},
            "zero: got 1 with --offload states-cpu, expected 3",
        ),
        ({"offload": "disk"}, "unknown offload"),
    ],
)
def test_what_cannot_be_recomputed_or_moved_is_named(given, message):
    with pytest.raises(EstimateError, match=message):
        Layout.parse(given)


def sent(name, **cut):
    estimate = estimate_step_traffic(shape(name), Layout.parse({"flash": True} | cut))
    return {item.name: item.value for item in estimate.items}


def test_experts_ranks_of_their_own_take_their_tokens_from_all():
    """Liu et al. 2504.14960, section 3: copies to the experts, then to all parts."""
    cut = {"tp": 4, "dp": 4, "recompute": "none", "zero": 0}
    part = 4096 * 4096 * 2 / 4  # bf16, a rank's tokens under sequence parallelism
    alike = sent("mixtral-8x7b", **cut, ep=4)
    apart = sent("mixtral-8x7b", **cut, ep=8, etp=2)
    assert apart["etp: all-gather"] == 2 * 32 * 2 * 2 * part / 2
    assert apart["etp: all-gather"] == apart["etp: reduce-scatter"]
    assert apart["ep: all-to-all"] == 4 * 32 * 2 * part * 7 / 8
    # The dispatcher gathers whole copies where an expert is cut like attention, too.
    assert alike["etp: all-gather"] == 2 * 32 * 2 * 4 * part * 3 / 4
    assert alike["etp: all-gather"] == alike["etp: reduce-scatter"]
    # Attention's alone are left under tp: one block of a layer's two.
    assert (
        apart["tp: all-gather"] == 3 * 32 * 4 * part * 3 / 4 == alike["tp: all-gather"]
    )
    # Ranks that have the same tokens gather none, and sum what they make of them.
    whole = sent("mixtral-8x7b", **cut, ep=4, sequence_parallel=False)
    assert "etp: all-gather" not in whole
    assert whole["tp: all-reduce"] == 2 * 64 * 2 * 4 * part * 3 / 4
    folded = Layout.parse(cut | {"ep": 8, "etp": 2, "sequence_parallel": False})
    found = misfits(shape("mixtral-8x7b"), folded)
    assert "expected sequence parallelism" in " ".join(found)


def test_experts_that_all_tokens_share_are_under_tensor_parallelism():
    v3 = shape("deepseek-v3")
    assert v3.shared_ffn and (v3.plain_layers, v3.moe_layers) == (3, 58)
    found = sent("deepseek-v3", tp=4, dp=8, ep=32, etp=1, recompute="none", zero=0)
    size = 4096 * v3.hidden * 2
    # Of the feed-forwards; attention gathers latents instead.
    assert found["tp: all-gather"] == 3 * (3 + 58) * size * 3 / 4


@pytest.mark.parametrize(
    ("cut", "copies"),
    [
        ({}, 2),
        ({"dp": 2, "ep": 4, "etp": 1}, 1 / 2),
        ({"dp": 2, "ep": 2, "etp": 2}, 1),
        ({"sequence_parallel": False}, 2),
        ({"tp": 1, "dp": 4, "ep": 2, "etp": 2}, 4),
    ],
)
def test_an_expert_keeps_the_copies_that_its_ranks_have_gathered(cut, copies):
    # Each token goes to two experts: 2 s h K bytes where all of them are gathered.
    layout = Layout.parse({"tp": 4, "recompute": "none", "flash": True, **cut})
    mixtral = shape("mixtral-8x7b")
    [layer] = estimate_layers(mixtral, layout)
    assert layer["tokens at their experts"] == copies * 2 * 4096 * mixtral.hidden


@pytest.mark.parametrize(
    ("recompute", "layers", "blocks"),
    [("full", 0, 64), ("full", 8, 16), ("mlp", 0, 32), ("layernorm", 0, 0)],
)
def test_what_is_run_again_travels_and_computes_again(recompute, layers, blocks):
    plain = {"tp": 8, "recompute": "none", "flash": True}
    cut = plain | {"recompute": recompute, "recompute_layers": layers}
    again, none = sent("llama-2-7b", **cut), sent("llama-2-7b", **plain)
    block = 4096 * 4096 * 2 * 7 / 8
    for name in ("tp: all-gather", "tp: reduce-scatter"):
        assert again[name] - none[name] == blocks * block
    flops, before = (
        microbatch_flops(shape("llama-2-7b"), Layout.parse(each), [(0, (32, 0))])
        for each in (cut, plain)
    )
    mlp = 2 * 3 * 4096 * 11008
    whole = 2 * 4 * 4096**2 + mlp + 2 * 4096 * 4096  # and causal scores
    one = {"full": whole, "mlp": mlp, "layernorm": 0}[recompute]
    assert flops - before == pytest.approx(one * (layers or 32) * 4096 / 8)


def test_offload_moves_what_its_papers_say():
    """Ren et al. 2101.06840, section 3: 2 M of gradients down, 2 M of weights up.

    Rajbhandari et al. 2104.07857, section 4.1: weights are loaded twice.
    """
    llama, kept = shape("llama-2-7b"), PRECISIONS["mixed-16"]
    count = 6_738_415_616

    def moved(zero, offload):
        cut = {"dp": 4, "microbatches": 2, "zero": zero, "offload": offload}
        found = offload_traffic(llama, Layout.parse(cut), kept)
        return {each.way: each.bytes / count for each in found}

    assert moved(1, "optimizer-cpu") == {"to the CPU": 2 / 4, "from the CPU": 2 / 4}
    assert moved(2, "optimizer-cpu") == {"to the CPU": 4 / 4, "from the CPU": 2 / 4}
    both = {"to the CPU": 4 / 4, "from the CPU": 8 / 4}
    assert moved(3, "states-cpu") == both
    nvme = {"to NVMe": (2 + 12 + 2) / 4, "from NVMe": (2 + 12 + 8) / 4}
    assert moved(3, "states-nvme") == both | nvme
    assert moved(0, "none") == {}


def test_a_step_with_offload_takes_what_its_links_take():
    layout = Layout.parse({"dp": 8, "zero": 2, "offload": "optimizer-cpu"})
    llama, cluster = shape("llama-2-7b"), CLUSTERS["dgx-h100"]
    with pytest.raises(EstimateError, match="expected --pcie-bandwidth"):
        step_time(llama, layout, cluster, Assumptions())
    assumed = Assumptions(overlap=0, pcie_bandwidth=25e9)
    time = step_time(llama, layout, cluster, assumed)
    assert time.exposed["PCIe"] == pytest.approx(6 * 6_738_415_616 / 8 / 25e9)


def test_fp8_states_have_activations_in_sixteen_bits():
    for name, total in (("fp8-13", 13), ("fp8lm-7", 7)):
        assert (PRECISIONS[name].total, PRECISIONS[name].activation) == (total, 2)
