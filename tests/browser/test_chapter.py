"""A chapter from disk: a setting is turned, a prediction is answered."""

from __future__ import annotations

import json

import pytest
from playwright.sync_api import expect

from readerkit.app.quiz_banks import QuizBanks
from tests.browser.barriers import barriers
from tests.browser.conftest import write_site
from tests.browser.test_pages import overflow
from tests.helpers import run, write_files
from tests.readerkit.quiz.sample import QUESTIONS
from tests.served_quiz import make_quiz_book

pytestmark = pytest.mark.sampled

CHAPTER = """\
# A chapter

It holds {= size("llama-2-7b", "parameters") * 18 | GB }.

```setting model=llama-2-7b dp=8 zero=1
dials: dp zero flash
memory: total = all of it
memory: weights = the weights
```

```predict pick
```

```question bytes
```
"""
SPANISH = CHAPTER.replace("A chapter", "Un capítulo").replace("It holds", "Ocupa")


@pytest.fixture(scope="module")
def made(browser, tmp_path_factory):
    folder = tmp_path_factory.mktemp("chapter")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("READERKIT_CACHE", str(folder / "cache"))
        patch.setenv("READERKIT_DATA", str(folder / "data"))
        varied = QUESTIONS.replace("choose: [7, 7]", "choose: [7, 8]")
        book = make_quiz_book(folder, varied)
        texts = {"01-a.md": CHAPTER, "01-a.es.md": SPANISH}
        at = "site/pages/chapters"
        write_files(book.root, {f"{at}/{name}": text for name, text in texts.items()})
        site = write_site(folder / "site", book.root)
        bank = QuizBanks(book.root).bank(7)
    return bank, f"file://{site}/chapters/a.html"


def fetched(page):
    return page.locator("head script[src*='theme/']").evaluate_all(
        "all => all.map(each => each.src.split('/').pop())"
    )


@pytest.mark.parametrize("width", [390, 1280])
def test_turned_dials_say_what_the_command_says(made, open_page, capsys, width):
    page = open_page(made[1], width=width)
    card = page.locator(".set-here")
    assert "estimates.js" not in fetched(page)
    before = card.locator("[data-item=total] .value").inner_text()
    card.get_by_label("ZeRO stage").select_option("3")
    card.get_by_label("dp data-parallel ranks").fill("4")
    command = card.locator("code[data-question]")
    expect(command).to_have_text(
        "readerkit estimate memory --model llama-2-7b --gpu h100-80gb --dp 4 --zero 3"
    )
    assert "estimates.js" in fetched(page)
    words = command.inner_text().split()[1:]
    said = json.loads(run(capsys, *words, "--json").out)["estimates"]
    for name in ("total", "weights"):
        item = next(each for each in said[-1]["items"] if each["name"] == name)
        how = card.locator(f"[data-item={name}] .how")
        expect(how).to_contain_text(f"= {item['substitution']}")
    assert card.locator("[data-item=total] .value").inner_text() != before
    assert (
        page.locator(".whole")
        .get_attribute("href")
        .endswith("estimates.html#model=llama-2-7b&dp=4&zero=3")
    )
    page.locator("label[for=lang-es]").click()
    expect(card.locator("[data-item=weights] .name")).to_have_text("pesos")
    assert overflow(page) <= 0
    assert not barriers(page)


def test_a_dial_that_is_refused_says_the_words_of_the_command(made, open_page):
    page = open_page(made[1])
    card = page.locator(".set-here")
    card.get_by_label("dp data-parallel ranks").fill("0")
    expect(card.locator(".refused[role=status]")).to_contain_text("dp: got 0")
    expect(card.locator("[data-item=total] .value")).to_have_text("\N{EN DASH}")
    card.get_by_label("dp data-parallel ranks").fill("")
    expect(card.locator(".not-whole")).to_be_visible()
    card.get_by_label("dp data-parallel ranks").fill("2")
    expect(card.locator(".refused:visible")).to_have_count(0)


@pytest.mark.parametrize("width", [390, 1280])
def test_a_prediction_is_answered_by_its_button(made, open_page, width):
    bank, address = made
    variant = bank.variant("pick", 0)
    page = open_page(address, width=width)
    assert "practice.js" not in fetched(page)
    asked = page.locator("#q-pick")
    wrong = next(key for key in variant.options if key != variant.typed_key)
    asked.locator(f"[data-choose={wrong}]").click()
    expect(asked.locator(".feedback")).to_contain_text("Not yet.")
    asked.locator(f"[data-choose={variant.typed_key}]").click()
    expect(asked.locator(".feedback")).to_contain_text("Right.")
    expect(asked.locator(".solution")).to_be_visible()
    assert overflow(page) <= 0
    assert not barriers(page)
    page.reload()  # what is kept is shown again
    expect(page.locator("#q-pick .feedback")).to_contain_text("Right.")
    page.locator("#q-pick").get_by_role("button", name="Once more").click()
    expect(page.locator("#q-pick .feedback")).to_be_hidden()


def test_a_question_is_answered_with_the_keyboard_and_kept(made, open_page):
    bank, address = made
    page = open_page(address)
    asked = page.locator("#q-bytes")
    field = asked.locator("[name=answer]:visible")
    field.focus()
    field.fill(bank.variant("bytes", 0).typed_key)
    field.press("Enter")
    expect(asked.locator(".feedback:visible")).to_contain_text("Right.")
    asked.get_by_role("button", name="Another variant").click()
    expect(asked.locator(".question:visible .feedback")).to_be_hidden()
    kept = page.evaluate("JSON.parse(localStorage.getItem('readerkit.quiz.7'))")
    assert [each["question"] for each in kept["answers"]] == ["bytes"]


def test_without_scripts_the_table_and_the_solution_stand(made, open_page):
    page = open_page(made[1], java_script_enabled=False)
    expect(page.locator(".set-here [data-item=total] .value")).to_be_visible()
    expect(page.locator(".set-here form")).to_be_hidden()
    page.locator("#q-pick .solution summary").click()
    expect(page.locator("#q-pick .solution .key")).to_be_visible()
