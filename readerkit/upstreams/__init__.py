"""Upstreams, where their bytes come from, and the cache that holds them."""

from readerkit.upstreams.fetch import Provenance, fetch
from readerkit.upstreams.lock import Lock, LockedAnchor
from readerkit.upstreams.store import BlobStore
from readerkit.upstreams.upstream import Upstream

__all__ = ["BlobStore", "Lock", "LockedAnchor", "Provenance", "Upstream", "fetch"]
