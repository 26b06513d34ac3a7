"""Drawings in a browser, whose fonts are others than those of who drew them."""

from __future__ import annotations

import pytest

STRUCK = """
() => {
  const inside = (p, r) =>
    p.x > r.left && p.x < r.right && p.y > r.top && p.y < r.bottom;
  const found = [];
  for (const label of document.querySelectorAll(".cluster-label p")) {
    const box = label.getBoundingClientRect();
    for (const path of document.querySelectorAll(".edgePaths path")) {
      const to = path.getScreenCTM(), length = path.getTotalLength();
      for (let at = 0; at <= length; at += 2)
        if (inside(path.getPointAtLength(at).matrixTransform(to), box)) {
          found.push(label.textContent);
          break;
        }
    }
  }
  return found;
}
"""
ASIDE = """
() => [...document.querySelectorAll(".node")].filter(node => {
  const label = node.querySelector("p")?.getBoundingClientRect();
  const box = node.getBoundingClientRect();
  const off = (a, b, c, d) => Math.abs(a + b - c - d) > 4;
  return label && (off(label.left, label.right, box.left, box.right) ||
    off(label.top, label.bottom, box.top, box.bottom));
}).map(node => node.textContent.trim())
"""


@pytest.mark.parametrize("language", ["", ".es"])
def test_no_arrow_strikes_a_title_and_labels_stand_in_the_middle(
    browser, site, language
):
    page = browser.new_page()
    drawn = sorted((site / "diagrams").glob(f"*{language}.light.svg"))
    drawn = [path for path in drawn if language or ".es." not in path.name]
    assert len(drawn) == 12
    struck, aside = {}, {}
    for path in drawn:
        page.goto(path.as_uri())
        struck[path.name] = page.evaluate(STRUCK)
        aside[path.name] = page.evaluate(ASIDE)
    page.close()
    assert {name: titles for name, titles in struck.items() if titles} == {}
    assert {name: labels for name, labels in aside.items() if labels} == {}
