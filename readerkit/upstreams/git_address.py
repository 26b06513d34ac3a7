"""Which addresses git is given: what a book names is refused before git is started."""

from __future__ import annotations

import os
import re

from readerkit.errors import SourceError

ALLOWED = "READERKIT_SCHEMES"
"""Names what an address may begin with beside ``https``, for servers of one's own."""

_KNOWN = ("ssh", "http", "git", "file")
_ADDRESS = re.compile(
    r"(?P<scheme>[a-z]+)://"
    r"(?:(?P<user>[^/@]*)@)?"
    r"(?P<host>[a-z0-9][a-z0-9.-]*|\[[0-9a-f:.]+\]|)(?::[0-9]{1,5})?"
    r"(?:/[^\s\\\x00-\x20\x7f]*)?",
    re.IGNORECASE,
)


def check_address(url: str) -> None:
    """Refuse an address that a book may not have git go to.

    Raises:
        SourceError: another scheme than ``https`` and those that ``READERKIT_SCHEMES``
            allows, credentials, or what git might take for an option or a command.
    """
    found = _ADDRESS.fullmatch(url)
    scheme = url.partition(":")[0]
    allowed = {"https", *os.environ.get(ALLOWED, "").split()} & {"https", *_KNOWN}
    if scheme not in allowed:
        more = f"; to allow {scheme}: {ALLOWED}={scheme}" if scheme in _KNOWN else ""
        raise SourceError(
            f"got the address {url!r}, expected https://…: what is on this machine is "
            f"read with --source PATH{more}"
        )
    user = found["user"] if found else None
    if user is not None and (scheme != "ssh" or not re.fullmatch(r"\w+", user)):
        raise SourceError("got an address with credentials, expected one without")
    if found is None or bool(found["host"]) is (scheme == "file"):
        raise SourceError(f"got the address {url!r}, expected https://host/path")
