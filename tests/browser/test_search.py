"""Search: what people wrote comes before names, and the list is no trap."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

LAYERS = "read/megatron/megatron/core/tensor_parallel/layers.py.html"
WRITTEN = {"citation", "note", "pitfall", "concept", "chapter", "lab", "beside"}


@pytest.fixture
def layers(site, open_page):
    return open_page(f"file://{site}/{LAYERS}", width=1440)


def look_for(page, query):
    """The kinds and names that a query finds, in order."""
    page.locator("#search").fill(query)
    page.locator("#search-results:not([aria-busy=true]) > *").first.wait_for()
    found = page.locator("#search-results a")
    return list(
        zip(
            found.locator(".what").all_inner_texts(),
            found.locator(".name").all_inner_texts(),
            strict=True,
        )
    )


def test_notes_that_say_a_word_stand_before_names_that_hold_its_letters(layers):
    found = look_for(layers, "dgrad")
    kinds = [kind for kind, _ in found]
    names = [name for _, name in found]
    assert kinds[0] in WRITTEN
    noted = "The all-reduce of the input gradient overlaps the weight gradient"
    assert noted in names[:4]
    assert not any("GradScaler" in name or "sharded_grad" in name for name in names)


def test_a_name_typed_whole_comes_first(layers):
    assert look_for(layers, "RowParallelLinear")[0] == ("name", "RowParallelLinear")
    assert look_for(layers, "layers.py")[0] == ("file", "layers.py")


def test_names_keep_their_place_beside_a_word_that_every_note_says(layers):
    kinds = [kind for kind, _ in look_for(layers, "forward")]
    assert kinds[0] in WRITTEN
    assert kinds.count("name") > 10


IS_FOUND = [
    ("ZeRO-3", "concept", "ZeRO"),
    ("Shoeybi", "reference", "Megatron-LM: Training Multi-Billion"),
    ("Megatron-LM: Training", "reference", "Megatron-LM: Training"),
    ("quiz", "page", "Quiz"),
    ("estimates", "page", "Estimates"),
    ("collectives", "quiz", "collectives"),
    ("out of memory at the first", "symptom", "Out of memory at the first"),
    ("all-reduce", "concept", "All-reduce"),
    ("all reduce", "concept", "All-reduce"),
    ("allreduce", "concept", "All-reduce"),
    ("parallellinear", "name", "ColumnParallelLinear"),
    ("paramandgrad", "file", "param_and_grad_buffer.py"),
    ("allel_state", "file", "parallel_state.py"),
    ("all–reduce", "concept", "All-reduce"),  # noqa: RUF001 (a dash, as printed)
    ("ZeRO3", "concept", "Parameter sharding (ZeRO stage 3"),
    ("zero-3", "concept", "Parameter sharding (ZeRO stage 3"),
    ("self._forward_impl", "citation", "One switch picks"),
    ("ParallelLinear", "name", "ColumnParallelLinear"),
    ("reduce scatter sequence", "name", "reduce_scatter_to_sequence_parallel_region"),
    ("tp-row-forward", "citation", "One switch picks the collective that closes"),
    ("memory wall", "concept", "The memory wall"),
    ("two reasons", "chapter", "Why distributed: the two reasons"),
    ("memory calculator", "estimate", "What one GPU holds"),
    ("param_and_grad_buffer", "file", "param_and_grad_buffer.py"),
]


def test_everything_that_is_written_is_found(layers):
    for query, kind, name in IS_FOUND:
        found = look_for(layers, query)
        assert any(k == kind and name in n for k, n in found), (query, found[:12])


IN_CODE = [
    ("ColumnParallelLinear.forward", "name", "ColumnParallelLinear.forward"),
    ("RowParallelLinear.forward()", "name", "RowParallelLinear.forward"),
    ("torch.distributed.all_reduce", "name", "all_reduce"),
    ("dist.all_reduce", "name", "all_reduce"),
    ("dist.all_reduce(x, group)", "name", "all_reduce"),
    ("self._forward_impl", "name", "RowParallelLinear._forward_impl"),
    ("forward(", "name", "MLP.forward"),
    ("layers.py:1274", "file", "layers.py"),
    ("layers.py 1274", "file", "layers.py"),
    ("megatron/core/tensor_parallel/layers.py", "file", "layers.py"),
]


def test_what_stands_in_code_is_found_first(layers):
    for query, kind, name in IN_CODE:
        found = look_for(layers, query)[0]
        assert found[0] == kind and found[1].startswith(name), query


@pytest.mark.further
def test_what_is_nowhere_is_not_found(layers):
    for query in ("xyzzy.nothingatall", "nothingatall(", "(", ":"):
        assert look_for(layers, query) == [], query


@pytest.mark.further
def test_the_list_closes_when_the_focus_leaves(layers):
    look_for(layers, "dgrad")
    layers.keyboard.press("Tab")
    expect(layers.locator("#search-results")).to_be_hidden()
    layers.keyboard.press("Shift+Tab")
    layers.locator("#search-results a").first.wait_for()
    second = layers.locator("#search-results a").nth(1)
    address = second.evaluate("a => a.href")
    second.click()
    expect(layers).to_have_url(address)


def test_the_box_shows_what_is_typed(layers):
    box, hint = layers.locator("#search"), layers.locator(".search kbd")
    expect(hint).to_be_visible()
    bar = layers.locator(".top").bounding_box()["height"]
    box.fill("reduce_scatter_to_sequence_parallel")
    expect(hint).to_be_hidden()
    assert box.evaluate("box => box.scrollWidth <= box.clientWidth")
    assert layers.locator(".top").bounding_box()["height"] == bar
    box.fill("")
    box.blur()
    expect(hint).to_be_visible()


def test_on_a_phone_the_list_is_on_the_screen(site, open_page):
    page = open_page(f"file://{site}/{LAYERS}", width=390)
    look_for(page, "dgrad")
    box = page.locator("#search-results").bounding_box()
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= 390
