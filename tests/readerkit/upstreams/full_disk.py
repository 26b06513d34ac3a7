"""A disk that is full after some KiB, for one process."""

from __future__ import annotations

from pathlib import Path

# In a mount namespace that ends with the process. Where mounting is forbidden, no file
# may pass as much instead, which fails in the same place with another word.
_SCRIPT = """\
mount='mount -t tmpfs -o size={kib}k tmpfs'
if unshare --mount sh -c "$mount $0" 2>/dev/null; then
  exec unshare --mount sh -c "$mount $0"' && exec "$@"' "$0" "$@"
else
  ulimit -f {blocks} && exec "$@"
fi
"""


def on_full_disk(folder: Path, *, kib: int = 64) -> tuple[str, ...]:
    """Return the command to put before another one, for which ``folder`` is small."""
    script = _SCRIPT.replace("{kib}", str(kib)).replace("{blocks}", str(2 * kib))
    return ("sh", "-c", script, str(folder))
