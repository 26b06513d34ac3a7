"""Builds wheels, sdists and the pages of a package index."""

from __future__ import annotations

import hashlib
import io
import tarfile
import zipfile
from collections.abc import Iterable, Mapping

NAME, VERSION = "sample-core", "1.0"
WHEEL = f"sample_core-{VERSION}-cp39-cp39-win_amd64.whl"
"""Of an interpreter and a platform that never run these tests."""
SDIST = f"sample_core-{VERSION}.tar.gz"

Member = tuple[str, bytes]


def make_wheel(members: Iterable[Member]) -> bytes:
    """Return a wheel with these members, and the metadata that pip looks for."""
    info = f"sample_core-{VERSION}.dist-info"
    metadata = f"Metadata-Version: 2.1\nName: {NAME}\nVersion: {VERSION}\n"
    tags = "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: cp39-cp39-win_amd64\n"
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as wheel:
        for name, data in members:
            wheel.writestr(name, data)
        wheel.writestr(f"{info}/METADATA", metadata)
        wheel.writestr(f"{info}/WHEEL", tags)
        wheel.writestr(f"{info}/RECORD", "")
    return archive.getvalue()


def make_sdist(members: Iterable[Member | tuple[tarfile.TarInfo, bytes]]) -> bytes:
    """Return an sdist with these members, named as they are to be."""
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w:gz") as sdist:
        for member, data in members:
            info = tarfile.TarInfo(member) if isinstance(member, str) else member
            if info.isreg() and not info.size:
                info.size = len(data)
            sdist.addfile(info, io.BytesIO(data))
    return archive.getvalue()


def index_files(
    files: Mapping[str, bytes], digests: Mapping[str, str] | None = None
) -> dict[str, bytes]:
    """Return what a simple index with one project serves, by path."""
    rows = ""
    for name, data in files.items():
        digest = (digests or {}).get(name, hashlib.sha256(data).hexdigest())
        rows += f'<a href="../../files/{name}#sha256={digest}">{name}</a>\n'
    page = f"<!DOCTYPE html><html><body>\n{rows}</body></html>"
    served = {f"/files/{name}": data for name, data in files.items()}
    return {f"/simple/{NAME}/": page.encode(), **served}
