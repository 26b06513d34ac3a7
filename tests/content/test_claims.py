"""The shipped book: every claim holds, and ever fewer sentences have none."""

from __future__ import annotations

import json
import re

from tests.helpers import ROOT, run

UNPROVED_AT_MOST = 0
"""Sentences that say default, only, never, a count or a number, and that no claim
backs. It only goes down: ``readerkit annotate --check --claims`` lists them."""

UNQUOTED_AT_MOST = 0.63
"""Of the book's words, those that no claim says. It only goes down: ``readerkit
annotate ID --claims`` lists an entry's."""

IMPORTED = re.compile(r"^from (mini_impls[\w.]*) import \(?\s*(\w+)", re.MULTILINE)


def test_no_sentence_is_added_that_nothing_proves(real_cache, capsys):
    done = run(capsys, "annotate", "--check", "--json", "--book", str(ROOT))
    claims = json.loads(done.out)["claims"]
    assert len(claims["unproved"]) <= UNPROVED_AT_MOST
    words = claims["words"]
    assert words["unquoted"] <= UNQUOTED_AT_MOST * words["all"]
    unheld = [each for each in claims["open"] if each["check"] == "experiment"]
    assert not {each["why"] for each in unheld}  # an output is stale, or is not kept


def test_each_experiment_proves_a_sentence_and_its_output_is_kept():
    folder = ROOT / "annotations" / "experiments"
    kept = json.loads((folder / "printed.json").read_text())["outputs"]
    assert kept.keys() == {program.stem for program in folder.glob("*.py")}


def test_an_output_is_made_from_each_file_of_the_minis_that_its_program_imports():
    folder = ROOT / "annotations" / "experiments"
    kept = json.loads((folder / "printed.json").read_text())["outputs"]
    for program in folder.glob("*.py"):
        for module, name in IMPORTED.findall(program.read_text()):
            files = [
                f"{each.replace('.', '/')}.py" for each in (module, f"{module}.{name}")
            ]
            [file] = [each for each in files if (ROOT / each).is_file()]
            if "/compare/" not in file:
                assert f"minis: {file}" in kept[program.stem]["made_from"], program
