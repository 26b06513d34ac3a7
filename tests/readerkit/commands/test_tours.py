"""Tours: data of a book, read in the terminal, on the site, and in other programs."""

import json
import re

import pytest
import yaml

from tests.helpers import read_search_index, write_files
from tests.readerkit.commands.test_exchange import imported, step, tour

TOUR = """\
id: a-step
title: One step and its end
about: From the step to what closes it.
stops:
  - note: whole-step
    says: Begin with `step`.
  - note: close
    says: Its forward ends here.
"""
SPANISH = """\
a-step:
  title: Un paso y su final
  says: [Empieza por `step`.]
"""


@pytest.fixture
def toured(locked):
    write_files(locked.book.root / "annotations" / "tours", {"a-step.yaml": TOUR})
    return locked


def test_tour_is_read_in_its_order_with_its_sentences(toured):
    out = toured.run("annotate", "--tour", "a-").out
    told = [
        "One step and its end (2 stops)",
        "stop 1 of 2\nBegin with `step`.",
        "loss.backward()",
        "stop 2 of 2\nIts forward ends here.",
        "if self.sequence_parallel:",
    ]
    places = [out.index(each) for each in told]
    assert places == sorted(places)
    plain = json.loads(toured.run("annotate", "--tour", "a-step", "--json").out)
    assert [(s["says"], s["note"]["first"]) for s in plain["stops"]] == [
        ("Begin with `step`.", 21),
        ("Its forward ends here.", 14),
    ]
    assert "a-step: One step" in re.sub(" +", " ", toured.run("path", "a-step").out)


def test_tour_in_spanish_has_the_english_where_it_lacks_words(toured):
    sidecar = {"a-step.es.yaml": SPANISH}
    write_files(toured.book.root / "annotations" / "tours", sidecar)
    out = toured.run("annotate", "--tour", "a-step", "--lang", "es").out
    assert "Un paso y su final (2 paradas)" in out
    assert "parada 1 de 2\nEmpieza por `step`." in out
    assert "parada 2 de 2\nIts forward ends here." in out


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            ("note: close", "note: clos"),
            "7:11: unknown annotation: got 'clos' (did you",
        ),
        (("id: a-step\n", ""), "missing key 'id'"),
        (("  - note: close\n    says: Its forward ends here.\n", ""), "at least 2"),
        (("about:", "abuot:"), "unknown key: got 'abuot', expected 'about', perhaps"),
        (("stops:", "stops: &a"), "an anchor"),
    ],
)
def test_faults_of_a_tour_are_told_at_their_place(toured, change, said):
    path = toured.book.path("tours/a-step.yaml")
    path.write_text(TOUR.replace(*change))
    done = toured.run("annotate", "--check")
    assert done.code == 1 and "annotations/tours/a-step.yaml:" in done.err
    assert said in done.err


def test_more_spanish_than_there_are_stops_is_a_fault(toured):
    long = {"a-step.es.yaml": "a-step: {says: [a, b, c]}\nnone: {title: x}\n"}
    write_files(toured.book.root / "annotations" / "tours", long)
    err = toured.run("annotate", "--check").err
    assert (
        "more texts in 'says' than stops in English: got 3, expected at most 2" in err
    )
    assert "unknown tour: got 'none'" in err


def test_sentence_of_a_tour_that_claims_is_held(toured):
    path = toured.book.path("tours/a-step.yaml")
    claim = (
        "\n    claims: [{says: ends here, absent: {in: [lib/*.py], name: all_reduce}}]"
    )
    path.write_text(TOUR.replace("ends here.", f"ends here.{claim}"))
    done = toured.run("annotate", "--check")
    assert done.code == 1 and "ends here" in done.err


def test_tour_has_a_page_and_the_paths_lead_to_it(toured):
    folder = toured.book.root.parent / "site"
    assert toured.run("site", "build", "--output", str(folder)).code == 0
    page = (folder / "tours" / "a-step.html").read_text()
    assert page.index("Begin with") < page.index("Its forward ends here")
    assert page.index("loss.backward") < page.index("Its forward ends here")
    entry, words = read_search_index(folder)["tours/a-step.html"]
    assert entry[:2] == ["tour", "One step and its end"] and "closes" in words
    assert 'href="tours/a-step.html"' in (folder / "paths.html").read_text()


def test_tour_opens_in_codetour_with_its_sentences(toured):
    folder = toured.book.root.parent / "tours"
    done = toured.run("export", "--codetour", str(folder), "--tour", "a-step")
    assert done.out == f"wrote {folder / 'a-step.tour'}\n"
    made = json.loads((folder / "a-step.tour").read_text())
    assert made["description"] == "From the step to what closes it."
    assert [each["selection"]["start"]["line"] for each in made["steps"]] == [21, 14]
    assert made["steps"][0]["description"].startswith("Begin with `step`.\n\n### ")
    out = toured.run("export", "--markdown", "-", "--tour", "a-step").out
    assert out.startswith("# One step and its end\n\nFrom the step")


def test_imported_tour_is_a_tour_with_what_was_said_between(locked):
    words = {"description": "Between the two."}
    text = tour(step(14), words, step(23, title="There"), description="About it.")
    done = imported(locked, "theirs.tour", text)
    path = locked.book.path("tours/a-tour.yaml")
    assert done.code == 0 and done.out.splitlines()[-1] == f"wrote {path}"
    assert yaml.safe_load(path.read_text()) == {
        "id": "a-tour",
        "title": "A tour",
        "about": "About it.",
        "stops": [{"note": "here"}, {"note": "there", "says": "Between the two."}],
    }
    assert "stop 2 of 2" in locked.run("annotate", "--tour", "a-tour").out


def test_imported_tour_of_a_reader_without_a_checkout_is_their_own(locked, tmp_path):
    text = tour(step(14), step(23, title="There"))
    assert imported(locked, "theirs.tour", text, "--into", "mine").code == 0
    own = tmp_path / "data" / "book" / "annotations" / "tours" / "a-tour.yaml"
    assert own.is_file()
    assert "stop 2 of 2" in locked.run("annotate", "--tour", "a-tour").out


def test_book_without_tours_says_so(locked):
    done = locked.run("annotate", "--tour", "x")
    assert done.code == 1 and "this book has no tours" in done.err


def test_a_tour_in_spanish_of_other_english_is_listed(toured):
    told = "a-step:\n  of: title-00000000\n  title: Un paso y su final\n"
    write_files(toured.book.root / "annotations" / "tours", {"a-step.es.yaml": told})
    out = toured.run("annotate", "--check").out
    assert "tours: 1 translation to check\n  a-step (es): title has changed" in out
    held = json.loads(toured.run("annotate", "--check", "--json").out)
    assert [each["id"] for each in held["tours"]["translations_to_check"]] == ["a-step"]
