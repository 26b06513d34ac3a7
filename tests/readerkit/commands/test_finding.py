"""Finding one's way: names by how they begin, filters, paths, hints, the pager."""

import json
import re

import pytest

from tests.helpers import ANNOTATIONS, ROOT, make_book, run
from tests.quick import quick_third
from tests.terminals import READERKIT, Terminal

pytestmark = pytest.mark.sampled

BROKEN = ANNOTATIONS.replace("symbol: step", "symbol: stop")


FITS = ["--model", "LLaMA-2-7B", "--gpu", "H100-80", "--dp", "8", "--zero", "3"]


def ids(out: str) -> list[str]:
    return [line.split("\t")[0] for line in out.splitlines() if "\t" in line]


# --- names ---


@pytest.mark.parametrize(
    ("arguments", "shown"),
    [
        (["annotate", "tp-dgrad"], "tp-dgrad-overlap"),
        (["annotate", "TP-ROW-FORWARD"], "tp-row-forward"),
        (["annotate", "megatron", "tp-dg"], "tp-dgrad-overlap"),
        (["annotate", "pyt"], "fsdp2-root-stays-gathered"),
        (["estimate", "memory", *FITS], "fits: "),
        pytest.param(
            ["run", "FSDP2", "--help"], "fully sharded", marks=pytest.mark.slow
        ),
        (["path", "fail"], "failure: "),
        (["annotate", "all-g"], "# all-gather: concept all-gather"),
        (["annotate", "fsdp_s"], "# fsdp_state: mini fsdp_state = "),
        (["annotate", "powers"], "# compression: mini compression"),
        (["break", "powers"], "compression "),
        (["rebuild", "dc"], "checkpoint "),
    ],
)
def test_a_name_may_be_as_short_as_it_is_its_own(arguments, shown, real_cache, capfd):
    done = run(capfd, *arguments)
    assert done.code == 0, done.err
    assert shown in done.out


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["strat"], 2, "No such command 'strat': did you mean start"),
        (["site", "biuld"], 2, "No such command 'biuld': did you mean build?"),
        (["zzz"], 2, "No such command 'zzz': expected annotate, "),
        (["annotate", "tp-row"], 2, "begins 2 of them: tp-row-bias-once, tp-row-for"),
        (["annotate", "all-"], 2, "'all-' begins 3 of them: all-gather, "),
        (["run", "d"], 2, "which mini? 'd' begins 2 of them: dcp for checkpoint, ddp"),
        (["run", "fsdq"], 2, "did you mean fsdp"),
        (["break", "ddp", "nosync"], 2, "did you mean no-sync"),
        (["break", "nothing"], 2, "unknown mini: got 'nothing', expected one of"),
        (["estimate", "memory", "--model", "llama"], 2, "which model? 'llama' begins"),
        (["quiz", "35", "--topic", "pipe-line"], 2, "did you mean pipeline?"),
        (["path", "failur-e"], 2, "did you mean failure?"),
        (["fetch", "megatorn"], 2, "did you mean megatron?"),
        (["annotate", ""], 2, "unknown upstream or note: got ''"),
        (["annotate", "megatron", ""], 2, "unknown note on megatron: got ''"),
        (["path", "nosuch"], 2, ": prerequisite, failure, synthesis, "),
    ],
)
def test_what_was_not_meant_is_said_with_what_may_have_been(
    arguments, code, said, real_cache, capsys
):
    done = run(capsys, *arguments)
    assert (done.code, done.out) == (code, "")
    assert said in done.err


# --- filters ---


@pytest.mark.parametrize(
    ("arguments", "some", "none"),
    [
        (["tp"], "tp-row-forward", "zero-step-then-gather"),
        (["zero"], "zero-step-then-gather", "tp-row-forward"),
        (["fsdp"], "fsdp1-rate-limiter", "tp-row-forward"),
        (["FSDP2"], "fsdp2-three-dtypes", "fsdp1-rate-limiter"),
        (["fsdp1"], "fsdp1-rate-limiter", "fsdp2-three-dtypes"),
        (["all-gather"], "sp-regather-input", "tp-f-operator-bypassed"),
        (["--concept", "all-gath"], "sp-regather-input", "tp-f-operator-bypassed"),
        (["--kind", "pitfall"], "pp-batched-p2p-order", "tp-row-forward"),
        (["--file", "layers.py"], "tp-row-forward", "ddp-bucket-size"),
        (["--file", "*/optimizer/*.py"], "zero-step-then-gather", "tp-row-forward"),
        (["--topic", "tensor-par"], "tp-row-forward", "ddp-bucket-size"),
        (["--mini", "pp"], "pp-1f1b-in-flight", "tp-row-forward"),
        (["--grep", "RING ALL-REDUCE"], "tp-row-forward", "pp-dispatch"),
        (["megatron", "--kind", "pitfall"], "pp-batched-p2p-order", "fsdp1-wrap"),
    ],
)
def test_notes_are_found_by_what_they_are_on(arguments, some, none, real_cache, capsys):
    done = run(capsys, "annotate", *arguments)
    assert (done.code, done.err) == (0, "")
    found = ids(done.out)
    assert some in found and none not in found
    plain = json.loads(run(capsys, "annotate", *arguments, "--json").out)
    assert [note["id"] for note in plain] == found


def test_a_word_says_what_it_names(real_cache, capsys):
    first = run(capsys, "annotate", "fsdp2").out.splitlines()[0]
    assert first.startswith(
        "# fsdp2: topic fsdp2, fsdp2_inside; mini fsdp = FSDP2 (fully_shard)"
    )


def test_filters_that_nothing_fits_say_so(desk):
    done = desk.run("annotate", "--grep", "no such words")
    assert (done.code, done.out) == (1, "")
    assert done.err == "readerkit: no note on sample fits all of that\n"
    assert desk.run("annotate", "--grep", "no such words", "--json").out == "[]\n"
    assert desk.run("annotate", "--concept", "nowhere").code == 2
    assert desk.run("annotate", "close", "--kind", "note").code == 2


@pytest.mark.parametrize("option", ["--condition", "--concept", "--topic", "--mini"])
def test_an_empty_name_is_no_filter_that_everything_fits(option, real_cache, capsys):
    done = run(capsys, "annotate", option, "")
    assert (done.code, done.out) == (2, "")
    assert f"unknown {option[2:]}: got '', expected one of" in done.err


@pytest.mark.parametrize("spelt", ["es", "ES", "Es"])
def test_a_language_is_named_in_any_case(spelt, real_cache, capsys):
    done = run(capsys, "annotate", "tp-row-forward", "--lang", spelt)
    assert (done.code, done.err) == (0, "") and done.out.startswith("decisión")
    assert (
        "parámetros"
        in run(capsys, "estimate", "memory", "--model", "gpt2", "--lang", spelt).out
    )


# --- paths ---


def test_paths_are_those_of_the_site_with_next_and_previous(
    real_cache, capsys, monkeypatch
):
    monkeypatch.setenv("COLUMNS", "80")
    listed = run(capsys, "path").out.splitlines()
    names = [line.split()[0] for line in listed[:3]]
    assert names == ["prerequisite", "failure", "synthesis"]
    plain = json.loads(run(capsys, "path", "failure", "--json").out)
    notes = [note for stop in plain["stops"] for note in stop["notes"]]
    assert plain["stops"][0]["id"] == "oom-at-first-step"
    overview = run(capsys, "path", "failure").out
    assert re.findall(r"^ +(\d+)  (\S+)", overview, re.M) == [
        (str(number), note) for number, note in enumerate(notes, 1)
    ]
    assert not re.search(r"readerkit prove [a-z0-9-]*-$", overview, re.M)
    second = run(capsys, "path", "failure", "2").out
    assert second.startswith(f"failure, note 2 of {len(notes)}: Out of memory at")
    assert notes[1] in second
    assert re.search(r"^previous  readerkit path failure 1  ", second, re.M)
    assert re.search(r"^next      readerkit path failure 3  ", second, re.M)
    last = run(capsys, "path", "failure", str(len(notes))).out
    assert "previous" in last and not re.search("^next", last, re.M)
    beyond = run(capsys, "path", "failure", "999")
    assert (beyond.code, beyond.out) == (2, "")
    assert f"expected 1 to {len(notes)}" in beyond.err


def test_a_path_is_in_spanish_where_that_is_asked_for(real_cache, capsys):
    listed = run(capsys, "path", "--lang", "es").out
    counts = r"de un síntoma a sus líneas: [0-9]+ paradas, [0-9]+ notas"
    assert re.search(counts, listed)
    assert "[en]" not in listed + run(capsys, "path", "synthesis", "--lang", "es").out
    overview = run(capsys, "path", "failure", "--lang", "es").out
    assert "Falta memoria en el primer paso del optimizador" in overview
    assert "Adam crea momentos en el paso 1" in overview
    assert "Lea la primera: readerkit path failure 1 --lang es" in overview
    second = run(capsys, "path", "failure", "2", "--lang", "es").out
    assert re.match("failure, nota 2 de [0-9]+: Falta memoria", second)
    assert re.search(r"^siguiente  readerkit path failure 3 --lang es  ", second, re.M)
    spanish, english = (
        json.loads(run(capsys, "path", "prerequisite", "--json", *more).out)["stops"]
        for more in (("--lang", "es"), ())
    )
    assert [each["notes"] for each in spanish] == [each["notes"] for each in english]
    assert spanish[0]["title"] == "Bytes por parámetro"
    unknown = run(capsys, "path", "--lang", "fr")
    assert (unknown.code, unknown.out) == (2, "")
    assert "no translations into 'fr': expected one of es" in unknown.err


def test_what_of_a_path_is_not_translated_is_marked(tmp_path, capsys):
    more = {"sample/linear.es.yaml": "close:\n  title: El que cierra\n"}
    book = ("--book", str(make_book(tmp_path, more=more).root))
    name = run(capsys, "path", *book).out.split()[0]
    shown = run(capsys, "path", name, "--lang", "es", *book).out
    assert "El que cierra" in shown and "\n[en] " in shown


def test_one_note_is_no_notes(tmp_path, capsys):
    annotations = ANNOTATIONS.partition("- id: whole-step")[0]
    book = ("--book", str(make_book(tmp_path, annotations=annotations).root))
    name = run(capsys, "path", *book).out.split()[0]
    beyond = run(capsys, "path", name, "2", *book)
    assert f"path {name} has 1 note: got 2, expected 1 to 1" in beyond.err


def test_a_stop_is_a_path_of_its_own(real_cache, capsys):
    done = run(capsys, "path", "silent-hang", "1")
    assert done.code == 0
    assert "silent-hang, note 1 of 4: The job hangs" in done.out


def test_ideas_come_after_those_they_need(real_cache, capsys):
    plain = json.loads(run(capsys, "path", "prerequisite", "--json").out)
    order = [stop["id"] for stop in plain["stops"]]
    assert order.index("collectives") < order.index("all-reduce")
    assert order.index("data-parallel") < order.index("gradient-bucketing")
    told = [note for stop in plain["stops"] for note in stop["notes"]]
    assert len(told) == len(set(told))


def test_a_book_without_notes_has_no_paths(tmp_path, capsys):
    book = make_book(tmp_path, annotations="")
    done = run(capsys, "path", "--book", str(book.root))
    assert (done.code, done.out) == (1, "")
    assert "no notes to lay a path by" in done.err


# --- hints lead back to the book that was named ---


def test_a_book_of_the_environment_needs_no_name(desk, monkeypatch, capsys):
    monkeypatch.setenv("READERKIT_BOOK", str(desk.book.root))
    out = run(capsys, "annotate").out
    assert "annotate --update-lock" in out and "--book" not in out


def test_a_book_that_compares_nothing_says_so(tmp_path, capsys):
    book = make_book(tmp_path)
    for more in ([], ["ring"]):
        done = run(capsys, "compare", *more, "--book", str(book.root))
        assert (done.code, done.out) == (1, "")
        assert "this book compares nothing" in done.err


# --- terminals ---


def test_a_long_list_goes_through_the_pager(real_cache):
    first = {"PAGER": "head -3"}
    with Terminal(*READERKIT, "annotate", "megatron", environment=first) as reader:
        assert reader.close() == 0
    assert len(reader.shown.splitlines()) == 3
    for more, environment in ((["--no-pager"], first), ([], {"PAGER": "cat"})):
        command = (*READERKIT, "annotate", "megatron", *more)
        with Terminal(*command, environment=environment) as reader:
            assert reader.close() == 0
        assert " notes" in reader.shown


@pytest.mark.parametrize(
    "command",
    quick_third(
        [
            "prove",
            "estimate list",
            "estimate list --prices",
            "quiz list 35",
            "estimate memory --model llama-2-7b --dp 8 --lang es",
            "estimate bubble -p 4 -m 8 --grid",
            "estimate plan --model llama-2-70b --gpus 64 --cluster dgx-h100",
            "estimate plan --against all",
        ]
    ),
)
def test_whatever_is_longer_than_the_terminal_goes_through_the_pager(
    command, real_cache
):
    first = {"PAGER": "head -3"}
    with Terminal(*READERKIT, *command.split(), environment=first) as reader:
        assert reader.close() == 0
    assert len(reader.shown.splitlines()) == 3


@pytest.mark.further
def test_no_color_is_no_style_at_all(real_cache):
    environment = {"NO_COLOR": "1", "PAGER": "cat"}
    for what in (["megatron"], ["tp-row-forward"]):
        command = (*READERKIT, "annotate", *what)
        with Terminal(*command, environment=environment) as reader:
            assert reader.close() == 0
        assert "\x1b" not in reader.shown
        with Terminal(*command, environment={"PAGER": "cat"}) as reader:
            assert reader.close() == 0
        assert "\x1b[" in reader.shown


@pytest.mark.parametrize("columns", [40, 80])
@pytest.mark.further
def test_no_list_is_wider_than_its_terminal(columns, real_cache):
    lists = ("annotate fsdp2", "path failure", "path", "prove", "quiz list 35", "run")
    for command in lists:
        arguments = (*READERKIT, *command.split())
        plain = {"PAGER": "cat"}
        with Terminal(*arguments, columns=columns, environment=plain) as reader:
            assert reader.close() == 0
        shown = re.sub(r"\x1b\[[0-9;]*m", "", reader.shown)
        # A command is one line, to be copied, and a long word too.
        lines = [line for line in shown.splitlines() if "readerkit " not in line]
        long = [line for line in lines if len(line) > columns]
        assert [line for line in long if " " in line.strip()] == []


# --- the words that people know ---


def test_every_mini_that_runs_says_what_it_is(capsys):
    from readerkit.app.mini_names import SAYS

    minis = (ROOT / "mini_impls").glob("*.py")
    starts = 'if __name__ == "__main__":'
    runs = {path.stem for path in minis if starts in path.read_text()}
    assert set(SAYS) == runs
    shown = run(capsys, "run", "--help").out
    readme = (ROOT / "README.md").read_text()
    for name, says in SAYS.items():
        assert re.search(rf"^ +{name} +{re.escape(says)}", shown, re.M)
        assert f"`{name}`" in readme
    for word in ("FSDP2", "FSDP1", "ZeRO-3"):
        assert word in shown and word in readme
