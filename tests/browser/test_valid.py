"""Every page is HTML as the standard has it: the Nu checker finds nothing."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.browser.test_pages import KINDS
from tests.helpers import ROOT

JAR = ROOT / "node_modules/vnu-jar/build/dist/vnu.jar"
MECHANISMS = ("mechanisms/zero-3.html", "mechanisms/pipeline-schedules.html")
OWN_FILES = "Resource violates Content Security Policy (meta tag)"
"""It takes no file for a page's own; that browsers do is seen in ``test_pages``."""
DATA = "Inline script violates Content Security Policy (meta tag)"
"""It is said of JSON too, which no browser runs, nor a policy forbids."""


@pytest.fixture(scope="module")
def checker():
    java = shutil.which("java")
    if java is None:
        pytest.skip("no java, which the Nu checker runs on")
    if not JAR.exists():
        pytest.skip("no Nu checker: make vnu brings it")
    return [java, "-Xss16m", "-jar", str(JAR), "--format", "json", "--stdout"]


def faults(checker, site: Path, *pages: str) -> list[str]:
    """Return what the checker says of pages, warnings too."""
    done = subprocess.run(
        [*checker, "--exit-zero-always", "--skip-non-html", *pages],
        cwd=site,
        capture_output=True,
        check=True,
    )
    return [
        f"{Path(each['url']).name}:{each.get('lastLine')}: {each['message']}"
        for each in json.loads(done.stdout)["messages"]
        if not each["message"].startswith((OWN_FILES, DATA))
    ]


def test_a_page_of_each_kind_is_valid(checker, site):
    assert faults(checker, site, *KINDS.values(), *MECHANISMS) == []


@pytest.mark.slow
def test_every_page_is_valid(checker, site):
    assert faults(checker, site, ".") == []


def test_the_checker_sees_a_fault_and_a_warning(checker, tmp_path):
    html = "<!doctype html><html lang=en><title>A</title><section><p><ul></ul></p>"
    (tmp_path / "a.html").write_text(f"{html}</section>")
    found = faults(checker, tmp_path, "a.html")
    assert len(found) == 2
    assert any("end tag" in each for each in found)
    assert any("lacks heading" in each for each in found)
