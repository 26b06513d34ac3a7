"""A checklist in the terminal: what is asked, whether it is met, and the evidence."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import zip_longest

from rich.console import Console, Group, RenderableType
from rich.markdown import Markdown
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from readerkit.labs.lab import ChecklistItem
from readerkit.render.terminal_safe import visible_line

_MARKS = {
    "met": ("yes", "green"),
    "not met": ("no", "red"),
    "waived": ("waived", "yellow"),
}
_BESIDE = 110
_NARROW = 56


def print_checklist(
    items: Iterable[ChecklistItem],
    console: Console,
    names: Sequence[str] = (),
    open_mark: tuple[str, str] = _MARKS["not met"],
) -> None:
    """Print a table, a line or more an item, with its name in front if it has one.

    The evidence stands beside what is asked where there is room, and else below it:
    most of it ends in a command, which is to stay in one piece. On a narrow terminal
    all of it stands below the name.
    ``open_mark`` is the word, and its style, for what is not met.
    """
    if console.width < _NARROW:
        _print_below(items, console, names, open_mark)
        return
    is_wide = console.width >= _BESIDE
    table = Table(box=None, pad_edge=False, show_header=False, padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True)
    if names:
        table.add_column(no_wrap=True, style="bold")
    table.add_column(ratio=2, overflow="fold")
    if is_wide:
        table.add_column(ratio=3, overflow="fold")
    for item, name in zip_longest(items, names):
        word, style = open_mark if item.state == "not met" else _MARKS[item.state]
        what = Text(visible_line(item.what))
        evidence = Text(visible_line(item.evidence), style="dim")
        texts = [what, evidence] if is_wide else [Text("\n").join((what, evidence))]
        table.add_row(Text(word, style=style), *([name] if name else []), *texts)
    _print_unpadded(table, console)


def _print_below(
    items: Iterable[ChecklistItem],
    console: Console,
    names: Sequence[str],
    open_mark: tuple[str, str],
) -> None:
    for item, name in zip_longest(items, names):
        word, style = open_mark if item.state == "not met" else _MARKS[item.state]
        head = Text.assemble((word, style), "  ", (name or "", "bold"))
        what, evidence = map(visible_line, (item.what, item.evidence))
        texts = Text("\n").join((Text(what), Text(evidence, style="dim")))
        _print_unpadded(Group(head, Padding(texts, (0, 0, 0, 2))), console)


def print_page(markdown: str, console: Console) -> None:
    """Print a page that was written in Markdown."""
    _print_unpadded(Markdown(markdown), console)


def _print_unpadded(page: RenderableType, console: Console) -> None:
    """Print without the spaces with which rich fills each line, but those in colour."""
    with console.capture() as printed:
        console.print(page)
    for row in printed.get().splitlines():
        console.out(row.rstrip(), highlight=False)
