"""What an estimate says, in English and Spanish: names, numbers, formulas, notes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from markupsafe import Markup

from readerkit.estimate.item import Estimate, Item
from readerkit.model.language import Say, Told, english
from readerkit.model.told_parts import in_parts
from readerkit.render.estimate_table import number_texts
from readerkit.render.html.escape import shown
from readerkit.render.html.words import Text
from readerkit.render.terminal_safe import visible


@dataclass(frozen=True, slots=True)
class ItemTexts:
    """A number as a page shows it."""

    name: Text
    value: Text
    also: str
    formula: Text
    substitution: Text
    convention: Text
    source: Text


@dataclass(frozen=True, slots=True)
class EstimateWords:
    """The Spanish of estimates, in which a word may mean something else."""

    phrases: Mapping[str, str] = field(default_factory=dict)
    """Of the site."""
    names: Mapping[str, str] = field(default_factory=dict)
    conventions: Mapping[str, str] = field(default_factory=dict)
    """Parts of texts that are put together."""

    def known(self, text: str) -> str:
        """Return a text in Spanish, and nothing where it has none."""
        other = self.names.get(text) or in_parts(text, self.conventions)
        other = other or self.phrases.get(text, "")
        if other or not isinstance(text, Told):
            return other
        return text.said(self._phrase)

    def _phrase(self, phrase: str) -> str:
        other = self.phrases.get(phrase) or in_parts(phrase, self.conventions)
        return other or phrase

    def say(self, text: str) -> str:
        """Return a text in Spanish; the English one where there is no other."""
        return self.known(text) or text

    def tell(self, text: str | Text) -> Text:
        """Return a text in both languages; one that is told already as it is."""
        if isinstance(text, Text):
            return text
        other = self.known(text)
        return Text(shown(text), shown(other) if other else None)

    def both(self, make: Callable[[Say], str]) -> Text:
        """Return what is put together of phrases, in both languages."""
        own, other = make(english), make(self.say)
        return Text(shown(own), shown(other) if other != own else None)

    def titled(self, name: str, title: str) -> Text:
        """Return what an estimate is of, under its name."""
        if title.startswith(name):
            return self.tell(title)
        return self.both(lambda say: f"{say(name)}: {say(title)}")

    def named(self, text: str, number: int | None = None) -> Markup:
        """Return what an element is called aloud; a script puts the Spanish there."""
        more = "" if number is None else f", {number}"
        other = self.known(text)
        spanish = Markup(' data-es="{}{}"').format(other, more) if other else ""
        return Markup('aria-label="{}{}"').format(visible(text), more) + spanish

    def rows(self, estimate: Estimate) -> Iterator[ItemTexts]:
        """Yield the numbers of an estimate."""
        for item, other in zip(
            estimate.items, estimate.said(self.say).items, strict=True
        ):
            yield self._row(item, other)

    def _row(self, item: Item, other: Item) -> ItemTexts:
        value, also = number_texts(item)
        spanish, _ = number_texts(item, self.say)
        return ItemTexts(
            _pair(item.name, other.name),
            _pair(value, spanish),
            also,
            _sum(item.formula, other.formula),
            _sum(f"= {item.substitution}", f"= {other.substitution}"),
            self.tell(item.convention),
            Text(shown(item.source)),
        )


def _sum(own: str, other: str) -> Text:
    """Return a formula: where it has symbols alone, it is of no language."""
    if own != other or own.upper() == own.lower():
        return _pair(own, other)
    plain = Markup('<span lang="zxx">{}</span>').format(shown(own))
    return Text(plain, plain)


def _pair(own: str, other: str) -> Text:
    return Text(shown(own), shown(other))
