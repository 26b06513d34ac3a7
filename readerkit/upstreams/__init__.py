"""Upstreams, where their bytes come from, and the cache that holds them.

``readerkit.upstreams.fetch`` is imported where something must be fetched, not here: it
brings pip, archives and git along, which reading from the cache does without.
"""

from readerkit.upstreams.lockfile import Lock, LockedAnchor
from readerkit.upstreams.store import BlobStore
from readerkit.upstreams.upstream import Upstream

__all__ = ["BlobStore", "Lock", "LockedAnchor", "Upstream"]
