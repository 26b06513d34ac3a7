"""The banks that ship: every key resolves, computes, and passes as its own answer."""

from __future__ import annotations

import ast
import dataclasses
import json
import re
from collections import Counter
from functools import cache
from itertools import combinations, product

import pytest
from msgspec.structs import replace

from readerkit.app.check_quiz import known_names
from readerkit.app.library import open_library
from readerkit.app.page_questions import VARIANTS, variants_of
from readerkit.app.quiz_banks import QuizBanks
from readerkit.app.quiz_keys import resolve_keys
from readerkit.quiz.lint import SHUFFLED, lint_bank
from readerkit.quiz.lockfile import QuizLock, ResolvedPlace, differences
from readerkit.quiz.rank_groups import rank_groups
from tests.conftest import REAL_CACHE
from tests.helpers import ROOT

pytestmark = pytest.mark.sampled

PHASE = 35
BANKS = QuizBanks(ROOT)
MAX_WORDS = 90
SEEDS = range(25)


@cache
def library():
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("READERKIT_CACHE", str(REAL_CACHE))
        patch.setenv("READERKIT_DATA", "/nowhere")
        patch.delenv("READERKIT_BOOK", raising=False)
        return open_library()


@cache
def bank():
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("READERKIT_CACHE", str(REAL_CACHE))
        return BANKS.bank(PHASE)


@cache
def source(upstream: str, path: str) -> list[str]:
    found = library().sources(library().upstream(upstream)).file(path)
    return found.data.decode().split("\n")


def lines(place: ResolvedPlace) -> list[str]:
    return source(place.upstream, place.path)[place.first - 1 : place.last]


def test_every_key_is_what_the_lock_says_and_lint_is_clean():
    now, faults = resolve_keys(bank(), library(), BANKS.lock(PHASE))
    assert faults == []
    again = "look at each, then: readerkit quiz lint 35 --update-lock"
    assert differences(BANKS.lock(PHASE), now) == [], again
    assert (
        lint_bank(dataclasses.replace(bank(), lock=now), known_names(library())) == []
    )


@pytest.mark.parametrize(
    "part",
    [
        "the fault ddp/sum-for-mean",
        "mini_impls/ddp.py",
        "mini_impls/faults/works/ddp.py",
        "mini_impls/faults/works/measures.py",
    ],
)
def test_fault_is_run_again_where_a_part_of_it_changed(part):
    lock = BANKS.lock(PHASE)
    name = "ddp-fault-sum"
    known = lock.facts[name]
    other = replace(known, made_from={**known.made_from, part: "0" * 64})
    stale = replace(lock, facts={**lock.facts, name: other})
    now, [fault] = resolve_keys(bank(), library(), stale)
    assert name not in now.facts
    assert f"{part} has changed: was 000000000000" in str(fault)
    assert "quiz lint --update-lock" in str(fault)


def test_lock_is_written_as_it_is_read():
    text = BANKS.lock_path(PHASE).read_text("utf-8")
    assert QuizLock.parse(text, "keys.lock").to_text() == text


def test_there_are_questions_enough_of_each_kind():
    types = Counter(question.type for question in bank().questions.values())
    assert sum(types.values()) >= 70
    assert types["numeric"] >= 20
    assert types["locate"] >= 18
    assert types["predict"] >= 10
    assert types["sketch"] >= 6
    assert len(types) == 10


def test_both_upstreams_are_read():
    places = bank().lock.places
    keys = [place.upstream for slot, place in places.items() if slot.endswith("/key")]
    assert Counter(keys)["megatron"] >= 8
    assert Counter(keys)["pytorch"] >= 8


def test_every_objective_and_difficulty_is_asked():
    asked = Counter(question.objective for question in bank().questions.values())
    assert min(asked[objective] for objective in bank().objectives) >= 2
    levels = Counter(question.difficulty for question in bank().questions.values())
    assert min(levels[level] for level in (1, 2, 3)) >= 15


def test_what_nothing_shuffles_is_one_variant_for_the_same_values():
    again = 0
    for name, question in bank().questions.items():
        if isinstance(question, SHUFFLED) or not question.parameters:
            continue
        seen = {}
        for seed in SEEDS:
            values = repr(bank().scene(name, seed)[0].values)
            again += values in seen
            variant = bank().variant(name, seed)
            assert seen.setdefault(values, variant) == variant, (name, seed)
    assert again > 100  # that lint looks at once


def test_key_passes_as_its_own_answer():
    for name, seed in product(bank().questions, SEEDS):
        variant = bank().variant(name, seed)
        assert variant.grade(variant.typed_key).is_right, (name, seed)
        assert variant.told.solution, (name, seed)


def test_texts_are_short_and_whole():
    for (name, question), seed in product(bank().questions.items(), (0, 7)):
        variant = bank().variant(name, seed)
        for text in (variant.prompt.prompt, variant.told.explanation):
            assert "{" not in text and "  " not in text, name
            assert len(text.split()) <= MAX_WORDS, name
        assert question.explanation[-1] in ".!?", name


def names_its_convention(question) -> bool:
    unit, prompt = question.unit, question.prompt
    bytes_of = {"GB": "1e9 bytes", "MB": "1e6 bytes", "GiB": "2^30 bytes"}
    if unit in bytes_of:
        return bytes_of[unit] in prompt
    if unit == "%":
        said = r"per cent of the|share of (the|what|a) |total|ideal|peak|efficiency"
        return bool(re.search(said, " ".join(prompt.split())))
    words = {"B": "byte", "s": "second", "min": "minute", "h": "hour", "days": "day"}
    return unit in ("", None, "x", "$", "parameters") or words.get(unit, unit) in prompt


def test_numeric_prompt_names_its_convention():
    numeric = [q for q in bank().questions.values() if q.type == "numeric"]
    assert numeric
    assert [q.id for q in numeric if not names_its_convention(q)] == []


def test_a_number_that_is_asked_for_in_bytes_may_be_typed_with_its_unit():
    for question in bank().questions.values():
        if question.type == "numeric" and re.search(
            r"(?i)how many bytes", question.prompt
        ):
            variant = bank().variant(question.id, 0)
            assert variant.grade(f"{variant.key} bytes").is_right, question.id


def test_parametric_questions_have_several_variants():
    for question in bank().questions.values():
        if question.type == "numeric" and not question.own_figures:
            keys = {bank().variant(question.id, seed).key for seed in range(40)}
            assert len(keys) >= 3, question.id


def test_no_two_variants_on_a_page_ask_the_same():
    for question in bank().questions.values():
        prompts = [each.variant.prompt for each in variants_of(bank(), question.id)]
        assert all(a != b for a, b in combinations(prompts, 2)), question.id
        if question.type == "numeric" and not question.own_figures:
            assert len(prompts) == VARIANTS, question.id


def test_no_upstream_text_stands_in_a_question():
    for name, question in bank().questions.items():
        texts = [question.prompt, question.explanation, *question.own_texts()]
        for place in bank().variant(name, 0).told.links:
            long = {line.strip() for line in lines(place) if len(line.strip()) > 50}
            assert not any(line in text for line in long for text in texts), name


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("tp-close-line", "reduce_scatter_to_sequence_parallel_region("),
        ("tp-dgrad", "torch.distributed.all_reduce(grad_input"),
        ("tp-regather", "dist_all_gather_func("),
        ("tp-loss-max", "torch.distributed.all_reduce("),
        ("pp-warmup-line", "p2p_communicator.pp_group.rank() - 1"),
        ("pp-oldest-out", "input_tensors.pop(0)"),
        ("pp-tied-line", "group=embd_group"),
        ("ddp-ready", "golden_per_param_grad_ready_counts"),
        ("ddp-first-step", "sys.maxsize"),
        ("fsdp-prefetch", "post_forward_order[curr_index - 1]"),
        ("fsdp-root", "post_forward_mesh_info = None"),
        ("fsdp-int-one", "reshard_after_forward = False"),
        ("mem-adam-when", "len(state) == 0"),
        ("rec-rng", "_set_all_rng_states(*ctx.rng_states)"),
    ],
)
def test_locked_line_is_the_line_that_is_meant(name, text):
    place = bank().lock.places[f"{name}/key"]
    assert text in " ".join(line.strip() for line in lines(place))


def test_groups_are_those_of_megatron():
    """The pinned function itself is the oracle: pure arithmetic on lists."""
    path = "megatron/core/parallel_state.py"
    tree = ast.parse("\n".join(source("megatron", path)))
    name = "generate_masked_orthogonal_rank_groups"
    [function] = [n for n in tree.body if getattr(n, "name", "") == name]
    scope = {"List": list}
    exec(compile(ast.Module([function], []), path, "exec"), scope)
    for tp, dp, pp in product((1, 2, 4), (1, 2, 3), (1, 2, 4)):
        sizes = {"tp": tp, "dp": dp, "pp": pp}
        for axis in sizes:
            mask = [each == axis for each in sizes]
            theirs = scope[name](tp * dp * pp, [tp, dp, pp], mask)
            ours = rank_groups(sizes, axis)
            assert ours == tuple(sorted(map(tuple, theirs)))


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("tp-record-forward", 1 + 2 * 2 + 3),
        ("tp-record-backward", 2 * 2 + 1),
        ("sp-record-gathers", 4 + 4 + 1),
        ("ddp-record-bytes", 4 * 102_016),
        ("fsdp-record-held", 4 * 102_016 + 4 * 29),
        ("pp-record-bytes", 2 * 32 * 64 * 4 * 4),
    ],
)
def test_what_a_record_says_is_what_the_explanation_counts(name, key):
    assert bank().variant(name, 0).key == key


@pytest.mark.parametrize(
    ("name", "low", "high"), [("run-mfu", 1, 70), ("run-days", 1, 400)]
)
def test_no_variant_asks_about_a_run_that_nobody_makes(name, low, high):
    keys = {bank().variant(name, seed).key for seed in range(200)}
    assert low < min(keys) < max(keys) < high


def test_a_strip_shows_every_call_of_its_record_but_the_one_that_is_asked_for():
    strips = [each for each in bank().questions.values() if getattr(each, "gap", None)]
    assert len(strips) >= 3
    for question in strips:
        path = ROOT / "annotations" / "records" / f"{question.source.record}.json"
        [of_rank] = [e for e in json.loads(path.read_text())["events"] if not e["rank"]]
        phase = question.source.phase
        ops = [e["op"] for e in of_rank["upstream"] if phase in (None, e["phase"])]
        first = question.source.skip or 0
        ops = ops[first : first + (question.source.take or len(ops))]
        variant = bank().variant(question.id, 0)
        ops[question.gap - 1] = ""
        assert (*ops,) == variant.prompt.strip
        gap = variant.typed_key
        assert variant.grade(gap).credit == 1
        for word in question.words:
            if word != gap:
                grade = variant.grade(word)
                assert grade.credit == 0 and grade.remarks, (question.id, word)
