"""Install the pinned torch into this environment, saying first how much it weighs."""

from __future__ import annotations

import json
import subprocess
import sys
import urllib.parse
from pathlib import Path

import requests

EXTRA = ".[torch]"
PIP = [sys.executable, "-m", "pip", "install", "-qq"]
PIP += ["--disable-pip-version-check"]


def main() -> None:
    print("== torch: asking what has to be downloaded", flush=True)
    plan = subprocess.run(
        [*PIP, "--dry-run", "--report", "-", "--editable", EXTRA],
        stdout=subprocess.PIPE,
        check=False,
    )
    if plan.returncode:
        sys.exit(plan.returncode)
    wanted = [
        item
        for item in json.loads(plan.stdout)["install"]
        if not item["is_direct"]  # this checkout itself
    ]
    if not wanted:
        print("torch is there already")
        return
    sizes = [size_of(item["download_info"]["url"]) for item in wanted]
    total = sum(size for size in sizes if size) / 1e6
    more = ", and some of unknown size" if None in sizes else ""
    print(
        f"== Installing torch and {len(wanted) - 1} more: {total:,.0f} MB{more}; "
        "half a minute or several",
        flush=True,
    )
    subprocess.run([*PIP, "--editable", EXTRA], check=True)


def size_of(url: str) -> int | None:
    """Return a file's size in bytes, without fetching it; None if nobody says."""
    parts = urllib.parse.urlsplit(url)
    if parts.scheme == "file":
        return Path(urllib.parse.unquote(parts.path)).stat().st_size
    try:
        reply = requests.head(url, allow_redirects=True, timeout=20)
        return int(reply.headers["Content-Length"]) if reply.ok else None
    except (requests.RequestException, KeyError, ValueError):
        return None


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit("\ninterrupted: make goes on from here the next time")
