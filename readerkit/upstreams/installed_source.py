"""Source ``installed``: the files of a package installed beside this toolkit.

The package is found and read, never imported.
"""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Collection
from dataclasses import replace
from importlib import metadata
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import url2pathname

from readerkit.errors import SourceError
from readerkit.model.git_names import TreePath
from readerkit.upstreams.folder_source import serve_below
from readerkit.upstreams.licence_text import is_licence
from readerkit.upstreams.source_protocol import Served
from readerkit.upstreams.upstream import Upstream


def serve_installed(upstream: Upstream, paths: Collection[TreePath] | None) -> Served:
    """Return files of the installed package; see ``Source``."""
    root = installed_root(upstream)
    name = upstream.package.name if upstream.package else upstream.installed
    found = installed_version(name)
    public = f"installed {upstream.installed} {found}".strip()
    return replace(
        serve_below(root, upstream, paths),
        origin=f"{public} in {root}",
        public=public,
        licence=_licence(name, upstream),
        proves_commit=_names_commit(root / upstream.installed, upstream.commit),
    )


def installed_root(upstream: Upstream) -> Path:
    """Return the folder that holds the installed package, of the pinned version.

    Raises:
        SourceError: it is not installed, or in another version.
    """
    if not upstream.installed:
        raise SourceError("no installed package carries these files")
    try:
        spec = importlib.util.find_spec(upstream.installed)
    except ValueError:  # a module that was made at run time
        spec = None
    if spec is None or not spec.submodule_search_locations:
        raise SourceError(f"{upstream.installed} is not installed here")
    package = upstream.package
    found = installed_version(package.name if package else upstream.installed)
    if package and found and found.split("+")[0] != package.version:
        raise SourceError(
            f"got {upstream.installed} {found}, expected {package.version}"
        )
    return Path(next(iter(spec.submodule_search_locations))).parent


def installed_version(distribution: str) -> str:
    """Return the version of an installed distribution, or an empty string."""
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return ""


def import_name(distribution: str) -> str:
    """Return the one package that a distribution brings; empty where it has several.

    A module of one file is none, nor is what is edited where it stands.
    """
    try:
        files = metadata.distribution(distribution).files or []
    except metadata.PackageNotFoundError:
        return ""
    tops = {
        file.parts[0]
        for file in files
        if file.name == "__init__.py" and len(file.parts) == 2
    }
    return next(iter(tops)) if len(tops) == 1 else ""


def linked_folder(distribution: str) -> str:
    """Return the folder that a distribution is a link to (``pip install -e``), or ''.

    Source: PEP 610, which has installers write down where a package came from.
    """
    try:
        written = metadata.distribution(distribution).read_text("direct_url.json")
        known = json.loads(written or "{}")
        is_link = known.get("dir_info", {}).get("editable", False)
        address = urlsplit(known.get("url", ""))
    except (metadata.PackageNotFoundError, ValueError, AttributeError):
        return ""
    is_here = is_link and address.scheme == "file"
    return url2pathname(address.path) if is_here else ""


def _licence(distribution: str, upstream: Upstream) -> bytes | None:
    try:
        files = metadata.distribution(distribution).files or []
    except metadata.PackageNotFoundError:
        return None
    for file in files:
        if ".dist-info" in file.parts[0] and is_licence(str(file), upstream):
            path = Path(str(file.locate()))
            return path.read_bytes() if path.is_file() else None
    return None


def _names_commit(package: Path, commit: str) -> bool:
    """Tell whether the package's own version file names the pinned commit."""
    version = package / "version.py"
    return (
        bool(commit) and version.is_file() and commit.encode() in version.read_bytes()
    )
