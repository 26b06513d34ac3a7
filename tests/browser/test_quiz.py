"""The quiz on the site: self-check from disk, marked and kept when served."""

from __future__ import annotations

CHECK = "quiz/35.html"


def test_from_disk_each_question_has_its_solution_behind_a_disclosure(site, open_page):
    page = open_page(f"file://{site}/{CHECK}", java_script_enabled=False)
    questions = page.locator("article.question")
    assert questions.count() > 70
    assert page.locator("article.question .solution").count() == questions.count()
    bubble = page.locator("#q-pp-bubble-total")
    key = bubble.locator(".key")
    assert not key.is_visible()
    bubble.get_by_text("Solution").first.click()
    assert "%" in key.inner_text()
    bubble.get_by_role("link", name="get_bubble").or_(
        bubble.locator('a[href*="schedules.py.html#L"]')
    ).first.click()
    assert "read/minis/mini_impls/schedules.py.html#L" in page.url


def test_code_to_search_in_is_shown_without_the_way_to_the_answer(site, open_page):
    page = open_page(f"file://{site}/{CHECK}")
    asked = page.locator("article.question:has(.search-code)").first
    asked.locator(".search-code summary").click()
    assert asked.locator(".code .l").count() > 20
    assert asked.locator(".code .l a:not(:first-child)").count() == 0
