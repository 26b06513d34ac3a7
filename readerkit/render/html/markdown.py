"""Prose as HTML: Markdown without raw HTML, formulas as MathML, then cleaned."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

import nh3
from markdown_it import MarkdownIt
from markupsafe import Markup
from math_core import LatexError, LatexToMathML
from mdit_py_plugins.dollarmath import dollarmath_plugin

from readerkit.errors import ReaderkitError
from readerkit.render.terminal_safe import visible


def _words(text: str) -> set[str]:
    return set(text.split())


_MATHML = _words(
    "math mrow mi mn mo ms mtext mspace mfrac msqrt mroot msub msup msubsup munder "
    "mover munderover mtable mtr mtd mstyle mpadded mphantom merror menclose"
)
_PROSE = _words(
    "p h2 h3 h4 em strong code pre a ul ol li blockquote table thead tbody tr th td hr "
    "br s div span"
)
_MATH_ATTRIBUTES = _words(
    "accent accentunder columnalign display displaystyle fence form linethickness "
    "lspace mathvariant maxsize minsize movablelimits rowspacing columnspacing rspace "
    "scriptlevel separator stretchy symmetric height depth width voffset"
)
_ATTRIBUTES: dict[str, set[str]] = {
    **dict.fromkeys(_MATHML, _MATH_ATTRIBUTES),
    "a": {"href", "title"},
    "ol": {"start"},
    "h2": {"id"},
    "h3": {"id"},
}


_COLOUR = re.compile(r"\x1b\[[0-9;]*m")


class FormulaError(ReaderkitError):
    """A formula that cannot be set."""

    latex = ""
    """The formula, as it was written."""


@lru_cache
def _parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"html": False}).enable(
        ["table", "strikethrough"]
    )
    return parser.use(
        dollarmath_plugin, allow_space=False, allow_digits=False, renderer=_formula
    )


def _formula(latex: str, options: dict[str, Any]) -> str:
    is_block = bool(options["display_mode"])
    try:
        return LatexToMathML().convert_with_local_state(latex, displaystyle=is_block)
    except LatexError as error:
        said = _COLOUR.sub("", str(error)).partition("Error: ")[2].partition("\n")[0]
        fault = FormulaError(f"formula ${latex}$: {said or 'cannot be set'}")
        fault.latex = latex
        raise fault from None


@lru_cache(4096)
def prose(text: str) -> Markup:
    """Return paragraphs of Markdown as safe HTML.

    Raises:
        FormulaError: a formula that is not LaTeX as math-core knows it.
    """
    told = _parser().render(visible(text))
    # Over a column of names stands nothing: that is no heading.
    return _clean(told.replace("<th></th>", "<td></td>"))


@lru_cache(4096)
def line(text: str) -> Markup:
    """Return one line of Markdown as safe HTML, without a paragraph around it."""
    return _clean(_parser().renderInline(visible(" ".join(text.split()))))


@lru_cache(4096)
def title(text: str) -> Markup:
    """Return one line that may stand inside a link: what it links is only its words."""
    return Markup(_cleaner_of_titles().clean(line(text)))


def _own_scheme(tag: str, attribute: str, value: str) -> str | None:
    """Drop an address that takes its scheme from the page and goes to another host."""
    return None if attribute == "href" and value.startswith("//") else value


def _clean(html: str) -> Markup:
    cleaned = _cleaner().clean(html)
    # Over the names of rows there is no heading, for ears neither.
    return Markup(cleaned.replace("<th></th>", "<td></td>"))


# A cleaner is made once: that takes thirty times as long as to clean a sentence.
@lru_cache
def _cleaner() -> nh3.Cleaner:
    return nh3.Cleaner(
        tags={*_PROSE, *_MATHML},
        attributes=_ATTRIBUTES,
        attribute_filter=_own_scheme,
        url_schemes={"http", "https"},
        link_rel="noreferrer",
    )


@lru_cache
def _cleaner_of_titles() -> nh3.Cleaner:
    return nh3.Cleaner(tags={*_PROSE, *_MATHML} - {"a"}, attributes=_ATTRIBUTES)
