"""A command on a full disk, and what it leaves there."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.helpers import WAIT_S, Result
from tests.readerkit.upstreams.full_disk import on_full_disk

# All in one mount namespace, which ends with the script.
_SCRIPT = """\
cp -r "$FILES/." "$DISK"
"$0" -m readerkit "$@"
echo "code $?"
hash='echo "$1 $(git hash-object --no-filters "$1")"'
find "$DISK" -type f -exec sh -c "$hash" - {} ";"
"""


def run_on_full_disk(
    folder: Path, *arguments: str, files: Path | None = None
) -> tuple[Result, dict[str, str]]:
    """Run a command while ``folder`` is small; return the files left, with blob ids.

    ``files`` is a folder whose content is copied there first.
    """
    for place in (folder, folder.parent / "nothing"):
        place.mkdir(parents=True, exist_ok=True)
    given = files or folder.parent / "nothing"
    done = subprocess.run(
        [*on_full_disk(folder), "sh", "-c", _SCRIPT, sys.executable, *arguments],
        env={**os.environ, "DISK": str(folder), "FILES": str(given)},
        capture_output=True,
        text=True,
        timeout=WAIT_S,
        check=True,
    )
    out, _, rest = done.stdout.partition("code ")
    code, *rows = rest.splitlines()
    left = dict(row.rsplit(" ", 1) for row in rows)
    return Result(int(code), out, done.stderr), left
