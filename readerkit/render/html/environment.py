"""The one way from a page's values to its text: Jinja2, always escaping, never lax."""

from __future__ import annotations

import re
import traceback
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache, partial
from typing import Any, Protocol

from jinja2 import (
    BytecodeCache,
    Environment,
    FunctionLoader,
    StrictUndefined,
    TemplateError,
    TemplateSyntaxError,
)
from jinja2.bccache import Bucket
from jinja2.sandbox import ImmutableSandboxedEnvironment
from markupsafe import Markup, escape

from readerkit.errors import ContentError, ContentFault
from readerkit.model import addresses
from readerkit.model.freshness import digest
from readerkit.render.html.escape import shown, shown_as_code, worded
from readerkit.render.html.words import Text, Words, around_code, both
from readerkit.render.terminal_safe import visible

LENGTH = 155
"""Letters that lists of pages show of a description."""
_UNSAID = re.compile(r"<a class=proved.*?</a>|<annotation.*?</annotation>")

_SECTION = re.compile(r'<h2 id="([^"]+)">(.*?)</h2>', re.S)


class TextPiece(Protocol):
    """A piece of a page, perhaps of prose."""

    @property
    def text(self) -> Text | None:
        """Its prose."""


def brief(text: Text | Markup | str) -> str:
    """Return the beginning of a text in English, without markup.

    >>> brief(Markup("<p>One <em>rank</em>.</p>"))
    'One rank.'
    """
    whole = text.en if isinstance(text, Text) else text
    plain = Markup(_UNSAID.sub("", escape(whole))).striptags()
    plain = " ".join(visible(plain).split())
    if len(plain) <= LENGTH:
        return plain
    return plain[:LENGTH].rpartition(" ")[0].rstrip(",;:") + " …"


def opening(pieces: Iterable[TextPiece]) -> str:
    """Return the beginning of the first paragraph of a text."""
    prose = next((piece.text for piece in pieces if piece.text), None)
    if prose is None:
        return ""
    return brief(Markup(prose.en.partition("</p>")[0]))


def sections(pieces: Iterable[TextPiece]) -> dict[str, list[tuple[str, str]]]:
    """Return the sections of a text by language: the address of each, and its title."""
    found: dict[str, list[tuple[str, str]]] = {"en": [], "es": []}
    for prose in (piece.text for piece in pieces if piece.text):
        for language, told in (("en", prose.en), ("es", prose.es or "")):
            found[language] += [
                (mark, Markup(_UNSAID.sub("", title)).striptags())
                for mark, title in _SECTION.findall(told)
            ]
    return found


_COMPILED: dict[tuple[str, str, str], bytes] = {}
"""What this process compiled: a served site is made again at each change."""


class _CompiledTemplates(BytecodeCache):
    """The templates that were compiled for one kind of environment and its words.

    Code for a sandbox asks before each call and attribute, and a phrase that a template
    says is translated when it is compiled: none serves another.
    """

    def __init__(self, made_for: str) -> None:
        self._made_for = made_for

    def load_bytecode(self, bucket: Bucket) -> None:
        """Give a bucket the code of its template, where that was compiled before."""
        if known := _COMPILED.get((self._made_for, bucket.key, bucket.checksum)):
            bucket.bytecode_from_string(known)

    def dump_bytecode(self, bucket: Bucket) -> None:
        """Keep what was compiled now."""
        code = bucket.bytecode_to_string()
        _COMPILED[self._made_for, bucket.key, bucket.checksum] = code


class Templates:
    """The templates of the site.

    A book may bring its own: text from anyone, which reaches no Python beyond what it
    is given. Those of the package are code like the rest of it, and made quicker.
    """

    def __init__(
        self, texts: Mapping[str, str], words: Words, *, are_ours: bool = False
    ) -> None:
        self.texts, self.words = dict(texts), words
        self.digest = digest(repr((sorted(texts.items()), words)))
        kind = Environment if are_ours else ImmutableSandboxedEnvironment
        self._environment = kind(
            loader=FunctionLoader(self._source),
            autoescape=True,
            undefined=StrictUndefined,
            finalize=_visibly,
            trim_blocks=True,
            lstrip_blocks=True,
            bytecode_cache=_CompiledTemplates(f"{kind.__name__} {digest(repr(words))}"),
        )
        self._environment.filters.update(
            around_code=around_code,
            both=both,
            brief=brief,
            opening=opening,
            sections=sections,
            counted=words.counted,
            plain=visible,
            told=words.told,
            worded=partial(words.told, marked=worded),
            as_code=shown_as_code,
            href=addresses.href,
            seen_from=addresses.to_page,
            say=lru_cache(1 << 12)(words.say),
            named=words.named,
            spanish=words.spanish,
            titled=words.titled,
        )

    def render(self, template: str, address: str, page: Any, **site: Any) -> str:
        """Return the text of a page that stands at an address.

        Text in ``page`` is escaped where it is shown, and nothing hides in it.

        Raises:
            ContentError: a template that cannot be read, or asks for what is not there.
        """
        try:
            return self._environment.get_template(template).render(
                page=page, address=address, root=addresses.to_root(address), **site
            )
        except (TemplateError, OverflowError) as error:  # the latter of a long range
            raise ContentError([self._fault(error, template)]) from None

    def _source(self, name: str) -> tuple[str, str, Callable[[], bool]] | None:
        """Return a template with its name as its file, which faults then name."""
        text = self.texts.get(name)
        return None if text is None else (text, name, lambda: True)

    def _fault(
        self, error: TemplateError | OverflowError, template: str
    ) -> ContentFault:
        """Return what is wrong and where: it may be in an included template."""
        name, line = template, 1
        for frame, number in traceback.walk_tb(error.__traceback__):
            if frame.f_code.co_filename in self.texts:
                name, line = frame.f_code.co_filename, number
        if isinstance(error, TemplateSyntaxError):
            name, line = error.name or template, error.lineno
        what = getattr(error, "message", None) or str(error)
        return ContentFault(f"site/templates/{name}", line, 1, what)


def _visibly(value: Any) -> Any:
    """Return what is put into a page: of plain text nothing stays unseen."""
    return shown(value) if type(value) is str else value
