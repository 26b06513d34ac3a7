"""``readerkit estimate`` as a person and as a program use it."""

import json
import math
import re
import xml.etree.ElementTree as ET
from functools import cache

import click
import pytest

from readerkit.app.catalog import find_model
from readerkit.app.interface_translation import read_words, say_of_estimates
from readerkit.app.page_estimates import work_out
from readerkit.app.read_chapters import CHAPTERS
from readerkit.commands.estimate import estimate
from readerkit.content.inline_numbers import inline_numbers
from readerkit.estimate.layout import Layout
from readerkit.estimate.memory import most_loaded
from readerkit.estimate.memory_timeline import timeline
from readerkit.estimate.shape import Shape
from readerkit.estimate.sizes import LAYOUT
from readerkit.estimate.states import precision
from readerkit.model.told_parts import in_parts
from readerkit.render.estimate_table import ONE_OF
from readerkit.render.html.instrument_view import NUMBERS
from tests.helpers import (
    ROOT,
    Result,
    run,
    run_on_terminal,
    run_typed,
    write_files,
)
from tests.readerkit.test_cli import README, imported

pytestmark = pytest.mark.sampled

worked_out = cache(work_out)
"""What the site's page of estimates says, asked for where a test is run."""
HEAVY = {"torch", "tree_sitter", "jinja2", "git", "rich", "requests", "numpy"}


def estimates(capsys, *arguments):
    done = run(capsys, "estimate", *arguments, "--json")
    assert (done.code, done.err) == (0, "")
    return json.loads(done.out)


def values(estimate):
    return {item["name"]: item["value"] for item in estimate["items"]}


@pytest.mark.parametrize(
    "arguments",
    [
        ("memory", "--model", "llama-2-7b", "--gpu", "h100-80gb"),
        ("comm", "all-reduce", "10GB", "--ranks", "8", "--bandwidth", "50GB"),
        ("bubble", "-p", "4", "-m", "8", "--grid"),
        ("flops", "--model", "gpt2", "--batch", "8"),
        ("plan", "--model", "gpt2", "--gpus", "8", "--global-batch", "64"),
        ("lint", "--model", "gpt2", "--dp", "8"),
        ("step", "--model", "gpt2", "--dp", "8"),
        ("checkpoint", "--model", "gpt2"),
        ("list", "--prices"),
        ("list",),
    ],
    ids=lambda arguments: arguments[0],
)
def test_start_up_imports_nothing_heavy(arguments):
    assert imported("estimate", *arguments) & HEAVY == set()


def test_every_item_of_a_program_has_formula_source_and_unit(capsys):
    layout = ("--dp", "4", "--tp", "4", "--pp", "4", "--microbatches", "32")
    got = estimates(
        capsys, "memory", "--model", "llama-2-70b", *layout, "--gpu", "h200"
    )
    parameters, memory = got["estimates"]
    assert values(parameters)["parameters"] == 68_976_648_192
    for item in [*parameters["items"], *memory["items"]]:
        assert item["formula"] and item["source"] and item["unit"], item
    assert "mixed-18" in memory["items"][2]["convention"]
    held = [moment["held"] for moment in got["timeline"]]
    assert held[-1] == values(memory)["total"]


CONTEXT = click.Context(estimate)
NAMES = estimate.list_commands(CONTEXT)
EXAMPLES = [
    line.strip()
    for command in (estimate, *(estimate.get_command(CONTEXT, n) for n in NAMES))
    for line in str(command.help).replace("\\\n", " ").splitlines()
    if line.strip().startswith("readerkit estimate ") and "--svg" not in line
]


@cache
def printed(line: str) -> Result:
    """Run a line for a program, once for all that look at what it says."""
    return run_typed(*line.split()[1:], "--json", stdin="")


def test_every_item_of_every_example_names_its_convention_and_source():
    assert {line.split()[2] for line in EXAMPLES} == set(NAMES)
    for line in EXAMPLES:
        done = printed(line)
        assert done.code in (0, 1) and not done.err, (line, done.err)
        for one in json.loads(done.out).get("estimates", []):
            for item in one["items"]:
                assert item["formula"] and item["unit"], (line, item)
                assert item["source"] and item["convention"], (line, item)


MORE = [
    "readerkit estimate memory --model gpt2 --dp 8 --zero 3 --convention cookbook",
    "readerkit estimate memory --model mixtral-8x7b --ep 2 --dp 2 --zero 3 "
    "--convention megatron-report --pp 2 --recompute full",
    "readerkit estimate memory --model llama-3.1-405b --tp 16 --pp 16 "
    "--convention megatron-report --no-sequence-parallel",
    "readerkit estimate memory --model deepseek-v3 --convention megatron-report",
    *(
        f"readerkit estimate memory --params 7B --dp 16 --zero 3 --offload {kind} "
        "--convention deepspeed --largest-layer 1e8 --precision mixed-12"
        for kind in ("none", "states-cpu", "states-nvme", "optimizer-nvme")
    ),
    "readerkit estimate bubble -p 4 -m 8 --schedule zb-v --weight 2",
    "readerkit estimate bubble -p 4 -m 8 --schedule zb-v",
    "readerkit estimate buckets --model deepseek-v2 --pp 4 --virtual-stages 3",
    "readerkit estimate memory --params 1T --dp 8 --zero 3 --offload states-cpu",
    "readerkit estimate memory --model mixtral-8x7b --recompute full",
    "readerkit estimate memory --model deepseek-v3 --inference",
    "readerkit estimate layer --model deepseek-v3",
    "readerkit estimate comm all-reduce 1GB --ranks 8 --compression",
    "readerkit estimate step --model mixtral-8x7b --dp 4 --cp 2 --tp 2 --ep 4 --etp 1",
]
GPT2 = Shape.parse(find_model("gpt2"))
MOMENTS = timeline(most_loaded(GPT2, Layout(), precision("mixed-18")))
AS_IT_IS = re.compile(
    r"(dp|tp|pp|cp|ep|etp): [a-z-]+|[A-Z]+|FLOP/s|FLOPs|PF-days|bytes(/s)?|"
    r"tokens?(/s)?|fraction|seconds|times|buckets?|algbw|busbw|goodput|total|tp × pp|"
    r"6 N D|[a-z0-9-]+, p = \d+, m = \d+, v = \d+|feed-forward|"
    r"in flight on rank \d+|a step on .*|NCCL .*|DeepSpeed's ZeRO-.*|[a-z-]+ over .*"
)
"""Names of the field, units, and what is told with numbers in it."""


def test_what_estimates_print_has_its_spanish_and_nothing_else_has():
    words = read_words().estimates
    said = {text for one in MOMENTS for text in (one.name, one.what)}
    said |= {*ONE_OF, *ONE_OF.values(), *(LAYOUT[name].means for name in NUMBERS)}
    chapters = [each.read_text("utf-8") for each in (ROOT / CHAPTERS).glob("*.md")]
    units = {each.unit for text in chapters for each in inline_numbers(text)}
    said |= units & words.keys()  # others are symbols, or the Spanish text has its own
    for line in EXAMPLES + MORE:
        plain = json.loads(printed(line).out)
        for one in plain.get("estimates", []):
            names = {item["name"] for item in one["items"]}
            said |= names | {item["unit"] for item in one["items"]}
            said |= {one["title"], *one["symbols"].values()}
            assert len({words.get(name, name) for name in names}) == len(names), line
    site = worked_out()
    for group in (*site.more, *site.runs, *site.traffic, site.tools):
        for one in (each.estimate for each in group.worked):
            said |= {*one.symbols.values(), *(item.name for item in one.items)}
            said.add(str(one.title))
    left = said - words.keys()
    assert {text for text in left if not AS_IT_IS.fullmatch(text)} == set()
    assert sorted(words.keys() - said) == []


def test_conventions_and_notes_that_are_printed_have_their_spanish():
    shown = [json.loads(printed(line).out) for line in EXAMPLES + MORE]
    parts = [one for each in shown for one in each.get("estimates", [])]
    said = {text for one in parts for text in one["notes"]}
    said |= {item["convention"] for one in parts for item in one["items"]}
    assert len(said) > 150
    say, known = say_of_estimates("es"), read_words().conventions
    same = [text for text in said if say(text) == text and " " in text]
    assert [text for text in same if not in_parts(text, known)] == []


def test_a_published_run_is_told_in_spanish(capsys):
    asked = ("plan", "--against", "llama-3.1-405b-16384", "--lang", "es")
    out = run(capsys, "estimate", *asked).out
    assert "\nfuente: Dubey et al." in out and "\nse ejecutó con dp 128" in out
    assert "\nel mejor de todos: dp 64" in out and "\nDesvío es lo predicho" in out


@pytest.mark.parametrize("model", ["bloom-176b", "deepseek-v3", "gpt2"])
@pytest.mark.parametrize("asked", [(), ("--inference",)])
def test_what_does_not_fit_is_said_in_both_languages(model, asked, capsys):
    asked = ("estimate", "memory", "--model", model, *asked, "--gpu", "h100-80gb")
    english, spanish = (
        next(line for line in run(capsys, *asked, *more).out.splitlines() if says(line))
        for more, says in (
            ((), re.compile("- (does not fit|fits): ").match),
            (("--lang", "es"), re.compile("- (no cabe|cabe): ").match),
        )
    )
    number = re.compile(r"-?\d+\.\d+ [GT]B")
    assert number.findall(english) == number.findall(spanish) != []
    assert "-" not in english.removeprefix("- ")


def test_an_estimate_is_read_in_spanish_with_the_numbers_of_the_english_one(capsys):
    asked = ("memory", "--model", "gpt2", "--dp", "8", "--zero", "3", "--gpu", "t4")
    spanish = run(capsys, "estimate", *asked, "--lang", "es").out
    english = run(capsys, "estimate", *asked).out
    assert (
        "\noptimizador   " in spanish and "= o × parámetros en la GPU / dp" in spanish
    )
    assert "\nsegundo forward: " in spanish and "h tamaño oculto" in spanish
    counts = re.compile(r"\d{4,}")
    assert sorted(counts.findall(spanish)) == sorted(counts.findall(english))
    assert estimates(capsys, *asked, "--lang", "es") == estimates(capsys, *asked)


ONE_GPU = ("--model", "gpt2", "--cluster", "dgx-h100")


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        (("step", *ONE_GPU, "--dp", "1"), "a step on one GPU of dgx-h100"),
        (("step", *ONE_GPU, "--dp", "2"), "a step on 2 GPUs of dgx-h100"),
        (("plan", *ONE_GPU, "--gpus", "1"), "s on one GPU; whether that is too slow"),
        (("plan", *ONE_GPU, "--gpus", "1"), "weighed; layouts that fit: 1."),
    ],
)
def test_one_gpu_is_said_in_its_number(asked, says, capsys):
    assert says in " ".join(run(capsys, "estimate", *asked).out.split())


def total_of(capsys, command: str) -> float:
    done = run(capsys, *command.split()[1:], "--json")  # 1: it does not fit the GPU
    return values(json.loads(done.out)["estimates"][-1])["total"]


def test_one_configuration_has_one_total_in_readme_help_site_and_plan(capsys):
    [readme] = re.findall(r"^\$ (readerkit estimate memory.*)$", README, re.MULTILINE)
    for page in (("estimate",), ("estimate", "memory")):
        assert f"\n  {readme}\n" in f"{run(capsys, *page, '--help').out}".replace(
            "\n      ", "\n  "
        )
    rows = {
        each.command: each for group in worked_out().memory for each in group.worked
    }
    for command, worked in rows.items():
        total = values(worked.estimate.to_plain())["total"]
        assert total == total_of(capsys, command)
        assert total == total_of(capsys, command.replace(" --flash", ""))
    asked = {*readme.split(), "--flash"}
    [row] = [each for command, each in rows.items() if {*command.split()} == asked]
    assert values(row.estimate.to_plain())["total"] == total_of(capsys, readme)
    [first] = [each for each in worked_out().best.worked if "memory" in each.name]
    assert values(first.estimate.to_plain())["total"] == total_of(capsys, first.command)
    assert worked_out().plan.ranked[0].memory.total == total_of(capsys, first.command)


@pytest.mark.parametrize(
    "arguments",
    [
        ("plan", "--model", "gpt2", "--gpus", "8", "--global-batch", "64"),
        ("memory", "--model", "gpt2", "--gpu", "h100-80gb"),
    ],
    ids=lambda arguments: arguments[0],
)
def test_no_word_is_broken_on_a_narrow_terminal(arguments, capsys):
    whole = run(capsys, "estimate", *arguments).out.split()
    shown = run_on_terminal(40, "estimate", *arguments)
    plain = re.sub(r"\x1b\[[0-9;]*m", "", shown)
    words = {word.strip(".,") for word in plain.split()}
    assert words == {word.strip(".,") for word in whole}  # a plan's rows are blocks
    assert all(len(line) <= 40 for line in plain.split("\n") if " " in line.strip())


def test_a_note_fills_a_narrow_terminal():
    shown = run_on_terminal(40, "estimate", "memory", "--model", "gpt2", "--brief")
    plain = re.sub(r"\x1b\[[0-9;]*m|\r", "", shown)
    assert "\n- GB is 10^9 bytes, GiB 2^30.\n  " in plain
    assert "\n   " not in plain  # as what was folded once more


def test_memory_and_plan_say_whether_scores_are_in_memory(capsys):
    model = ("--model", "llama-2-7b")
    said = {
        ("memory", *model): "flash attention: no scores in memory",
        ("memory", *model, "--no-flash"): "no flash attention: all scores in memory",
        ("plan", *model, "--gpus", "8"): "Flash attention; MFU counts causal",
        ("plan", *model, "--gpus", "8", "--no-flash"): "Attention scores in memory;",
    }
    for arguments, words in said.items():
        shown = run(capsys, "estimate", *arguments).out
        assert words in " ".join(shown.split())


@pytest.mark.parametrize(
    "arguments",
    [
        ("memory", "--model", "llama-2-7b", "--tp", "8", "--gpu", "h100-80gb"),
        ("memory", "--model", "mixtral-8x7b", "--inference", "--gpu", "h200"),
        ("comm", "--model", "llama-2-70b", "--dp", "4", "--tp", "4", "--pp", "4"),
        ("comm", "all-reduce", "1GB", "--ranks", "8", "--compression"),
        ("flops", "--model", "gpt3-175b", "--batch", "1536"),
        ("plan", "--model", "llama-2-70b", "--gpus", "64"),
        ("list",),
    ],
    ids=" ".join,
)
def test_a_table_fits_80_columns(arguments, capsys):
    done = run(capsys, "estimate", *arguments)
    assert (done.code, done.err) == (0, "")
    wide = [line for line in done.out.splitlines() if len(line) > 80]
    assert wide == []


def test_bytes_are_shown_in_both_units(capsys):
    done = run(
        capsys,
        *("estimate", "comm", "all-reduce", "8GiB", "--ranks", "2"),
        *("--bandwidth", "50GB", "--brief"),
    )
    assert "8.59 GB      8.00 GiB" in done.out


def test_zero_half_means_both_stages(capsys):
    for spelling in ("1/2", "ZeRO-1/2", "½"):
        got = estimates(
            capsys,
            *("memory", "--params", "7.5B", "--dp", "64", "--zero", spelling),
            *("--precision", "mixed-16"),
        )
        totals = [round(values(e)["total"] / 1e9, 1) for e in got["estimates"]]
        assert totals == [31.4, 16.6]
        stages = [e["items"][1]["convention"][-12:] for e in got["estimates"]]
        assert stages == ["ZeRO stage 1", "ZeRO stage 2"]


def test_options_replace_sizes_of_a_named_model(capsys):
    got = estimates(capsys, "memory", "--model", "gpt2", "--untied", "--positions", "0")
    count = values(got["estimates"][0])["parameters"]
    assert count == 124_439_808 - 1024 * 768 + 50257 * 768


def test_own_model_and_cluster_come_from_files(capsys, tmp_path):
    write_files(
        tmp_path,
        {
            "tiny.yaml": "tiny:\n  source: mine\n  shape: {layers: 2, hidden: 64, "
            "heads: 4, vocab: 100}\n",
            "mine.yaml": "dated: '2026-01-01'\nclusters:\n  mine: {gpu: rtx-4090, "
            "gpus_per_node: 2, inside_gb_s: 32, between_gb_s: 1, "
            "inside_latency_us: 5, between_latency_us: 20, source: mine}\n",
            "gpu.yaml": "dated: '2026-01-01'\ngpus:\n  h100-80gb: {memory_gb: 1, "
            "memory_gb_s: 1, tflops: 1, link_gb_s: 1, source: mine}\n",
        },
    )
    model, cluster = str(tmp_path / "tiny.yaml"), str(tmp_path / "mine.yaml")
    got = estimates(
        capsys,
        *("plan", "--model", model, "--cluster", cluster, "--gpus", "4"),
        *("--global-batch", "16", "--sequence", "128"),
    )
    asked = ("memory", "--model", model, "--gpu", str(tmp_path / "gpu.yaml"))
    (own,) = [values(e) for e in estimates(capsys, *asked)["estimates"][1:]]
    assert own["GPU memory"] == 10**9  # the user's own, whatever ships by its name
    assert got["cluster"] == "mine"
    assert got["ranked"][0]["layout"]["dp"] == 4


def test_a_file_with_faults_names_the_lines(capsys, tmp_path):
    path = tmp_path / "mine.yaml"
    path.write_text(
        "dated: '2026-01-01'\nclusters:\n  mine:\n    gpu: h200\n    x: 1\n"
    )
    done = run(
        capsys, *("estimate", "plan", "--model", "gpt2", "--gpus", "2"),
        *("--cluster", str(path)),
    )  # fmt: skip
    assert done.code == 2
    assert f"{path}:5:5: unknown key: got 'x'" in done.err
    assert f"{path}:4:5: missing key 'gpus_per_node'" in done.err


def test_grid_and_picture_of_a_schedule(capsys, tmp_path):
    path = tmp_path / "pipeline.svg"
    done = run(
        capsys,
        *("estimate", "bubble", "-p", "2", "-m", "2", "-v", "2"),
        *("--grid", "--svg", str(path)),
    )
    assert (done.code, done.err) == (0, "")
    assert "rank 1 | .   F0a F1a F0b B0b F1b B1b B0a B1a" in done.out
    boxes = [
        node
        for node in ET.fromstring(path.read_text()).iter()
        if node.tag.endswith("}g")
    ]
    assert len(boxes) == 2 * 2 * 2 * 2
    few = ("estimate", "bubble", "-p", "2", "-m", "2")
    many = run(capsys, *few, "-v", "27", "--grid").out
    assert "F0z  F1z  F0aa F1aa" in many  # letters as the columns of a sheet have
    assert " 1 microbatch\n" in run(capsys, *few).out


def test_all_schedules_are_compared_at_the_same_work(capsys):
    got = estimates(capsys, "bubble", "-p", "4", "-m", "8", "--schedule", "all")
    shares = [values(e)["bubble of ideal time"] for e in got["estimates"]]
    # gpipe, 1f1b, zb-h1, zb-h2, zb-v, dualpipe
    assert shares == [3 / 8, 3 / 8, 3 / 24, 0, 0, 2 / 24]
    two = ("-p", "4", "-m", "8", "-v", "2", "--schedule", "all", "--weight", "2")
    got = {
        e["title"].split(",")[0]: e
        for e in estimates(capsys, "bubble", *two)["estimates"]
    }
    shares = {name: values(e)["bubble of ideal time"] for name, e in got.items()}
    # Run, as a weights' half is longer than a forward: 3 of 32, of which half.
    assert (shares["zb-h1"], shares["zb-interleaved"]) == (3 / 32, 3 / 64)


def test_a_schedule_with_too_few_microbatches_is_left_out_and_named(capsys):
    got = estimates(capsys, "bubble", "-p", "4", "-m", "4", "--schedule", "all")
    assert len(got["estimates"]) == 3
    least = {"zb-h2": "2 p - 1 = 7", "zb-v": "2 p - 1 = 7", "dualpipe": "2 p = 8"}
    chunks = "got 1 chunk on each rank, expected more: -v 2"
    chunked = [f"{name}: {chunks}" for name in ("interleaved", "zb-interleaved")]
    assert [said for said in got["not_shown"] if chunks in said] == chunked
    few = [said for said in got["not_shown"] if said not in chunked]
    for (name, many), said in zip(least.items(), few, strict=True):
        assert f"got 4, expected at least {many} for {name}" in said


@pytest.mark.parametrize(
    ("question", "says"),
    [
        ("--params 7B --zero 2 --convention deepspeed --pp 2", "depends on --pp"),
        ("--params 7B --convention cookbook", "depends on --params"),
        ("--model gpt2 --convention cookbook --gpu t4", "depends on --gpu"),
        ("--model gpt2 --convention nemo", "unknown convention: got 'nemo'"),
        ("--zero 2 --convention deepspeed", "of how many parameters?"),
        ("--model gpt2 --inference --weights fp8 --weight-bytes 2", "exclude each"),
        ("--model gpt2 --inference --weights fp9", "unknown format of weights"),
        ("--model gpt2 --inference --offload states-cpu", "depends on --offload"),
    ],
)
def test_what_a_way_of_counting_has_no_use_for_is_refused(capsys, question, says):
    done = run(capsys, "estimate", "memory", *question.split())
    assert (done.code in (1, 2), done.out) == (True, "")
    assert says in done.err


def test_memory_gives_a_verdict_and_exits_by_it(capsys):
    for question, code in (
        (("--params", "70B", "--gpu", "h100-80gb"), 1),
        (("--params", "1B", "--gpu", "h100-80gb"), 0),
        (("--params", "70B"), 0),
        (("--model", "llama-2-7b", "--gpu", "t4"), 1),
        (("--model", "llama-2-70b", "--inference", "--gpu", "h100-80gb"), 1),
        (("--model", "llama-2-7b", "--inference", "--gpu", "h100-80gb"), 0),
    ):
        done = run(capsys, "estimate", "memory", *question)
        assert (done.code, done.err) == (code, ""), question
        assert ("not fit" in done.out) == (code == 1), question


def test_a_picture_says_where_it_is_and_makes_no_folders(capsys, tmp_path):
    bubble = ("estimate", "bubble", "-p", "2", "-m", "2", "--svg")
    done = run(capsys, *bubble, str(tmp_path / "a.svg"))
    assert f"wrote {tmp_path / 'a.svg'}" in done.out
    done = run(capsys, *bubble, str(tmp_path / "no" / "a.svg"))
    assert done.code == 2 and "got no folder" in done.err
    assert not (tmp_path / "no").exists()


def test_lint_exits_1_on_a_finding_and_0_without(capsys):
    layout = ("--dp", "4", "--tp", "4", "--pp", "4", "--flash", "--zero", "1")
    lint = ("estimate", "lint", "--model", "llama-2-70b")
    done = run(capsys, *lint, *layout, "--microbatches", "256")
    assert (done.code, done.out) == (0, "nothing found\n")
    done = run(capsys, *lint, *layout, "--microbatches", "4")
    assert done.code == 1
    assert "few-microbatches" in done.out
    done = run(
        capsys, "estimate", "lint", "--model", "gpt2", "--dp", "128",
        "--global-batch", "64",
    )  # fmt: skip
    assert done.code == 1
    assert "0.5 sequences for each replica" in done.out


def test_plan_that_fits_nothing_exits_1_and_says_so(capsys):
    done = run(capsys, "estimate", "plan", "--model", "gpt3-175b", "--gpus", "8")
    assert done.code == 1
    assert "no layout fits" in done.out
    assert "does not fit; nearest:" in done.out


@pytest.mark.parametrize(
    ("size", "expected"),
    [
        ("400Gb", 50e9),
        ("400Gbit", 50e9),
        ("400Gbps", 50e9),
        ("400Gb/s", 50e9),
        ("50GB", 50e9),
        ("50GB/s", 50e9),
        ("0.05TBps", 50e9),
        ("50e9B", 50e9),
        ("1KiB", 2**10),
        ("1EiB", 2**60),
        ("8Gibit", 2**30),
        ("1kB", 1000),
    ],
)
def test_b_is_a_bit_and_B_a_byte(size, expected, capsys):
    question = ("all-reduce", "1GB", "--ranks", "8", "--bandwidth", size)
    [one] = estimates(capsys, "comm", *question)["estimates"]
    assert values(one)["busbw"] == pytest.approx(expected, rel=1e-12)


def test_a_price_has_two_sources_or_is_unconfirmed_and_shows_its_age(capsys):
    prices = json.loads(run(capsys, "estimate", "list", "--prices", "--json").out)
    for row in prices["prices"]:
        assert row["unconfirmed"] or "; " in row["source"], row
        assert row["age_days"] >= 0
    shown = run(capsys, "estimate", "list", "--prices").out
    assert shown.count(" days old") == len(prices["prices"])


def test_a_vocabulary_is_padded_alike_in_all_of_one_answer(capsys):
    # Megatron pads to a multiple of 128 × tp: 51200 for GPT-3 at tp 8.
    question = ("--model", "gpt3-175b", "--tp", "8", "--vocab-multiple", "128")
    count, memory = estimates(capsys, "memory", *question)["estimates"]
    assert values(count)["token embedding"] == 51200 * 12288
    assert values(count)["parameters"] == values(memory)["parameters"]


@pytest.mark.parametrize(
    ("question", "item", "published", "within"),
    [
        # BLOOM's model card (bigscience/bloom): 329 GB of bf16 weights (GiB), 2.3 TB
        # with optimizer states (TiB).
        ("checkpoint --model bloom-176b", "weights", 329 * 2**30, 0.003),
        ("checkpoint --model bloom-176b", "checkpoint", 2.3 * 2**40, 0.03),
        # Narayanan et al. 2104.04473, section 5.10: 13.8 TB for a trillion.
        ("checkpoint --model megatron-1t", "checkpoint", 13.8e12, 0.03),
        # Kokolis et al. 2410.21680: 1.8 hours on 16,384 GPUs, 0.23 on 131,072.
        (
            f"checkpoint --params 1T --gpus 131072 --gpu-mtbf-hours {1.8 * 16384}",
            "time between failures",
            0.23,
            0.03,
        ),
        # Rajbhandari et al. 1910.02054, table 2: 64 V100 of 32 GB.
        *(
            (
                "largest --gpu v100-32gb --dp 64 --precision mixed-16 "
                f"--reserve 0 --zero {stage}",
                "largest",
                billions * 1e9,
                0.01,
            )
            for stage, billions in ((0, 2), (1, 7.6), (2, 14.4), (3, 128))
        ),
        # Korthikanti et al. 2205.05198, table 2: s b h / t (34 + 5 a s / h).
        (
            "layer --model megatron-175b --tp 8 --no-flash --sequence 2048",
            "kept by a layer",
            2048 * 12288 * (34 + 5 * 96 * 2048 / 12288) / 8,
            1e-12,
        ),
        # Megatron-LM core_v0.16.1 and PyTorch v2.13.0, as pinned.
        ("buckets --model llama-2-7b --dp 8", "Megatron's bucket", 40e6, 0),
        ("buckets --model llama-2-7b --dp 64", "Megatron's bucket", 64e6, 0),
        # Its trainer counts context ranks, too; a table that both ends of a pipeline
        # share has a bucket of its own, experts have theirs.
        ("buckets --model llama-2-7b --dp 64 --cp 4", "Megatron's bucket", 256e6, 0),
        ("buckets --model llama-2-7b --dp 64 --cp 4", "a rank's part of it", 4e6, 0),
        ("buckets --model gpt2 --dp 512 --pp 2", "Megatron's buckets", 2, 0),
        ("buckets --model gpt2 --dp 512 --pp 2 --zero 0", "Megatron's buckets", 1, 0),
        ("buckets --model mixtral-8x22b --pp 4", "Megatron's buckets", 36 + 846, 0),
        # Of the first rank's chunks the first alone is cut: 460,652,544 parameters in
        # 12 buckets, and 4 chunks whole; the next ones have experts, too.
        (
            "buckets --model llama-2-70b --tp 8 --pp 4 --virtual-stages 5",
            "Megatron's buckets",
            12 + 4,
            0,
        ),
        (
            "buckets --model deepseek-moe-16b --pp 2 --virtual-stages 14",
            "Megatron's buckets",
            8 + 2 * 13,
            0,
        ),
        ("buckets --model llama-2-7b --dp 64", "PyTorch's bucket", 25 * 2**20, 0),
        # Narayanan et al. 2104.04473, table 1: 163 TFLOP/s, of hardware FLOPs.
        (
            "step --model megatron-1t --cluster dgx-a100 --tp 8 --pp 64 --dp 6 "
            "--global-batch 3072 --sequence 2048 --recompute full --no-flash "
            "--no-sequence-parallel --zero 0 --precision mixed-20",
            "FLOP/s per GPU",
            163e12 * 3 / 4,
            0.15,
        ),
    ],
)
def test_what_others_published(question, item, published, within, capsys):
    got = estimates(capsys, *question.split())["estimates"][-1]
    assert values(got)[item] == pytest.approx(published, rel=within)


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        # NVIDIA/nccl 2.20.3-1, src/graph/tuning.cc: a base of 8.4, 14 hops of 3.4.
        ("--ranks 8", {"ring": 56.0, "tree": 392, "CollNet chain": 69.2, "NVLS": 23}),
        # 30 hops, 4 of them over the network: 26 × 3.4 + 4 × 14.
        (
            "--ranks 16 --nodes 2",
            {"ring": 152.8, "tree": 448, "NVLS": 41, "NVLS tree": 51},
        ),
        ("--ranks 16 --nodes 2 --cpu amd", {"ring": 8.4 + 26 * 6 + 56}),
        ("--ranks 16 --nodes 2 --operation all-gather", {"ring": 8.4 + 14 * 3.4 + 14}),
        ("--ranks 8 --link pci", {"ring": 8.4 + 14 * 5.7}),
    ],
)
def test_nccls_latency_is_that_of_its_release(question, expected, capsys):
    [one] = estimates(capsys, "nccl", *question.split())["estimates"]
    found = values(one)
    for name, microseconds in expected.items():
        assert found[name] == pytest.approx(microseconds * 1e-6), name


@pytest.mark.parametrize(("hours", "minutes"), [(24, 117), (6, 57), (0.25, 9.1)])
def test_dalys_interval_is_that_of_his_figures(hours, minutes, capsys):
    """Daly 2006, FGCS 22 (3): captions of figures 3, 4 and 5; 5 minutes for a dump."""
    question = ("--params", "1T", "--mtbf-hours", str(hours), "--restart-s", "600")
    speed = f"{14e12 / 300:.0f}B/s"
    [one] = estimates(capsys, "checkpoint", *question, "--write-bandwidth", speed)[
        "estimates"
    ]
    found = values(one)["Daly's interval"] / 60
    assert round(found, 1 if minutes < 10 else 0) == minutes


def test_no_interval_keeps_more_work_than_dalys(capsys):
    failures, write, restart = 3 * 3600, 120, 600
    question = f"--params 1T --mtbf-hours 3 --restart-s {restart} --write-bandwidth"
    speed = f"{14e12 / write:.0f}B/s"
    [one] = estimates(capsys, "checkpoint", *question.split(), speed)["estimates"]
    found = values(one)

    def kept(interval):  # Daly 2006, the complete cost function
        lost = math.exp((interval + write) / failures) - 1
        return interval / (failures * math.exp(restart / failures) * lost)

    best = max(map(kept, range(60, 7200)))
    assert found["goodput"] == pytest.approx(best, rel=1e-4)
    assert found["goodput"] == pytest.approx(kept(found["Daly's interval"]))


OWN = {
    "models.yaml": "gpt2:\n  source: mine\n  shape: {layers: 2, hidden: 64, heads: 2, "
    "vocab: 100}\n",
    "hardware.yaml": "dated: '2026-01-01'\ngpus:\n  h100-80gb: {memory_gb: 94, "
    "memory_gb_s: 3900, tflops: 835, link_gb_s: 300, source: the NVL sheet}\n",
    "prices.yaml": "prices:\n  - {vendor: runpod, gpu: l4, kind: on-demand, cloud: "
    "secure, usd_per_hour: '0.01', dated: '2026-11-01', source: my contract}\n",
}


@pytest.mark.parametrize("standing", [True, False])
def test_a_users_own_rows_go_before_those_that_ship(
    standing, capsys, tmp_path, monkeypatch
):
    folder = tmp_path / ("data/catalog" if standing else "elsewhere")
    folder.mkdir(parents=True)
    for name, text in OWN.items():
        (folder / name).write_text(text)
    option = () if standing else ("--catalog", str(folder))

    def asked(*question):
        done = run(capsys, "estimate", *option, *question, "--json")
        assert done.code == 0, done.err
        return json.loads(done.out), done.err

    got, said = asked("memory", "--model", "gpt2", "--gpu", "h100-80gb")
    parameters, memory = map(values, got["estimates"])
    assert parameters["parameters"] < 10**6 and memory["GPU memory"] == 94e9
    for row, file in (("model gpt2", "models"), ("GPU h100-80gb", "hardware")):
        assert f"{row}: your own, of {folder / file}.yaml" in said
    got, said = asked("step", "--model", "gpt2", "--cluster", "dgx-h100")
    assert values(got["estimates"][0])["usable"] == 94e9 * 0.9
    assert "GPU h100-80gb: your own" in said
    known, said = asked("list")
    assert f"(yours: {folder / 'models.yaml'})" in known["models"]["gpt2"]["source"]
    assert "yours" not in known["models"]["gpt2-xl"]["source"] and not said
    [own] = [
        row for row in asked("list", "--prices")[0]["prices"] if "yours" in str(row)
    ]
    assert own["usd_per_hour"] == 0.01 and "my contract" in own["source"]


def test_a_folder_of_own_rows_without_any_is_refused(capsys, tmp_path):
    done = run(capsys, "estimate", "--catalog", str(tmp_path), "list")
    assert done.code == 2 and "got none of models.yaml" in done.err
    (tmp_path / "models.yaml").write_text("gpt2: {source: mine}\n")
    done = run(capsys, "estimate", "--catalog", str(tmp_path), "list")
    assert (done.code, done.out) == (2, "") and "models.yaml:1" in done.err


SIZES = "{hidden: 768, heads: 12, vocab: 50257, layers"
LINK = "inside_gb_s: 300, between_gb_s: 25, inside_latency_us: 3, between_latency_us: 9"


@pytest.mark.parametrize(
    ("file", "text", "said"),
    [
        ("models", f"a:\n  source: x\n  shape: {SIZES}: few}}\n", "3:10: layers: got"),
        ("models", f"a:\n  source: x\n  shape: {SIZES}s: 12}}\n", "3:10: unknown size"),
        (
            "models",
            f"a:\n  source: x\n  parameters: 5\n  shape: {SIZES}: 12}}\n",
            "3:15: wrong number of parameters: got 5, expected 123653376",
        ),
        (
            "hardware",
            "dated: '2026-01-01'\nclusters:\n  a: {gpu: h1000, gpus_per_node: 8, "
            f"source: x, {LINK}}}\n",
            " cluster a: unknown GPU: got 'h1000'",
        ),
    ],
)
def test_a_row_that_cannot_be_is_told_with_its_file(file, text, said, capsys, tmp_path):
    (tmp_path / f"{file}.yaml").write_text(text)
    done = run(capsys, "estimate", "--catalog", str(tmp_path), "list")
    assert (done.code, done.out) == (2, "")
    assert f"{tmp_path / file}.yaml:{said}" in " ".join(done.err.split())


@pytest.mark.parametrize(
    ("layout", "says"),
    [
        ("--tp 16 --dp 3", "48 GPUs are 6 nodes of 8; tp 16 spans 2 of them"),
        ("--tp 8 --pp 4", "32 GPUs are 4 nodes of 8"),
        ("--tp 8", None),
    ],
)
def test_a_step_says_how_many_nodes_it_takes(layout, says, capsys):
    done = run(
        capsys, "estimate", "step", "--model", "llama-2-70b", *layout.split(), "--json"
    )
    [one] = json.loads(done.out)["estimates"]
    assert [note for note in one["notes"] if "nodes of" in note] == [says] * bool(says)


@pytest.mark.parametrize("spelling", ["3B", "3b", "3e9", "3000M"])
def test_parameters_have_no_bits_so_b_is_a_billion_of_them(spelling, capsys):
    [one] = estimates(capsys, "memory", "--params", spelling)["estimates"]
    [weights] = [each for each in one["items"] if each["name"] == "weights"]
    assert weights["value"] == 2 * 3 * 10**9


@pytest.mark.parametrize("language", ["en", "es"])
def test_a_published_run_is_one_line_of_80_columns(language, capsys):
    run_name = "llama-3.1-405b-16384"
    arguments = "estimate", "plan", "--against", run_name, "--lang", language
    head, row, *_ = run(capsys, *arguments).out.splitlines()
    assert len(head) == len(row) == 80 and row.startswith(run_name)


def test_the_parts_of_a_step_add_up_and_it_fits_or_exits_1(capsys):
    layout = ("--model", "llama-2-70b", "--dp", "8", "--tp", "8")
    done = run(capsys, "estimate", "step", *layout, "--json")
    [one] = json.loads(done.out)["estimates"]
    found = values(one)
    parts = [v for name, v in found.items() if name.startswith("communication")]
    assert found["step time"] == pytest.approx(found["compute"] + sum(parts))
    assert found["left"] < 0 and done.code == 1


def test_each_part_of_a_step_says_what_it_is_computed_from(capsys):
    layout = ("--model", "llama-2-70b", "--dp", "2", "--tp", "8", "--pp", "4")
    [one] = estimates(capsys, "step", *layout, "--microbatches", "12")["estimates"]
    items = {each["name"]: each for each in one["items"]}
    compute, bubble = items["compute"], items["bubble"]
    assert compute["formula"] == "m (F_m / (peak × e_k) + A_m r_m / B_m)"
    # 20 of 80 layers and the output matrix on an eighth of a node's 4096 tokens; three
    # times two FLOPs a parameter, and half of the square of scores.
    weights = 20 * (8192 * 128 * (2 * 64 + 2 * 8) + 3 * 8192 * 28672) + 8192 * 32000
    flops = 512 * (6 * weights + 6 * 20 * 4096 * 8192)
    assert compute["inputs"]["F_m"] == pytest.approx(flops)
    # 1F1B of 4 ranks waits for 3 microbatches of 12, with what they wait for.
    waits = ("compute", "communication of tp", "communication of pp")
    blocked = sum(items[name]["value"] for name in waits)
    assert bubble["inputs"]["I_m"] == 3
    assert bubble["value"] == pytest.approx(blocked * 3 / 12)
    shown = items["communication of dp"]
    assert shown["formula"] == "max(T_dp × (1 - o_c), T_dp - compute)"
    hidden = shown["inputs"]["T_dp"] - shown["value"]
    assert items["hidden communication"]["value"] == pytest.approx(hidden)


def test_experts_alone_in_four_bits_are_the_checkpoint_of_gpt_oss(capsys):
    # OpenAI 2508.10925, table 1: checkpoints of 12.8 and 60.8 GiB.
    for name, published in (("gpt-oss-20b", 12.8), ("gpt-oss-120b", 60.8)):
        asked = ("--model", name, "--inference", "--expert-weights", "mxfp4")
        found = estimates(capsys, "memory", *asked)["estimates"][1]
        assert values(found)["weights"] / 2**30 == pytest.approx(published, rel=2e-3)


def test_a_run_comes_to_the_flops_and_pf_days_of_its_paper(capsys):
    # Brown et al. 2005.14165, table D.1: 3.14e23 FLOPs and 3.64e3 PF-days for GPT-3.
    run_of = ("--model", "gpt3-175b", "--batch", "1536", "--tokens", "300B")
    [one] = estimates(capsys, "flops", *run_of)["estimates"]
    assert values(one)["6 N D of the run"] == pytest.approx(3.14e23, rel=2e-3)
    assert values(one)["PF-days of 6 N D"] == pytest.approx(3.64e3, rel=2e-3)


def test_a_measured_rate_gives_the_job_and_its_days(capsys):
    # Narayanan et al. 2104.04473, section 5.1: GPT-3 on 1024 A100 at 140 TFLOP/s with
    # recompute takes 34 days; its 8 FLOPs a parameter are 6 of the model's.
    run_of = ("--model", "gpt3-175b", "--batch", "1536", "--tokens", "300B")
    rate = ("--gpus", "1024", "--gpu", "a100-80gb", "--tflops-per-gpu", "105")
    [one] = estimates(capsys, "flops", *run_of, *rate)["estimates"]
    found = values(one)
    assert found["training"] == pytest.approx(34, rel=0.03)
    assert found["FLOP/s"] == pytest.approx(1024 * 105e12)
    [example] = (line for line in EXAMPLES if "--tflops-per-gpu" in line)
    [shown] = json.loads(printed(example).out)["estimates"]
    assert values(shown)["training"] == found["training"]
    assert values(shown)["HFU"] == pytest.approx(140 / 312, rel=0.02)
    [page] = [one for one in worked_out().runs if "training of" in one.title]
    assert page.worked[0].estimate["training"] == found["training"]
    again = ("--gpus", "1024", "--gpu", "a100-80gb", "--tokens-per-s")
    tokens = f"{found['tokens a second']}"
    [other] = estimates(capsys, "flops", *run_of, *again, tokens)["estimates"]
    assert values(other)["MFU"] == pytest.approx(found["MFU"])


def test_one_setting_is_faster_than_another(capsys):
    # Korthikanti et al. 2205.05198, table 5: 175B from 18.13 s to 13.75 s, 31.8%.
    step = ("--gpus", "64", "--gpu", "a100-80gb", "--step-s", "13.75")
    question = ("--model", "megatron-175b", "--batch", "64", "--before-s", "18.13")
    [one] = estimates(capsys, "flops", *question, *step)["estimates"]
    assert values(one)["throughput gained"] == pytest.approx(0.318, abs=1e-3)


def test_a_collective_without_a_bandwidth_has_bytes_and_steps(capsys):
    [one] = estimates(capsys, "comm", "all-gather", "8GiB", "--ranks", "64")[
        "estimates"
    ]
    assert values(one) == {"sent by each rank": 63 * 2**27, "steps": 63}


def test_an_mfu_names_what_it_counts_and_of_which_peak(capsys):
    plan = json.loads(
        run(
            capsys, *["estimate", "plan", "--model", "gpt2", "--gpus", "8", "--json"]
        ).out
    )
    assert "causal attention as half" in plan["conventions"]["mfu"]
    assert "989.4 TFLOP/s, dense 16-bit" in plan["conventions"]["mfu"]
    step = ("--batch", "8", "--gpus", "1", "--gpu", "t4", "--step-s", "1")
    [one] = estimates(capsys, "flops", "--model", "gpt2", *step)["estimates"]
    [mfu] = [item for item in one["items"] if item["name"] == "MFU"]
    assert "attention full" in mfu["convention"]
    assert "dense 16-bit" in mfu["convention"]


def inference(capsys, *layout, model="mixtral-8x22b"):
    question = ("--inference", "--model", model, *layout)
    [_, one] = estimates(capsys, "memory", *question)["estimates"]
    return values(one)


def test_inference_is_cut_over_experts_pipeline_context_and_replicas(capsys):
    whole = inference(capsys, "--batch", "16", "--context", "8192")
    for axes, cut in ((("--dp", "16"), 16), (("--cp", "4"), 4), (("--pp", "4"), 4)):
        held = inference(capsys, "--batch", "16", "--context", "8192", *axes)
        assert held["KV cache"] * cut == whole["KV cache"]
    experts = inference(capsys, "--dp", "8", "--ep", "8")
    # Mixtral 8x22B: one of eight experts of each layer, and all that is dense.
    assert experts["experts' parameters"] == 56 * 3 * 6144 * 16384
    assert experts["weights"] < whole["weights"] / 6
    # Zhao et al. 2505.09343, table 1: 70.272 kB a token of DeepSeek-V3 in 16 bits.
    latent = inference(capsys, "--tp", "8", model="deepseek-v3")
    assert latent["KV cache per token"] == 70_272
    paged = inference(capsys, "--context", "4097", "--page-tokens", "16")
    assert paged["tokens"] == 4112
    # DeepSeek-V3 2412.19437, section 3.4.1: attention over 4 ranks and 8 replicas,
    # experts whole, 8 of the 256 on a GPU.
    folded = ("--tp", "4", "--dp", "8", "--ep", "32", "--etp", "1")
    whole = inference(capsys, *folded, model="deepseek-v3")
    assert whole["experts' parameters"] == 58 * 8 * 3 * 7168 * 2048


@pytest.mark.parametrize(
    ("question", "says"),
    [
        *((f"--model gpt2 --zero {n}", f"ZeRO stage {n} shards no") for n in "123"),
        ("--params 7B --zero 3", "shards nothing: dp × cp is 1"),
        ("--model mixtral-8x7b --dp 8 --ep 8 --zero 3", "shards no expert: dp × cp ×"),
        ("--model mixtral-8x7b --tp 4 --ep 2 --etp 1 --zero 3", "shards experts alone"),
        ("--model mixtral-8x7b --dp 8 --ep 4 --zero 3", ""),
        ("--model gpt2 --dp 2 --zero 3", ""),
        ("--model gpt2 --zero 0", ""),
    ],
)
def test_a_stage_of_zero_without_ranks_is_said_to_shard_nothing(question, says, capsys):
    *_, one = estimates(capsys, "memory", *question.split())["estimates"]
    said = [note for note in one["notes"] if " shards " in note]
    assert len(said) == bool(says) and says in "".join(said)


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        ("memory --model llama-2-7", 2, "'llama-2-7' begins 2 of them: llama-2-7b"),
        ("memory --model llama-2-7b --gpu h10", 2, "which GPU? 'h10' begins 2 of them"),
        ("memory --model llama-2-7b --tp 3", 2, "tp: got 3, expected a divisor of 32"),
        ("memory --model llama-2-7b --gpus 0", 2, "gpus: got 0, expected at least 1"),
        ("memory --model llama-2-7b --gpus 64 --dp 4", 2, "= 4, expected 64 (GPUs)"),
        ("memory --model llama-2-7b --zero 4", 2, "expected 0 (ddp), 1, 2 or 3 (fsdp)"),
        ("memory --model llama-2-7b --gpu-memory -80GB", 2, "GPU memory: got -8"),
        ("memory --model llama-2-7b --gpu t4 --reserve nan", 2, "got 'nan'"),
        ("memory --params nan", 2, "got 'nan', expected a number"),
        ("memory --params 1e400", 2, "got '1e400', expected a number, such"),
        ("memory --params 1e40", 2, "expected at most 1e+30"),
        ("memory --params 1B --dp 0", 2, "dp: got 0, expected at least 1"),
        *(
            (
                f"memory --model gpt2 --pp 2 --microbatches 8 {option} 0",
                2,
                f"{option}: got 0, expected at least 1, or no {option}",
            )
            for option in (
                "--etp",
                "--first-layers",
                "--last-layers",
                "--recompute-layers",
            )
        ),
        ("memory", 2, "which model?"),
        (
            "comm all-reduce 1GB --ranks 8 --bandwidth 1GB --latency-us nan",
            2,
            "got 'nan', expected a finite number",
        ),
        (
            "flops --model gpt2 --batch 8 --gpus 4 --gpu t4 --step-s 1 --tokens 1B "
            "--usd-per-gpu-hour -3",
            2,
            "usd-per-gpu-hour: got -3.0",
        ),
        (
            "memory --model llama-2-70b --pp 4 --microbatches 16 --schedule zb-v "
            "--last-layers 10",
            2,
            "expected none under zb-v",
        ),
        ("memory --model gpt2 --gpu-memory 80", 2, "got '80', expected a unit: 80GB"),
        ("memory --model gpt2 --gpu-memory 80Gb", 2, "expected bytes: 80GB"),
        ("step --model gpt2 --dp 8 --gpu-memory 80gb", 2, "GB for bytes or Gbit"),
        ("memory --model gpt2 --reserve 0.2", 2, "--reserve: of which GPU?"),
        ("memory --model gpt2 --cp-kind ulysses", 2, "expected --cp above 1"),
        ("memory --model opt-175b --sequence 2049", 2, "at most 2048 (rows of the"),
        ("memory --model gpt2 --schedule zb-v", 2, "expected pp above 1"),
        (
            "memory --model gpt2 --inference --expert-weights fp8",
            2,
            "the model has no experts",
        ),
        (
            "memory --model gpt2 --pp 2 --schedule zb-interleaved",
            2,
            "expected pp and virtual_stages above 1",
        ),
        ("step --model gpt2 --dp 8 --nvme-bandwidth 3GB/s", 2, "of which --offload?"),
        (
            "memory --model gpt2 --recompute full --recompute-layers 13",
            2,
            "recompute_layers: got 13, expected at most 12",
        ),
        ("memory --model nofile.yaml", 2, "nofile.yaml: cannot be read"),
        ("comm all-reduce -5GB --ranks 8 --bandwidth 1GB", 2, "got '-5GB'"),
        ("comm allreduce 5GB --ranks 8 --bandwidth 1GB", 2, "got 'allreduce'"),
        ("comm all-reduce 5GB --ranks 0 --bandwidth 1GB", 2, "ranks: got 0"),
        ("comm all-reduce 5GB --ranks 8 --bandwidth 0GB", 2, "bandwidth: got 0"),
        ("comm all-reduce 5GB --ranks 8 --bandwidth 50", 2, "50GB/s, or bits"),
        ("comm all-reduce 5GB --ranks 8 --bandwidth 4gb", 2, "GB for bytes or Gbit"),
        ("comm all-reduce 5mb --ranks 8", 2, "MB for bytes or Mbit for bits"),
        ("comm all-reduce 5GB/s --ranks 8", 2, "got '5GB/s', expected bytes"),
        ("comm all-reduce 5GB --ranks 8 --nodes 2", 2, "depends on --nodes"),
        ("comm --model gpt2 --dp 8 --bandwidth 5GB", 2, "depends on --bandwidth"),
        ("comm --model gpt2 --dp 8 --compute-ms 5", 2, "beside what?"),
        ("memory --params 1e30", 2, "weights: got 2e+30 bytes, expected at most 1e+21"),
        ("memory --params 1B --ep 2", 2, "depends on --ep: leave it out"),
        ("memory --model gpt2 --batch 2", 2, "nothing about training depends on --b"),
        ("memory --model gpt2 --inference --zero 3", 2, "depends on --zero"),
        ("memory --model gpt2 --inference --batch 1e18", 2, "at most 1,000,000,000"),
        ("memory --model gpt2 --inference --dp 8 --ep 8", 2, "a dense model has no"),
        ("bubble -p 4 -m 4 --weight 2", 2, "depends on --weight"),
        ("plan --model gpt2 --gpus 8 --days 3", 2, "--days needs --tokens"),
        ("plan --model gpt2 --gpus 1_", 2, "got '1_', expected a number"),
        ("flops --model gpt2 --batch 1 --gpus 1", 2, "depends on --gpus"),
        ("flops --model gpt2 --batch 1 --gpus 1 --gpu t4 --mfu 0", 2, "mfu: got 0"),
        ("comm all-reduce 5parsec --ranks 8", 2, "expected bytes, such as 10GB"),
        ("comm all-reduce 5GB", 2, "SIZE and --ranks"),
        ("comm all-reduce 5GB --ranks 8 --latency-us 3", 2, "needs --bandwidth"),
        ("flops --model gpt2 --batch 1 --step-s 1 --mfu 0.4", 2, "exclude each other"),
        ("comm", 2, "of what?"),
        ("checkpoint", 2, "which model?"),
        ("nccl --ranks 9 --nodes 2", 2, "expected a multiple of 2 nodes"),
        ("checkpoint --params 1B --gpus 8", 2, "needs --gpu-mtbf-hours"),
        ("checkpoint --params 1B --gpu-mtbf-hours 9", 2, "of how many?"),
        ("checkpoint --params 1B --restart-s 9", 2, "needs --write-bandwidth"),
        (
            "checkpoint --params 1B --mtbf-hours 1 --write-bandwidth 1kB/s",
            2,
            "nothing would ever be done",
        ),
        ("checkpoint --params 1B --mtbf-hours 0", 2, "mtbf-hours: got 0"),
        ("largest", 2, "which GPU?"),
        ("layer --model gpt2 --zero 3", 2, "about one layer depends on --zero"),
        ("buckets --model gpt2 --microbatches 3", 2, "depends on --microbatches"),
        ("largest --ep 2 --gpu t4", 2, "depends on --ep"),
        ("layer --model gpt2 --tp 5", 2, "tp: got 5, expected a divisor of 12"),
        ("step --model gpt2 --dp 12", 2, "expected whole nodes of 8"),
        ("buckets --model gpt2 --tp 5", 2, "tp: got 5, expected a divisor of 12"),
        ("comm --compute-ms 10 --comm-ms 5 --overlap 2", 2, "overlap: got 2.0"),
        ("bubble -p 4 -m 4 --schedule zb-h2", 2, "at least 2 p - 1 = 7"),
        ("bubble -p 0 -m 4", 2, "stages: got 0, expected at least 1"),
        ("bubble -p 4 -m 6 -v 2", 2, "expected a multiple of 4"),
        ("bubble -p 4 -m 1000000 --grid", 2, "expected at most 20,000"),
        ("bubble -p 4 -m 4 --forward 0", 2, "forward: got 0, expected more than zero"),
        ("flops --model gpt2 --batch 1 --gpus 1 --gpu t4 --mfu 2", 2, "mfu: got 2"),
        (
            "flops --model gpt2 --batch 8 --gpus 1 --gpu t4 --step-s 1e-6",
            2,
            "of the peak",
        ),
        ("flops --model gpt2 --batch 0", 2, "batch: got 0"),
        ("flops --model gpt2 --batch 1 --mfu 40%", 2, "(a share: 0.4 is 40%)"),
        (
            "memory --model gpt2 --pp 2 --schedule zb-h1 --convention megatron-report",
            2,
            "expected one that the tool knows",
        ),
        ("flops --model gpt2 --batch 1 --mfu 0.4", 2, "needs --gpus"),
        ("memory --model gpt2 --sequence 1025", 2, "got 1025, expected at most 1024"),
        ("flops --model gpt2 --batch 1 --sequence 2048", 2, "expected at most 1024"),
        ("plan --model gpt2 --gpus 8 --sequence 4096", 2, "expected at most 1024"),
        ("memory --model gpt2 --inference --context 1025", 2, "context: got 1025, "),
        ("memory --params 7.5 --dp 64", 2, "got '7.5', expected a whole number"),
        ("checkpoint --params 0.3", 2, "got '0.3', expected a whole number"),
        ("comm all-gather 1GB --ranks 8 --compression", 2, "got all-gather, expected"),
        ("lint --model gpt2 --sequence 4096", 2, "expected at most 1024"),
        ("plan --model gpt2 --gpus 0", 2, "gpus: got 0, expected at least 1"),
        ("plan --model gpt2 --gpus 12", 2, "expected whole nodes of 8"),
        ("plan --model gpt2 --gpus 8 --cluster dgx", 2, "which cluster? 'dgx' begins"),
        ("lint --model gpt2 --dp 12", 2, "expected whole nodes of 8"),
        ("plan --model gpt2 --gpus 8 --top 0", 2, "top: got 0, expected at least 1"),
        ("plan --model gpt2 --gpus 8 --top -1", 2, "top: got -1, expected at least 1"),
        ("plan --model gpt2 --gpus 8 --reserve 1", 2, "reserve: got 1, expected"),
        ("lint --model gpt2 --reserve 1", 2, "reserve: got 1, expected a share"),
        ("memory --model gpt2 --gpu t4 --reserve 1", 2, "expected a share below 1"),
        ("memory --model gpt2 --inference --gpu t4 --reserve 2", 2, "reserve: got 2"),
        ("memory --model gpt2 --inference --gpu-memory -1GB", 2, "GPU memory: got -1"),
        ("plan --model gpt2 --gpus 1e18", 2, "expected at most 1,000,000"),
        ("lint --model gpt2 --pcie-bandwidth 2GB/s", 2, "of which --offload"),
        ("plan --model gpt2 --gpus 8 --etp x", 2, "'--etp': got 'x'"),
        ("plan --model gpt2 --gpus 8 --tokens 5", 2, "least the 1,048,576 of one"),
        ("plan --model gpt2 --gpus 8 --tokens 1B --days 0", 2, "days: got 0.0"),
        ("plan --model mixtral-8x7b --gpus 8 --etp 3", 2, "a divisor of 14336 (exp"),
        ("flops --model gpt2 --batch 8 --tokens 10", 2, "at least the 8,192 of one"),
        ("plan --model gpt2 --gpus 8 --etp 1.5", 2, "got '1.5', expected a whole"),
        ("plan --model gpt2 --gpus 8 --schedule all,x", 2, "schedule: got 'all'"),
        ("plan --model gpt2 --gpus 8 --pcie-bandwidth 2GB/s", 2, "of which --offload"),
        ("memory --params 7 --dp 8", 2, "1,000 or more: 7B is 7 × 10^9"),
        ("checkpoint --params 7", 2, "1,000 or more: 7B is 7 × 10^9"),
        ("memory --params 7e9B", 2, "expected one of both: 7e9, or a number with B"),
        ("memory --params 3Gb", 2, "such as 70B or 1.5e12; B and b are 10^9"),
        ("memory --params 7B --gpu-memory 80B", 2, "the memory of a GPU: 80GB"),
        ("comm all-reduce 10 --ranks 8", 2, "expected a unit: 10GB, 10B"),
        ("comm all-reduce 7b --ranks 8", 2, "expected whole bytes: 7GB, or 7B"),
        ("comm all-reduce 10mB --ranks 8", 2, "MB for bytes or Mbit"),
        ("comm all-reduce 5GB --ranks 8 --bandwidth 50mB/s", 2, "MB/s for bytes or"),
        ("comm all-reduce 5GB --ranks 8 --compression --top-k 0", 2, "top-k: got 0"),
        ("comm all-reduce 5GB --ranks 8 --compression --rank 5000", 2, "at most 4,096"),
        ("comm --compute-ms 9 --comm-ms -1", 2, "comm-ms: got -1.0"),
        ("flops --model gpt2 --batch 1 --step-s -1", 2, "step-s: got -1.0"),
        ("plan --against all --schedule all", 2, "depends on --schedule: leave"),
    ],
)  # fmt: skip
def test_bad_input_gets_one_message(arguments, code, message, capsys):
    done = run(capsys, "estimate", *arguments.split())
    assert (done.code, done.out) == (code, "")
    assert message in done.err
    assert "Traceback" not in done.err


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ("plan --model llama-2-70b --gpus 64", "pp 4 sobre 256 microbatches, 2 chunks"),
        ("plan --model llama-2-70b --gpus 64", "Se supone: kernels al 60%"),
        ("plan --against mt-nlg-2800", "predicho"),
        ("lint --model llama-2-70b --tp 8 --pp 16", "pp 16 con 1 microbatch"),
        ("list", "modelos: parámetros, activos para un token"),
        ("list --prices", "la hora"),
    ],
)
def test_plans_lints_and_lists_speak_spanish(asked, said, capsys):
    done = run(capsys, "estimate", *asked.split(), "--lang", "es")
    assert said in done.out and not done.err


def test_a_published_run_is_shown_beside_the_best(capsys):
    done = run(capsys, "estimate", "plan", "--against", "mt-nlg-2800", "--json")
    [found] = json.loads(done.out)["runs"]
    assert (found["half"], found["measured_s"]) == ("judge", 50.2)
    assert found["same_means"]["best_seconds"] <= found["predicted_s"] * (1 + 1e-9)
    done = run(capsys, "estimate", "plan", "--against", "mt-nlg-2800")
    assert "Smith et al. 2201.11990, v3, section 2.4" in done.out
    # More kept free than a GPU has left: no place.
    full = ("--reserve", "0.9", "--json")
    done = run(capsys, "estimate", "plan", "--against", "mt-nlg-2800", *full)
    [found] = json.loads(done.out)["runs"]
    assert found["same_means"]["place"] is None


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--against", "nope"), "unknown run: got 'nope', expected one of"),
        (("--against", "all", "--gpus", "8"), "published run depends on --gpus"),
        (("--against", "all", "--pcie-bandwidth", "9GB/s"), "of which --offload?"),
        (("--model", "gpt2"), "--gpus: how many?"),
    ],
)
def test_a_run_that_nobody_published_gets_no_number(arguments, message, capsys):
    done = run(capsys, "estimate", "plan", *arguments)
    assert done.code and not done.out and message in done.err


def test_a_run_of_ones_own_that_cannot_be_is_named(capsys, tmp_path):
    row = dict.fromkeys(("source", "edition", "table", "row"), "mine")
    row |= {"model": "gpt2", "cluster": "dgx-a100", "measured": {"seconds": 0.1}}
    file = tmp_path / "runs.yaml"
    asked = ("estimate", "--catalog", str(tmp_path), "plan", "--against", "mine")
    file.write_text(json.dumps({"mine": row | {"layout": {"dp": 8}}}))
    assert run(capsys, *asked).code == 0
    off = {"dp": 8, "pp": 1, "zero": 1, "offload": "optimizer-cpu"}
    file.write_text(json.dumps({"mine": row | {"layout": off}}))
    assert "expected --pcie-bandwidth" in run(capsys, *asked).err
    done = run(capsys, *asked, "--pcie-bandwidth", "25GB/s")
    assert done.code == 0 and "dp 8, tp 1, pp 1, ZeRO 1, optimizer-cpu" in done.out
    piped = {"dp": 2, "pp": 4, "microbatches": 8, "schedule": "zb-h2"}
    file.write_text(json.dumps({"mine": row | {"layout": piped}}))
    done = run(capsys, *asked)
    assert done.code == 0 and "dp 2, tp 1, pp 4, zb-h2, ZeRO 1" in done.out
    file.write_text(json.dumps({"mine": row | {"layout": {"tp": 7}}}))
    done = run(capsys, *asked)
    assert (done.code, done.out) == (2, "")
    assert "run mine: tp: got 7, expected a divisor of 12" in done.err


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("tiny.json", '{"a": 1}', ":1:7: wrong type for 'a'"),
        ("config.json", "{\n", ":2:1: not valid YAML"),
        ("gpt2.txt", "", ":1:1: the file is empty"),
        pytest.param("deep.json", "[" * 99_999, ":1:1001: nested too deep", id="deep"),
    ],
)
def test_a_file_that_is_no_model_is_told_with_its_place(
    name, text, said, capsys, tmp_path
):
    file = tmp_path / name
    file.write_text(text)
    done = run(capsys, "estimate", "memory", "--model", str(file))
    assert (done.code, done.out) == (2, "")
    assert f"{file}{said}" in done.err and "unknown model" not in done.err


THEIR_SIZES = {
    "layers": "num_hidden_layers",
    "hidden": "hidden_size",
    "heads": "num_attention_heads",
    "kv_heads": "num_key_value_heads",
    "ffn": "intermediate_size",
    "vocab": "vocab_size",
    "experts": "n_routed_experts",
    "experts_per_token": "num_experts_per_tok",
    "expert_ffn": "moe_intermediate_size",
    "dense_layers": "first_k_dense_replace",
    "head_dim": "qk_nope_head_dim",
    "kv_rank": "kv_lora_rank",
    "query_rank": "q_lora_rank",
    "rope_dim": "qk_rope_head_dim",
    "value_dim": "v_head_dim",
}


@pytest.mark.parametrize(
    ("model", "more", "left_to_code"),
    [
        ("llama-3-8b", {}, ""),
        ("deepseek-v3", {"n_shared_experts": 1}, "--router-bias"),
        ("qwen2.5-7b", {"model_type": "qwen2"}, ""),
    ],
)
def test_a_config_of_transformers_is_told_as_options_that_give_its_model(
    model, more, left_to_code, capsys, tmp_path
):
    known = find_model(model)
    sizes = {theirs: known[our] for our, theirs in THEIR_SIZES.items() if our in known}
    file = tmp_path / "config.json"
    file.write_text(json.dumps({"tie_word_embeddings": False} | sizes | more))
    done = run(capsys, "estimate", "memory", "--model", str(file))
    assert (done.code, done.out, done.err.count("\n")) == (2, "", 1)
    told, others = re.findall(r"--\w+[^,)]*", done.err)
    typed = f"{told} {others} {left_to_code}".split()

    def count(*options: str) -> int:
        got = json.loads(run(capsys, "estimate", "memory", *options, "--json").out)
        return values(got["estimates"][0])["parameters"]

    assert count(*typed) == count("--model", model)


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"num_hidden_layers": "32"}, 'num_hidden_layers: got "32", expected a whole'),
        ({"vocab_size": 5e4}, "vocab_size: got 50000.0, expected a whole number"),
        ({"n_head": [8]}, "n_head: got [8], expected a whole number"),
        ({"n_embd": 512}, "n_embd: got 512, expected 1024 as of hidden_size"),
        ({"hidden_size": -1}, "hidden_size: got -1, expected a whole number"),
    ],
)
def test_a_config_of_transformers_that_cannot_be_is_told_with_its_key(
    more, said, capsys, tmp_path
):
    file = tmp_path / "config.json"
    sizes = {"hidden_size": 1024, "num_hidden_layers": 2, "num_key_value_heads": None}
    file.write_text(json.dumps(sizes | more))
    done = run(capsys, "estimate", "memory", "--model", str(file))
    assert (done.code, done.out, done.err.count("\n")) == (2, "", 1)
    assert f"{file}: {said}" in done.err


def test_a_config_of_transformers_names_the_biases_that_it_has(capsys, tmp_path):
    file = tmp_path / "config.json"
    file.write_text('{"hidden_size": 64, "attention_bias": true, "mlp_bias": false}')
    told = run(capsys, "estimate", "memory", "--model", str(file)).err
    assert "--qkv-bias --output-bias," in told and "--mlp-bias" not in told


@pytest.mark.parametrize(
    "asked", ["memory --model gpt2", "comm all-reduce 1GB --ranks 1"]
)
@pytest.mark.parametrize("language", ["en", "es"])
def test_one_rank_is_not_ranks(asked, language, capsys):
    out = run(capsys, "estimate", *asked.split(), "--lang", language).out
    assert "1 rank" in out and not re.search(r"\b1 ranks", out)
