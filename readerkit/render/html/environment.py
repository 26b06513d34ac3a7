"""The one way from a page's values to its text: Jinja2, always escaping, never lax."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

from jinja2 import DictLoader, Environment, StrictUndefined

from readerkit.render.html import addresses
from readerkit.render.html.escape import shown
from readerkit.render.html.words import SPANISH, both, label


class Templates:
    """The templates of the site."""

    def __init__(self, texts: Mapping[str, str]) -> None:
        self.texts = dict(texts)
        self.digest = hashlib.sha256(repr(sorted(texts.items())).encode()).hexdigest()
        self._environment = Environment(
            loader=DictLoader(texts),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self._environment.filters.update(
            both=both,
            shown=shown,
            href=addresses.href,
            say=lambda text: both(label(text)),
            spanish=SPANISH.__getitem__,  # for attributes, which hold one text
        )

    def render(self, template: str, address: str, page: Any, **site: Any) -> str:
        """Return the text of a page that stands at an address."""
        return self._environment.get_template(template).render(
            page=page, address=address, root=addresses.to_root(address), **site
        )
