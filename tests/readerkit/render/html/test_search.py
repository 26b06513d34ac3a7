"""The search index as it is packed: what was written is read again, and found."""

from __future__ import annotations

import json
from urllib.parse import unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from readerkit.render.html import search_packing as packing
from tests.helpers import make_book, run, unpack_numbers


@given(st.lists(st.integers(0, 10**6)))
def test_packed_numbers_are_read_again(values):
    packed = packing.numbers(values)
    assert list(unpack_numbers(packed)) == values
    # As it is in a string of a script, and none stands between entries.
    assert json.dumps(packed) == f'"{packed}"' and " " not in packed


@pytest.mark.parametrize("limit", [76, 76 * 16, 76 * 241])
def test_numbers_take_no_more_digits_than_they_need(limit):
    assert len(packing.number(limit)) == len(packing.number(limit - 1)) + 1


def test_an_odd_path_leads_to_its_page_and_notes_to_their_file(capsys, tmp_path):
    files = {"lib/100%.py": "def percent():\n    pass\n"}
    site = tmp_path / "site"
    book = make_book(tmp_path, files=files)
    result = run(
        capsys, "site", "build", "--book", str(book.root), "--output", str(site)
    )
    assert result.code == 0, result.err
    packed = (site / "search-index.js").read_text()
    data = json.loads(packed[packed.index("(") + 1 : packed.rindex(")")])
    pages = data["files"]["pages"].split("\n")
    odd = [(n, page) for n, page in enumerate(pages) if page]
    assert len(odd) == 1 and (site / unquote(odd[0][1])).is_file()
    assert data["files"]["paths"].split("\n")[odd[0][0]].endswith("100%.py")
    places = data["texts"][3].split("\n")
    noted = [place for place in places if place.startswith("=")]
    assert sorted(place.partition("#")[2] for place in noted) == ["close", "whole-step"]
    number = int(noted[0].partition("#")[0][1:])
    assert data["files"]["paths"].split("\n")[number].endswith("linear.py")
