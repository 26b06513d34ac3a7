"""Numbers in the prose of a chapter: computed, with their units, in two languages."""

from __future__ import annotations

import pytest

from tests.helpers import ROOT, make_book, run, write_files
from tests.quick import quick_first

pytestmark = pytest.mark.sampled

ENGLISH = """\
# Numbers

```let
n = size("llama-2-70b", "parameters")
states = 16 * n
```

Of {= n / 10**9 } billion parameters the states are {= states | B}, or
{= states / gpu("h100-80gb", "memory") } GPUs of {= gpu("h100-80gb", "memory") | GB }.
A bubble of {= bubble_fraction(stages=4, microbatches=8) | % },
{= 6 * n * 10**12 | FLOP }, {= 3 | days }, {= 2.5e-3 | s }, `--dp {= 8 }`,
$16 \\cdot {= 2000 | tokens }$.
"""
SPANISH = """\
# Números

```let
n = size("llama-2-70b", "parameters")
states = 16 * n
```

De {= n / 10**9 } mil millones de parámetros el estado ocupa {= states | GB}.
Tres días: {= 3 | days }.
"""


def built(tmp_path, capsys, english=ENGLISH, spanish=SPANISH, more=None):
    book = make_book(tmp_path)
    folder = "site/pages/chapters"
    files = {f"{folder}/01-n.md": english, f"{folder}/01-n.es.md": spanish}
    write_files(book.root, {**files, **(more or {})})
    site = tmp_path / "site"
    where = ("--book", str(book.root), "--output", str(site))
    done = run(capsys, "site", "build", *where)
    return site / "chapters" / "n.html", done, book


def computed(text):
    return f'<span class="computed">{text}</span>'


def test_numbers_of_prose_are_computed_with_their_units(tmp_path, capsys):
    page, done, _ = built(tmp_path, capsys)
    assert done.code == 0, done.err
    html = page.read_text()
    english, spanish = html.split("De <span", 1)
    for text in ["69", "1.1 TB", "13.8", "80 GB", "27.3%", "3 days", "2.5 ms"]:
        assert computed(text) in english, text
    assert computed("4.14 × 10²³ FLOP") in english
    assert "<code>--dp " + computed("8") + "</code>" in english
    assert "<mtext>tokens</mtext>" in english
    assert computed("1,104 GB") in spanish
    assert computed("3 días") in spanish
    assert "{=" not in html
    assert "<code>states</code> = <code>16 * n</code>" in html


WRONG = {
    "no value": ("{= nada }", ":3:1: unknown name 'nada'"),
    "no end": ("{= 1 | GB", ":3:1: a number that does not end: expected {= EXPR"),
    "no function": ("One\n{= nada(1) }.", ":4:1: unknown function 'nada'"),
    "no model": ('{= size("llama-9", "parameters") }', ":3:1: size: "),
    "no field": ('{= gpu("h100-80gb", "wings") }', ":3:1: gpu: "),
    "no item": ('{= estimate("memory", "wings") }', ":3:1: estimate: "),
    "refused": ('{= estimate("memory", "total", tp=3) }', ":3:1: estimate: "),
    "no dial": ('{= estimate("memory", "total", wings=3) }', ":3:1: estimate: "),
    "no record": ('{= recorded("nada", "world_size") }', ":3:1: recorded: "),
    "no output": ('{= printed("nada", "x") }', ":3:1: printed: no output"),
    "centuries": ("{= 10**9 | days }", ":3:1: got 1e+09 days: expected a number"),
    "let without a name": ("```let\n16\n```", ":4:1: not a row of 'let': got '16'"),
    "let without a value": ("```let\na = b\n```", ":4:1: unknown name 'b'"),
    "let twice": ("```let\na = 1\na = 2\n```", ":5:1: 'a' has a value already"),
}


@pytest.mark.parametrize("command", quick_first(["check", "build"]))
@pytest.mark.parametrize(("text", "said"), WRONG.values(), ids=WRONG)
def test_a_number_without_a_value_is_a_fault_at_its_line(
    tmp_path, capsys, text, said, command
):
    book = make_book(tmp_path)
    write_files(book.root, {"site/pages/chapters/01-n.md": f"# N\n\n{text}\n"})
    where = ("--book", str(book.root))
    if command == "check":
        done = run(capsys, "annotate", "--check", *where)
    else:
        output = ("--output", str(tmp_path / "site"))
        done = run(capsys, "site", "build", *where, *output)
    assert done.code == 1
    assert f"site/pages/chapters/01-n.md{said}" in done.err + done.out


def test_spanish_computes_what_english_computes(tmp_path, capsys):
    spanish = SPANISH.replace("{= states | GB}", "{= 2 * states | GB}")
    _, done, _ = built(tmp_path, capsys, spanish=spanish)
    assert done.code == 1
    what = "a number that the English text does not have: got '2 * states'"
    assert f"01-n.es.md:8:1: {what}" in done.err


def test_spanish_has_the_same_names(tmp_path, capsys):
    spanish = SPANISH.replace("16 * n", "18 * n")
    _, done, _ = built(tmp_path, capsys, spanish=spanish)
    assert done.code == 1
    assert "01-n.es.md:3:1: not what the English text shows here" in done.err


def test_a_computed_number_needs_no_claim_and_a_typed_one_does(tmp_path, capsys):
    book = make_book(tmp_path)
    text = "# N\n\nIt holds {= 16 * 7 | GB }.\n\nIt holds 112 GB.\n"
    write_files(book.root, {"site/pages/chapters/01-n.md": text})
    where = ("--book", str(book.root))
    done = run(capsys, "annotate", "--check", "--claims", *where)
    assert "01-n.md:5: n, text (112): It holds 112 GB." in done.out
    assert "{=" not in done.out + done.err


def test_what_was_recorded_and_printed_is_read(tmp_path, capsys):
    rows = (
        '{= recorded("ddp_torch", "world_size") }, '
        '{= recorded("ddp_torch", "totals.calls", side="mini", rank=0, '
        'op="all_reduce") } and '
        '{= printed("bytes_per_parameter", "mixed.total") }.'
    )
    records = ROOT / "annotations"
    more = {
        f"annotations/{name}": (records / name).read_text()
        for name in ("records/ddp_torch.json", "experiments/printed.json")
    }
    english = f"# N\n\n{rows}\n"
    page, done, _ = built(tmp_path, capsys, english, english, more)
    assert done.code == 0, done.err
    for number in ("2", "4", "16"):
        assert computed(number) in page.read_text()
