"""Source ``package``: the release artifact, through the index that pip is set up with.

A wheel is downloaded by pip for a fixed platform tag, so that any interpreter can read
it. An sdist is downloaded without pip, which would run its build backend. Members are
read by name under a size cap; nothing is unpacked and nothing runs (``archive``).
"""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from readerkit.errors import SourceError
from readerkit.model.git_names import TreePath, parse_path
from readerkit.system.children import end_with_parent, python
from readerkit.upstreams.archive import Member, sdist_members, wheel_members
from readerkit.upstreams.licence_text import is_licence
from readerkit.upstreams.source_protocol import MAX_MEMBER_BYTES, Served
from readerkit.upstreams.upstream import Package, Upstream, Wheel

if TYPE_CHECKING:
    import requests
    from pypi_simple import DistributionPackage

_PYTHON = f"{sys.version_info.major}.{sys.version_info.minor}"
DOWNLOAD_SECONDS = 900
PROBE_SECONDS = 20
"""An index that accepts and never answers must not hold the reader up for ever."""
_UNREACHED = "the package index cannot be reached"
_EXCLUDED = "its own settings leave no such release: pip config list shows them"
"""As a constraint does, beside no index too: pip calls it ResolutionImpossible."""


def serve_package(upstream: Upstream, paths: Collection[TreePath] | None) -> Served:
    """Return files of the release artifact; see ``Source``."""
    package = upstream.package
    if package is None:
        raise SourceError("it has no package in upstreams.yaml")
    with tempfile.TemporaryDirectory(prefix="readerkit-") as folder:
        if package.wheel:
            archive = _download_wheel(package, package.wheel, Path(folder))
            members = wheel_members(archive)
        else:
            archive = _download_sdist(package, Path(folder))
            members = sdist_members(archive)
        try:
            served = _select(upstream, paths, members, archive.name)
            kind = "wheel" if package.wheel else "sdist"
            origin = f"package {package.name} {package.version} ({kind})"
            return replace(served, origin=origin)
        except SourceError:
            raise
        except Exception as error:  # damage makes zipfile and tarfile raise a dozen
            raise SourceError(f"{archive.name} is damaged: {error}") from None


def _select(
    upstream: Upstream,
    paths: Collection[TreePath] | None,
    members: Iterator[Member],
    archive: str,
) -> Served:
    wanted = None if paths is None else set(paths)
    files: dict[TreePath, bytes] = {}
    licence: bytes | None = None
    for path, size, stream in members:
        is_wanted = path in wanted if wanted is not None else upstream.includes(path)
        if not (is_wanted or is_licence(path, upstream)):
            continue
        if size > MAX_MEMBER_BYTES:
            raise SourceError(
                f"{path} in {archive} is too large: got {size:,} bytes, "
                f"expected at most {MAX_MEMBER_BYTES:,}"
            )
        # Bounded: one that claims less than it holds is not decompressed as a whole.
        data = stream.read(MAX_MEMBER_BYTES + 1)
        if is_wanted:
            files[_parsed(path, archive)] = data
        else:
            licence = licence or data
    return Served(f"package {archive}", files, licence=licence)


def _parsed(path: str, archive: str) -> TreePath:
    try:
        return parse_path(path)
    except ValueError as error:
        raise SourceError(f"{archive} is refused: {error}") from None


def _download_wheel(package: Package, wheel: Wheel, folder: Path) -> Path:
    command = python("-m", "pip", "download", "--quiet", "--no-input")
    command += ["--disable-pip-version-check", "--progress-bar", "off", "--no-deps"]
    command += ["--only-binary", ":all:", "--implementation", "cp"]
    command += ["--python-version", wheel.python]
    command += ["--platform", wheel.platform, "--dest", str(folder)]
    _pip([*command, f"{package.name}=={package.version}"])
    wheels = sorted(folder.glob("*.whl"))
    if not wheels:
        raise SourceError(f"pip brought no wheel of {package.name} {package.version}")
    return wheels[0]


def _pip(command: list[str]) -> str:
    """Run pip and return what it printed.

    Raises:
        SourceError: pip is missing, failed (its own last error), or did not end.
    """
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=DOWNLOAD_SECONDS,
            check=False,
            preexec_fn=end_with_parent,
        )
    except subprocess.TimeoutExpired:
        raise SourceError(f"pip did not end within {DOWNLOAD_SECONDS} s") from None
    if done.returncode == 0:
        return done.stdout
    errors = [line for line in done.stderr.splitlines() if "ERROR" in line]
    lines = errors or done.stderr.strip().splitlines() or ["no message"]
    if "No module named pip" in done.stderr:
        lines = ["pip is not installed beside readerkit"]
    elif "after connection broken by" in done.stderr:
        lines = [_UNREACHED]  # pip: "No matching ..."
    elif "ResolutionImpossible" in done.stderr:
        lines = [_EXCLUDED]
    raise SourceError(f"pip: {lines[-1].removeprefix('ERROR: ')}")


def _download_sdist(package: Package, folder: Path) -> Path:
    """Fetch the sdist from the first index that has it; digests are checked."""
    from pypi_simple import NoSuchProjectError, PyPISimple, UnsupportedRepoVersionError
    from requests import ConnectionError as NoConnection

    name, version = package.name, package.version
    options = _pip_options()
    indexes = _index_urls(options)
    problems = [] if indexes else ["pip is configured without a web index"]
    for index in indexes:
        session = _session(options)
        given = {"endpoint": index} if index else {}
        client = PyPISimple(**given, session=session)
        try:
            with client:
                page = client.get_project_page(name, timeout=PROBE_SECONDS)
                for file in page.packages:
                    if file.package_type == "sdist" and file.version == version:
                        path = folder / Path(file.filename).name
                        client.download_package(file, path, timeout=DOWNLOAD_SECONDS)
                        return path
            problems.append(f"no sdist of {version}")
        except NoConnection:
            problems.append(_UNREACHED)
        except (
            NoSuchProjectError,
            UnsupportedRepoVersionError,
            ValueError,  # a wrong digest
            OSError,  # every error of requests
        ) as error:
            # An index may be written with the user's password in its address.
            line = re.sub(r"//[^/@\s]*@", "//", str(error).splitlines()[0])
            problems.append(line[:200])
    raise SourceError(f"no sdist of {name} {version}: {'; '.join(problems)}")


def newest_release(name: str, version: str = "") -> tuple[str, bool]:
    """Return the release that was named, or the newest, and whether any wheel fits.

    It is told by the names of the files that an index lists: none is downloaded.

    Raises:
        SourceError: no index, no such package or release.
    """
    options = _pip_options()
    if not _index_urls(options):
        return _newest_linked(name, version)
    files = _listed(name, options)
    if wheel := _newest(files, version, Wheel(_PYTHON, "any")):
        return wheel, True
    if sdist := _newest(files, version, None):
        return sdist, False
    raise SourceError(f"no release of {name} {version}".rstrip())


def newest_like(package: Package) -> str:
    """Return the newest release that has such a file as the one that is pinned.

    Raises:
        SourceError: no index, no such package, no release with such a file.
    """
    options = _pip_options()
    if not _index_urls(options):
        return _newest_linked(package.name, "")[0]
    files = _listed(package.name, options)
    if newest := _newest(files, "", package.wheel):
        return newest
    what = f"wheel for {package.wheel.platform}" if package.wheel else "sdist"
    raise SourceError(f"no {what} of any release of {package.name}")


def _listed(name: str, options: Mapping[str, str]) -> list[DistributionPackage]:
    """Return the files of a package, of the first index that has it."""
    from pypi_simple import PyPISimple
    from requests import ConnectionError as NoConnection

    problem = ""
    for index in _index_urls(options):
        given = {"endpoint": index} if index else {}
        try:
            with PyPISimple(**given, session=_session(options)) as client:
                return client.get_project_page(name, timeout=PROBE_SECONDS).packages
        except NoConnection:
            problem = problem or _UNREACHED
        except Exception as error:  # of requests, of what is no index
            line = str(error).splitlines()[0]
            problem = problem or re.sub(r"//[^/@\s]*@", "//", line)[:200]
    raise SourceError(f"no package {name} can be had: {problem}")


def _newest(
    files: Iterable[DistributionPackage], version: str, wheel: Wheel | None
) -> str:
    """Return the newest version that has such a wheel; without one, an sdist.

    Empty where there is none. A pre-release, and what was taken back, is taken where
    somebody named it.
    """
    from packaging.version import InvalidVersion, Version

    found = []
    for file in files:
        if file.package_type == "sdist" if wheel is None else _fits(file, wheel):
            with suppress(InvalidVersion):
                known = Version(file.version or "")
                is_usual = not (known.is_prerelease or file.is_yanked)
                if known == Version(version) if version else is_usual:
                    found.append(known)
    return str(max(found)) if found else ""


def _fits(file: DistributionPackage, wheel: Wheel) -> bool:
    """Tell whether a file is a wheel for a platform, or for any, and a Python."""
    from packaging.specifiers import InvalidSpecifier, SpecifierSet
    from packaging.utils import InvalidWheelFilename, parse_wheel_filename

    try:
        *_, tags = parse_wheel_filename(file.filename)
        needs = SpecifierSet(file.requires_python or "")
    except (InvalidWheelFilename, InvalidSpecifier):
        return False
    is_for = {tag.platform for tag in tags} & {wheel.platform, "any"}
    return bool(is_for) and needs.contains(wheel.python)


def _newest_linked(name: str, version: str) -> tuple[str, bool]:
    """Return the release that pip finds without an index: in a folder."""
    command = python("-m", "pip", "download", "--quiet", "--no-input", "--no-deps")
    command += ["--disable-pip-version-check", "--progress-bar", "off"]
    wanted = f"{name}=={version}" if version else name
    with tempfile.TemporaryDirectory(prefix="readerkit-") as folder:
        wheel = ["--only-binary", ":all:", "--platform", "any", "--dest", folder]
        _pip([*command, *wheel, wanted])
        [file] = Path(folder).iterdir()
        return file.name.split("-")[1], True


def _pip_options() -> dict[str, str]:
    """Return pip's own options that choose an index."""
    names = ("index-url", "extra-index-url", "no-index", "cert", "client-cert", "proxy")
    options = dict.fromkeys(names, "")
    for line in _pip(python("-m", "pip", "config", "list")).splitlines():
        key, equals, value = line.partition("=")
        option = key.rpartition(".")[2]
        if equals and option in options:
            options[option] = str(ast.literal_eval(value))
    for option in options:
        variable = f"PIP_{option.upper().replace('-', '_')}"
        options[option] = os.environ.get(variable, options[option])
    return options


def _index_urls(options: Mapping[str, str]) -> list[str]:
    """Return the configured indexes; an empty string is pip's default.

    Folders (``file://``) are left out: pip serves wheels from them, not this client.
    """
    if options["no-index"].lower() in ("y", "yes", "t", "true", "on", "1"):
        return []
    urls = [options["index-url"].strip(), *options["extra-index-url"].split()]
    return [url for url in urls if not url.startswith("file:")]


def _session(options: Mapping[str, str]) -> requests.Session:
    """Return a session with pip's certificates and proxy."""
    import requests

    session = requests.Session()
    if options["cert"]:
        session.verify = options["cert"]
    if options["client-cert"]:
        session.cert = options["client-cert"]
    if options["proxy"]:
        session.proxies = dict.fromkeys(("http", "https"), options["proxy"])
    return session
