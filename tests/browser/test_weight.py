"""What a reading page weighs: its HTML by the line of code, and its scripts."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import unquote, urlsplit

LARGEST = "read/megatron/megatron/core/transformer/transformer_config.py.html"
SOURCES = "() => Array.from(document.scripts, each => each.src).filter(Boolean)"


def test_a_line_of_code_takes_110_bytes_of_html_at_most(site):
    lines = weight = 0
    for page in (site / "read").rglob("*.html"):
        text = page.read_bytes()
        here = len(re.findall(rb"<div id=L\d", text))
        lines += here
        weight += len(text) if here else 0
    assert lines > 300_000
    assert weight / lines <= 110


def test_the_scripts_of_a_reading_page_are_small(site, open_page):
    page = open_page(f"file://{site}/{LARGEST}")
    files = [Path(unquote(urlsplit(src).path)) for src in page.evaluate(SOURCES)]
    assert len(files) > 3
    assert sum(each.stat().st_size for each in files) <= 60_000
