"""Lab pages: the problem open, the solution and the cloud task folded away."""

from __future__ import annotations

import pytest

from tests.helpers import make_book, read_search_index, run, write_files

LABS = {
    "00.md": "# Lab 00: a *price*\n\nHow much? <script>alert(1)</script>\n",
    "00.solution.md": "# Lab 00: what it was\n\nFortytwo, with $x^2$.\n",
    "01.md": "# Lab 01: ranks\n\nIn `lib/linear.py`, not `lib/no.py`.\n\n"
    "```note close\n```\n",
    "01.es.md": "# Laboratorio 01: ranks\n\nDos procesos.\n\n```note close\n```\n",
    "01.task.yaml": "run: |\n  echo '</code><b>'\n",
}


def built(capsys, tmp_path, files):
    book = make_book(tmp_path)
    labs = {f"site/pages/labs/{name}": text for name, text in files.items()}
    write_files(book.root, labs)
    site = tmp_path / "site"
    options = ("--book", str(book.root), "--output", str(site))
    return site, run(capsys, "site", "build", *options)


@pytest.fixture
def site(capsys, tmp_path):
    site, result = built(capsys, tmp_path, LABS)
    assert result.code == 0, result.err
    return site


def test_solution_waits_behind_details(site):
    html = (site / "labs" / "00.html").read_text()
    before, _, folded = html.partition('<details class="folded" id="solution">')
    assert "How much?" in before and "Fortytwo" not in before
    solution = folded.partition("</details>")[0]
    assert "Fortytwo" in solution and "<msup>" in solution
    assert "<em>price</em>" in html
    assert "<script>alert" not in html and "&lt;script&gt;alert" in html
    assert 'id="task"' not in html


def test_cloud_task_is_shown_as_it_stands_and_notes_beside_their_lines(site):
    html = (site / "labs" / "01.html").read_text()
    assert "run: |\n  echo &#39;&lt;/code&gt;&lt;b&gt;&#39;" in html
    assert "readerkit lab 01 --task" in html
    assert "read/sample/lib/linear.py.html#close" in html
    assert "Dos procesos." in html
    path = "lib/linear.py"
    link = f'<a href="../read/sample/{path}.html"><code>{path}</code></a>'
    assert f"<p>In {link}, not <code>lib/no.py</code>.</p>" in html
    assert 'id="solution"' not in html
    assert 'href="../labs/00.html" rel="prev"' in html


def test_labs_are_found_from_menu_start_and_search(site):
    start = (site / "index.html").read_text()
    assert 'href="labs/index.html"' in start
    assert 'href="labs/01.html"' in start
    listed = (site / "labs" / "index.html").read_text()
    assert listed.partition('class="around"')[0].count('href="../labs/0') == 2
    index = read_search_index(site)
    labs = {page: said for page, (text, said) in index.items() if text[0] == "lab"}
    assert set(labs) == {"labs/00.html", "labs/01.html"}
    assert "alert" in labs["labs/00.html"]  # its text, not its title alone
    assert "fortytwo" not in (site / "search-index.js").read_text().lower()


def test_a_book_without_labs_names_none(capsys, tmp_path):
    site, result = built(capsys, tmp_path, {})
    assert result.code == 0, result.err
    assert not (site / "labs").exists()
    assert "labs/" not in (site / "index.html").read_text()


def test_a_fault_of_a_solution_names_its_line(capsys, tmp_path):
    faulty = {**LABS, "00.solution.md": "# Lab 00: x\n\n```note nobody\n```\n"}
    _, result = built(capsys, tmp_path, faulty)
    assert result.code == 1
    assert "site/pages/labs/00.solution.md:3:1: unknown note" in result.err
