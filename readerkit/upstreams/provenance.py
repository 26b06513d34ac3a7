"""Where the cached bytes of an upstream came from, noted when they were fetched."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from readerkit.upstreams.store import BlobStore, write_atomically
from readerkit.upstreams.upstream import Upstream


@dataclass(frozen=True, slots=True)
class Provenance:
    """The source that served, and when."""

    source: str
    origin: str
    when: str
    """UTC date and time."""
    public: str = ""
    """The origin for others to read: no path of this machine. Empty: not noted."""


def read_provenance(upstream: Upstream, store: BlobStore) -> Provenance | None:
    """Return the provenance of an upstream, or None where none is readable."""
    try:
        kept = Provenance(**json.loads(_path(upstream, store).read_text("utf-8")))
    except (OSError, ValueError, TypeError, RecursionError):
        return None
    said = asdict(kept).values()
    return kept if all(isinstance(each, str) for each in said) else None


def write_provenance(
    upstream: Upstream, store: BlobStore, kept: Provenance, licence: bytes | None
) -> None:
    """Note where bytes came from, and keep the licence text that came with them."""
    path = _path(upstream, store)
    write_atomically(path, json.dumps(asdict(kept)).encode(), cached=True)
    if licence is not None:
        write_atomically(path.with_suffix(".licence"), licence, cached=True)


def read_licence(upstream: Upstream, store: BlobStore) -> str:
    """Return the licence text that came with an upstream; empty where none is kept."""
    try:
        kept = _path(upstream, store).with_suffix(".licence").read_bytes()
    except OSError:
        return ""
    return kept.decode("utf-8", "replace")


def forget_provenance(upstream: Upstream, store: BlobStore) -> None:
    """Remove what was noted of an upstream that is in the cache no more."""
    path = _path(upstream, store)
    for each in (path, path.with_suffix(".licence")):
        each.unlink(missing_ok=True)


def _path(upstream: Upstream, store: BlobStore) -> Path:
    release = upstream.package.version if upstream.package else ""
    pin = upstream.commit[:12] or release
    return store.root / "served" / f"{upstream.name}-{pin}.json"
