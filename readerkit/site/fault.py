"""What the server says where it cannot show what was asked for."""

from __future__ import annotations

import traceback
from html import escape

from readerkit.errors import ReaderkitError
from readerkit.model import addresses

_FAULT = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{path} · readerkit</title>
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; \
script-src 'self'; style-src 'self'; connect-src 'self'">
<link rel="stylesheet" href="{root}theme/site.css"></head>
<body><main id="content"><h1>{title}</h1>
<pre class="warning" role="alert">{said}</pre>
<p><a href="{root}index.html">The first page of the site</a></p></main>
</body></html>
"""


def fault_page(path: str, title: str, said: str) -> bytes:
    """Return a page that tells why there is no other, and follows its mending."""
    root = addresses.to_root(path)
    texts = {"root": root, "path": path, "title": title, "said": said}
    return _FAULT.format_map({k: escape(text) for k, text in texts.items()}).encode()


def said_of(error: Exception) -> str:
    """Return an error's message; of one that nobody foresaw, its name."""
    if isinstance(error, ReaderkitError):
        return str(error)
    traceback.print_exception(error)
    return f"{type(error).__name__}: {error}: a bug of readerkit; the terminal has more"
