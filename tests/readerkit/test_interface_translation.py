"""The Spanish words of the interface: none is missing, changed, or no longer said.

What is said is read from the templates, the scripts and the code, each phrase with its
file and line.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from typing import get_args

import pytest
from jinja2 import Environment, nodes

from mini_impls.compare import show
from mini_impls.faults.fault import USUAL
from mini_impls.faults.symptoms import MEASURES, SYMPTOMS
from readerkit.app import interface_translation
from readerkit.app.interface_translation import FILE, read_words
from readerkit.app.rebuilding import read_exercises
from readerkit.claims.checks_in_words import say_check
from readerkit.commands import rebuild
from readerkit.content.claims import Claim, UsesCheck
from readerkit.content.translations import INTERFACE
from readerkit.content.validation import read_document
from readerkit.content.vocabulary import (
    LABELS,
    LAYERS,
    STARTS,
    AnnotationKind,
    Category,
    Pressure,
    Relation,
)
from readerkit.errors import ContentError
from readerkit.evidence import conclusion, record
from readerkit.evidence.purposes import SENT
from readerkit.model.number_with_unit import UNITS
from readerkit.render import note_view
from readerkit.render.html import (
    estimate_examples,
    event_strip,
    mechanism_list,
    notes,
    play_words,
    prediction,
    record_view,
    related_pages,
    study,
    uses_page,
)
from readerkit.site import run_page
from tests.helpers import ROOT, WAIT_S

Said = dict[str, str]
"""A phrase, and where it is said."""
TEMPLATES, THEME = ROOT / "site" / "templates", ROOT / "site" / "theme"
# What is said by way of a table.
TABLES = {
    "content/vocabulary.py": (
        *(
            *filter(None, LABELS.values()),
            *STARTS.values(),
            *get_args(Pressure),
            *LAYERS,
            *get_args(AnnotationKind),
            *get_args(Relation),
        ),
    ),
    "evidence/purposes.py": (*SENT, *get_args(Category)),
    "evidence/record.py": get_args(record.Outcome),
    "evidence/conclusion.py": conclusion._KINDS.values(),
    "render/html/related_pages.py": related_pages.KINDS.values(),
    "render/html/study.py": study.WRONG.values(),
    "render/html/uses_page.py": uses_page.KINDS.values(),
    "render/html/estimate_examples.py": sum(estimate_examples.SECTIONS.values(), ()),
    "render/html/event_strip.py": (
        event_strip.IN_CPP,
        event_strip.BY_HARNESS,
        event_strip.STALE,
    ),
    "render/html/mechanism_list.py": (
        *(each.title for each in mechanism_list.MECHANISMS.values()),
        *(each.watch for each in mechanism_list.MECHANISMS.values()),
    ),
    "render/html/play_words.py": (*play_words.PHASES.values(), *play_words.SLOTS),
    "render/html/notes.py": notes.STATES.values(),
    "render/html/prediction.py": (
        *prediction.MEANS.values(),
        *prediction.SPLIT.values(),
    ),
    "render/html/record_view.py": record_view._LIMITS.values(),
    "site/run_page.py": run_page.PARTS,
    "commands/rebuild.py": ("yes", "NO", *rebuild.OWN_CHECKS),
    "../mini_impls/compare/show.py": sum(show.COUNTS.values(), ()),
    "../mini_impls/faults/exercises.yaml": tuple(
        check.says for each in read_exercises() for check in each.checks
    ),
    "render/note_view.py": note_view._STATES.values(),
    "../mini_impls/faults": (
        *USUAL.values(),
        *(symptom.sign for symptom in SYMPTOMS.values()),
        *MEASURES,
    ),
    "model/number_with_unit.py": {dimension for dimension, _ in UNITS.values()},
}


SAYS = ("say", "counted", "named")


@cache
def in_templates() -> tuple[tuple[str, str, bool], ...]:
    """Return each text of a template with its place, and whether it is surely said."""
    return tuple(_in_templates())


def _in_templates() -> Iterator[tuple[str, str, bool]]:
    for path in sorted(TEMPLATES.glob("*.html")):
        tree = Environment().parse(path.read_text("utf-8"))
        said = {
            id(text)
            for node in tree.find_all((nodes.Filter, nodes.List))
            if isinstance(node, nodes.List) or node.name in SAYS
            for text in node.find_all(nodes.Const)
        }
        for text in tree.find_all(nodes.Const):
            if isinstance(text.value, str):
                where = f"{path.relative_to(ROOT)}:{text.lineno}"
                yield text.value, where, id(text) in said


def in_scripts(calls: str = "say|tell") -> Iterator[tuple[str, str, bool]]:
    for path in sorted(THEME.glob("*.js")):
        for number, line in enumerate(path.read_text("utf-8").splitlines(), start=1):
            for say, text in re.findall(rf'(\b(?:{calls})\()?"([^"]*)"', line):
                yield text, f"{path.relative_to(ROOT)}:{number}", bool(say)


@cache
def in_code() -> tuple[tuple[str, str, bool], ...]:
    return tuple(_in_code())


def _in_code() -> Iterator[tuple[str, str, bool]]:
    rooms = [
        (ROOT / name).rglob("*.py")
        for name in ("readerkit", "mini_impls/compare", "mini_impls/faults")
    ]
    for path in sorted(path for room in rooms for path in room):
        tree = ast.parse(path.read_bytes())
        said = {
            id(text)
            for node in ast.walk(tree)
            if isinstance(node, ast.Call) and node.args
            if called(node) in ("say", "Told", "MenuItem")
            for text in ast.walk(node.args[0])
        } - {
            id(node.slice) for node in ast.walk(tree) if isinstance(node, ast.Subscript)
        }
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                where = f"{path.relative_to(ROOT)}:{node.lineno}"
                yield node.value, where, id(node) in said


def called(call: ast.Call) -> str:
    """Return the name that is called, whatever it is an attribute of."""
    if isinstance(call.func, ast.Attribute):
        return call.func.attr
    return call.func.id if isinstance(call.func, ast.Name) else ""


def test_every_phrase_has_a_spanish_one():
    said = {
        text: where
        for texts in (in_templates(), in_scripts(), in_code())
        for text, where, is_said in texts
        if is_said
    }
    for file, table in TABLES.items():
        said |= dict.fromkeys(table, f"readerkit/{file}")
    known = read_words().all
    assert len(said) > 250
    assert [f"{said[text]}: '{text}'" for text in said if text not in known] == []


def test_a_spanish_one_begins_and_ends_with_the_space_of_its_phrase():
    for phrase, spanish in read_words().all.items():
        ends = [text.replace(text.strip(), "") for text in (phrase, spanish)]
        assert ends[0] == ends[1], phrase
    assert read_words().all[", then "] == ", después "


def test_scripts_say_what_pages_hand_over():
    said = {text: where for text, where, is_said in in_scripts("say") if is_said}
    said |= dict.fromkeys(("file", "name"), "site/theme/search.js")
    said |= dict(kinds_of_results())
    known = read_words().scripts
    assert [f"{said[text]}: '{text}'" for text in said if text not in known] == []


def kinds_of_results() -> Iterator[tuple[str, str]]:
    """Yield what the index begins its entries with."""
    path = ROOT / "readerkit" / "render" / "html" / "search.py"
    for node in ast.walk(ast.parse(path.read_bytes())):
        if isinstance(node, ast.Yield) and isinstance(node.value, ast.List | ast.Call):
            parts = getattr(node.value, "elts", None) or node.value.args
            if isinstance(parts[0], ast.Constant):
                yield parts[0].value, f"{path.relative_to(ROOT)}:{node.lineno}"


def test_every_spanish_one_is_said_somewhere_and_keeps_its_blanks():
    data = (ROOT / FILE).read_bytes()
    document = read_document(data, str(FILE), INTERFACE)
    texts = {
        text for each in (in_templates(), in_scripts(), in_code()) for text, *_ in each
    } | {text for table in TABLES.values() for text in table}
    faults = []
    for part in ("scripts", "phrases"):
        for english, spanish in getattr(document.value, part).items():
            at = (part, english)
            if english not in texts:
                faults.append(document.key_fault(at, "nobody says it", english, ""))
            if blanks(english) != blanks(spanish):
                faults.append(document.fault(at, "other blanks", spanish, english))
    twice = document.value.scripts.keys() & document.value.phrases.keys()
    assert list(map(str, faults)) == []
    assert twice == set()


def blanks(phrase: str) -> set[str]:
    return set(re.findall(r"{(\w+)}", phrase))


@pytest.mark.parametrize(
    ("text", "line", "column"),
    [
        ("scripts: {}\nphrases:\n  Why: 3\n", 3, 8),
        ("scripts: {}\nphrases: {Why: a, Why: b}\n", 2, 19),
        ("scripts: {}\nphrases: {Why: ' '}\n", 2, 16),
        ("scripts: {}\n", 1, 1),
        ("scripts: {}\nphrases: {}\nmore: {}\n", 3, 1),
    ],
)
def test_a_broken_file_names_its_line(text, line, column, tmp_path, monkeypatch):
    monkeypatch.setattr(interface_translation, "shipped_book", lambda: tmp_path)
    (tmp_path / "site").mkdir()
    (tmp_path / FILE).write_text(text)
    with pytest.raises(ContentError) as caught:
        read_words()
    [fault] = caught.value.faults
    assert (fault.file, fault.line, fault.column) == (
        str(tmp_path / FILE),
        line,
        column,
    )


@pytest.mark.parametrize(("language", "reads"), [("en", False), ("es", True)])
def test_it_is_read_only_for_who_asks(language, reads, real_cache):
    code = (
        "import sys; opened = []\n"
        "sys.addaudithook(lambda event, args: opened.append(str(args[0]))"
        " if event == 'open' else None)\n"
        "from readerkit.cli import main\n"
        "try:\n    main(sys.argv[1:])\nexcept SystemExit:\n"
        f"    print(any({FILE.name!r} in name for name in opened), file=sys.stderr)\n"
    )
    more = ("--lang", language) if reads else ()
    command = [sys.executable, "-c", code, "annotate", "tp-row-forward", *more]
    done = subprocess.run(command, capture_output=True, text=True, timeout=WAIT_S)
    assert done.stderr.endswith(f"{reads}\n")


@pytest.mark.parametrize("how", ["call", "set", "read", "any"])
@pytest.mark.parametrize("found", [{"count": n} for n in (0, 1, 2)] + [{"are": ("b",)}])
def test_how_a_name_is_used_has_one_verb(how, found):
    check = UsesCheck(of="f", places=("a.py",), how=how, **found)
    said = say_check(Claim("", uses=check), read_words().phrases.__getitem__)
    nowhere = found.get("count") == 0
    assert re.match(r"`f` (no )?se (llama|asigna|lee|usa) ", said)
    assert (" no se " in said) is nowhere
