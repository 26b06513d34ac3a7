"""The site's own words in English and Spanish, and texts that exist in either."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from markupsafe import Markup

from readerkit.model.language import Say, Told, english, said
from readerkit.model.told_parts import in_parts
from readerkit.render.html.escape import shown
from readerkit.render.terminal_safe import visible


@dataclass(frozen=True, slots=True)
class Text:
    """Something to read, as markup, in English and perhaps in Spanish."""

    en: Markup
    es: Markup | None = None


_BLOCKS = ("<p", "<ul", "<ol", "<div", "<pre", "<table", "<figure", "<details")


@lru_cache(1 << 12)
def both(text: Text, tag: str = "span") -> Markup:
    """Return a text in both languages, of which a page shows one at a time."""
    if text.es == text.en:
        return text.en
    if text.es is None:
        # A name is the same in both; a block within a span would be no HTML.
        if " " not in text.en or (tag == "span" and text.en.startswith(_BLOCKS)):
            return text.en
        return Markup('<{0} lang="en">{1}</{0}>').format(tag, text.en)
    # Without quotes: a page of code says some sixty phrases, each twice.
    one = "<{0} class=b lang=en>{1}</{0}>"
    other = "<{0} class=b lang=es>{2}</{0}>"
    return Markup(one + other).format(tag, text.en, text.es)


_FIRST_CODE = re.compile("<code>[^<]*</code> ")
_LAST_CODE = re.compile(" <code>[^<]*</code>$")


def around_code(text: Text) -> Markup:
    """Return a text in both languages; code that both begin or end with is there once.

    What a claim holds is mostly code, which neither language changes.
    """
    begins, ends = _FIRST_CODE.match(text.en), _LAST_CODE.search(text.en)
    first = begins[0] if begins and (text.es or "").startswith(begins[0]) else ""
    last = ends[0] if ends and (text.es or "").endswith(ends[0]) else ""
    if text.es is None or len(first + last) >= min(len(text.en), len(text.es)):
        return both(text)
    en, es = (each[len(first) : len(each) - len(last)] for each in (text.en, text.es))
    return Markup(first) + both(Text(en, es)) + Markup(last)


@dataclass(frozen=True, slots=True)
class Words:
    """What the site itself says, in Spanish, by the English words."""

    phrases: Mapping[str, str] = field(default_factory=dict)
    scripts: Mapping[str, str] = field(default_factory=dict)
    """Those among them that scripts say."""
    records: Mapping[str, str] = field(default_factory=dict)
    """Parts of the texts of records."""

    def in_spanish(self, phrase: str) -> str:
        """Return a phrase in Spanish; the English one where there is no other."""
        return self.phrases.get(phrase, phrase)

    def text(self, tell: Callable[[Say], str]) -> Text:
        """Return what is told with phrases, in both languages."""
        own, other = tell(english), tell(self.in_spanish)
        return Text(shown(own), shown(other) if other != own else None)

    def of_record(self, *texts: str, form: str = "{}") -> Text:
        """Return what a record says; in English alone where a part has no other."""
        known = [
            self.phrases.get(text) or in_parts(text, self.records) for text in texts
        ]
        other = shown(form.format(*known)) if all(known) else None
        return Text(shown(form.format(*texts)), other)

    def told(self, text: str, marked: Callable[[str], Markup] = shown) -> Markup:
        """Return what a quiz says, in both languages where it has words for it."""
        spanish = said(text, self.in_spanish)
        other = None if spanish == text else marked(spanish)
        return both(Text(marked(text), other))

    def say(self, phrase: str) -> Markup:
        """Return a phrase in both languages."""
        spanish = self.phrases.get(phrase)
        return both(Text(shown(phrase), shown(spanish) if spanish else None))

    def spanish(self, text: str) -> str:
        """Return a phrase, or what a quiz says, in Spanish where that is known."""
        is_told = isinstance(text, Told)
        return said(text, self.in_spanish) if is_told else self.in_spanish(text)

    def named(self, phrase: str, number: int | None = None) -> Markup:
        """Return what an element is called aloud; a script puts the Spanish there."""
        spanish = self.phrases.get(phrase)
        more = "" if number is None else f" {number}"
        other = Markup(' data-es="{}{}"').format(spanish, more) if spanish else ""
        return Markup('aria-label="{}{}"').format(visible(phrase), more) + other

    def titled(self, title: Text | str, end: str = "") -> Markup:
        """Return the title of a page or a drawing, with the attribute it needs."""
        if isinstance(title, Text):
            own, other = title.en.striptags(), title.es and title.es.striptags()
        elif isinstance(title, Told):
            own, other = str(title), title.said(self.in_spanish)
        else:
            own, other = title, self.phrases.get(title)
        mark = Markup(' data-es="{}{}"').format(other, end) if other else ' lang="en"'
        opening = Markup("<title") + Markup(mark) + Markup(">")
        return opening + visible(str(own)) + end + Markup("</title>")

    def counted(self, number: int, one: str, several: str) -> Markup:
        """Return a number with the word for one or for several, in both languages."""
        word = self.say(one if number == 1 else several)
        return Markup("{:,} {}").format(number, word)

    def before(self, script: Callable[[], bytes]) -> bytes:
        """Return a script, and before it what scripts say in Spanish."""
        packed = json.dumps(self.scripts, ensure_ascii=False, separators=(",", ":"))
        return f"window.readerkitWords = {packed};\n".encode() + script()
