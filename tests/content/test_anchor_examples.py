"""What people read about anchors is so: every example, against the pinned source."""

from __future__ import annotations

import re

import pytest
import yaml
from msgspec import convert

from readerkit.anchors import Anchor, resolve
from readerkit.app.check_claims import open_ground
from readerkit.app.library import open_library
from readerkit.claims.check_dispatch import hold
from readerkit.content.claims import CHECKS, Claim
from readerkit.errors import AnchorError
from tests.conftest import REAL_CACHE
from tests.content.test_annotations import sources
from tests.helpers import ROOT, run

PAGE = (ROOT / "annotations" / "README.md").read_text()
EXAMPLES = re.findall(r"```yaml\n# (.+)\n((?s:.+?))```", PAGE)


def source_of(path: str):
    return sources(path.partition("/")[0].replace("torch", "pytorch")).file(path)


@pytest.mark.parametrize(("says", "text"), EXAMPLES)
def test_example_is_what_its_comment_says(says, text):
    anchor = Anchor.parse(yaml.safe_load(text))
    kind, _, message = says.partition(": ")
    if kind == "error":
        with pytest.raises(AnchorError) as caught:
            resolve(anchor, source_of(anchor.file))
        assert message in str(caught.value)
    else:
        span = resolve(anchor, source_of(anchor.file))
        count = span.last - span.first + 1
        assert says == f"{count} line" + "s" * (count > 1)


def test_page_shows_every_key_of_an_anchor():
    keys = {key for _, text in EXAMPLES for key in yaml.safe_load(text)}
    fields = Anchor("a", "b", "c", "d", "e", "f", 1, 1).to_yaml()
    assert keys == set(fields)
    assert len(EXAMPLES) + len(CLAIMED) == PAGE.count("```yaml")


CLAIMED = re.findall(r"```yaml\n(- says: (?s:.+?))```", PAGE)


@pytest.fixture(scope="module")
def ground():
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("READERKIT_CACHE", str(REAL_CACHE))
        yield open_ground(open_library(ROOT))


@pytest.mark.parametrize("text", CLAIMED)
def test_example_of_a_claim_holds(text, ground):
    [claim] = (convert(each, Claim) for each in yaml.safe_load(text))
    proof = hold(claim, ground)
    is_open = claim.kind == "undecided"
    assert proof.state == ("open" if is_open else "holds"), proof.found


def test_page_shows_every_kind_of_claim():
    kinds = {key for text in CLAIMED for each in yaml.safe_load(text) for key in each}
    assert kinds == {"says", *CHECKS}


LAYERS = "megatron/core/tensor_parallel/layers.py"
GROUP = "torch/distributed/fsdp/_fully_shard/_fsdp_param_group.py"
RUNTIME = "torch/distributed/fsdp/_runtime_utils.py"
ROW, COLUMN = "RowParallelLinear", "ColumnParallelLinear"
LINEAR = "LinearWithGradAccumulationAndAsyncCommunication"

# file, what someone wrote, the symbol that was meant
SYMBOLS = [
    (LAYERS, f"{ROW}.foward", f"{ROW}.forward"),
    (LAYERS, "RowParalelLinear.forward", f"{ROW}.forward"),
    (LAYERS, f"{ROW}.Forward", f"{ROW}.forward"),
    (LAYERS, "row_parallel_linear", ROW),
    (LAYERS, f"layers.{ROW}.forward", f"{ROW}.forward"),
    (LAYERS, f"{ROW}.forward_impl", f"{ROW}._forward_impl"),
    (LAYERS, "VocabParallelEmbeding.forward", "VocabParallelEmbedding.forward"),
    (LAYERS, f"{LINEAR[:-13]}Allreduce.backward", f"{LINEAR}.backward"),
    (GROUP, "FSDPParamGroup.post_backwards", "FSDPParamGroup.post_backward"),
    (GROUP, "ParamGroup.unshard", "FSDPParamGroup.unshard"),
    (GROUP, "FSDPParamGroup.waitForUnshard", "FSDPParamGroup.wait_for_unshard"),
    (RUNTIME, "_reduce_gradient", "_reduce_grad"),
]  # fmt: skip


@pytest.mark.parametrize(("path", "written", "meant"), SYMBOLS)
def test_misspelt_symbol_is_guessed_first(path, written, meant):
    with pytest.raises(AnchorError) as caught:
        resolve(Anchor(path, symbol=written), source_of(path))
    assert caught.value.candidates[0].startswith(f"did you mean {meant}? ")


def test_symbol_without_its_class_gets_every_class_that_has_it():
    with pytest.raises(AnchorError) as caught:
        resolve(Anchor(LAYERS, symbol="forward"), source_of(LAYERS))
    for owner in (ROW, COLUMN, LINEAR, "VocabParallelEmbedding"):
        assert f"did you mean {owner}.forward?" in str(caught.value)


def test_method_that_a_class_lacks_gets_those_it_has():
    with pytest.raises(AnchorError, match=f"{ROW} defines __init__, _forward_impl, "):
        resolve(Anchor(LAYERS, symbol=f"{ROW}.reduce_scatter"), source_of(LAYERS))


# file, symbol, the pattern that someone wrote, what the nearest line holds
CODE = [
    (LAYERS, f"{ROW}.forward", "reduce_scater_to_sequence_parallel_region(...)",
     "reduce_scatter_to_sequence_parallel_region("),
    (LAYERS, f"{ROW}.forward", "reduce_scatter_to_tensor_parallel_region(...)",
     "reduce_scatter_to_sequence_parallel_region("),
    (LAYERS, f"{ROW}.forward", "if self.sequence_parallel:",
     "elif self.sequence_parallel:"),
    (LAYERS, f"{LINEAR}.backward", "grad_input = grad_output.mm(weight)",
     "grad_input = grad_output.matmul(weight)"),
    (LAYERS, f"{LINEAR}.backward", "handle = dist.all_reduce(...)",
     "handle = torch.distributed.all_reduce("),
    (LAYERS, f"{LINEAR}.backward",
     "torch.distributed.all_reduce(grad_input, group=tp_group, async_op=False)",
     "handle = torch.distributed.all_reduce("),
    (GROUP, "FSDPParamGroup.unshard", "foreach_all_gather(self.fsdp_params)",
     "= foreach_all_gather("),
    (GROUP, "FSDPParamGroup.wait_for_unshard", "foreach_all_gather_copy_outs(...)",
     "foreach_all_gather_copy_out("),
    (RUNTIME, "_unshard", "handle.pre_unshards()", "handle.pre_unshard()"),
]  # fmt: skip


@pytest.mark.parametrize(("path", "symbol", "written", "near"), CODE)
def test_misspelt_pattern_gets_the_line_that_was_meant(path, symbol, written, near):
    with pytest.raises(AnchorError) as caught:
        resolve(Anchor(path, symbol=symbol, code=written), source_of(path))
    first = next(row for row in caught.value.candidates if row.startswith("near: "))
    assert near in first


@pytest.mark.parametrize("kind", ["annotations", "mirror"])
def test_schema_for_editors_is_the_one_that_is_made_anew(
    kind, real_cache, capsys
) -> None:
    made = run(capsys, "annotate", "--schema", kind, "--book", str(ROOT)).out
    path = ROOT / "annotations" / f"{kind}.schema.json"
    assert made == path.read_text(), (
        f"readerkit annotate --schema {kind} > annotations/{kind}.schema.json"
    )
