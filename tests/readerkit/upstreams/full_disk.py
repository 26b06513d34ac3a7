"""A disk that is full after 64 KiB, for one process."""

from __future__ import annotations

from pathlib import Path

# In a mount namespace that ends with the process. Where mounting is forbidden, no file
# may pass 64 KiB instead, which fails in the same place with another word.
_SCRIPT = """\
mount='mount -t tmpfs -o size=64k tmpfs'
if unshare --mount sh -c "$mount $0" 2>/dev/null; then
  exec unshare --mount sh -c "$mount $0"' && exec "$@"' "$0" "$@"
else
  ulimit -f 128 && exec "$@"
fi
"""


def on_full_disk(folder: Path) -> tuple[str, ...]:
    """Return the command to put before another one, for which ``folder`` is small."""
    return ("sh", "-c", _SCRIPT, str(folder))
