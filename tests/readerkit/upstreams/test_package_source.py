import io
import os
import stat
import struct
import subprocess
import sys
import tarfile
import tracemalloc
import warnings
import zipfile
from pathlib import Path

import pytest
from msgspec.structs import replace

from readerkit.errors import SourceError
from readerkit.upstreams import Upstream, archive, package_source
from readerkit.upstreams.package_source import (
    newest_like,
    newest_release,
    serve_package,
)
from readerkit.upstreams.source_protocol import MAX_MEMBER_BYTES
from readerkit.upstreams.upstream import Licence, Package, Wheel
from tests.helpers import write_files
from tests.readerkit.upstreams.archives import (
    NAME,
    SDIST,
    VERSION,
    WHEEL,
    index_files,
    make_sdist,
    make_wheel,
)
from tests.readerkit.upstreams.servers import http_server, silent_server

pytestmark = pytest.mark.sampled

FILES = {"lib/a.py": b"x = 1\r\n", "lib/b/c.py": b"\xff\x00"}
LICENCE = b"Do as you like.\n"
TOP = f"sample_core-{VERSION}"
IN_WHEEL = [
    *FILES.items(),
    ("lib/native.pyd", b"MZ"),
    (f"{TOP}.dist-info/licenses/LICENSE", LICENCE),
]
IN_SDIST = [(f"{TOP}/{name}", data) for name, data in FILES.items()]
FROM_SDIST = Upstream(
    name="sample",
    title="Sample",
    include=("lib/**/*.py",),
    url="https://127.0.0.1:9/sample",
    tag="v1",
    commit="f" * 40,
    licence=Licence("MIT", "LICENSE", "Nobody"),
    package=Package(NAME, VERSION),
)
FROM_WHEEL = replace(
    FROM_SDIST, package=Package(NAME, VERSION, Wheel("3.9", "win_amd64"))
)


@pytest.fixture(autouse=True)
def pip_of_nobody(tmp_path, monkeypatch):
    """Give pip no configuration but what a test writes, and a way to loopback."""
    for name in list(os.environ):
        if name.startswith("PIP_"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", str(tmp_path / "pip.conf"))
    monkeypatch.setenv("PIP_NO_CACHE_DIR", "1")
    monkeypatch.setenv("PIP_RETRIES", "1")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    monkeypatch.setenv("no_proxy", "127.0.0.1")


@pytest.fixture
def links(tmp_path, monkeypatch) -> Path:
    """A folder that pip is configured to find everything in."""
    folder = tmp_path / "links"
    folder.mkdir()
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    return folder


def error_of(upstream: Upstream) -> str:
    with pytest.raises(SourceError) as caught:
        serve_package(upstream, None)
    assert "\n" not in str(caught.value)
    return str(caught.value)


# --- wheels ---


def test_wheel_for_another_platform_is_read_by_member_name(links, tmp_path):
    odd = [
        (".hidden/out.py", b"out = 1\n"),
        ("lib/", b""),
        ("huge.bin", bytes(MAX_MEMBER_BYTES + 1)),
    ]
    # A member that nobody wants is not read: its checksum does not matter.
    wheel = patched(make_wheel([*IN_WHEEL, *odd]), "huge.bin", CRC, b"\0\0\0\0")
    (links / WHEEL).write_bytes(wheel)
    served = serve_package(FROM_WHEEL, None)
    assert served.files == FILES
    assert served.licence == LICENCE
    assert served.origin == f"package {NAME} 1.0 (wheel)"
    assert not served.proves_commit
    assert python_files(tmp_path) == []


def python_files(folder: Path) -> list[Path]:
    return list(folder.rglob("*.py"))


def test_wheel_comes_from_the_index_that_pip_is_configured_with(monkeypatch, tmp_path):
    wheel = make_wheel([*IN_WHEEL, ("lib/\u00fc.py", b"")])
    with http_server(index_files({WHEEL: wheel, SDIST: b"no sdist"})) as index:
        conf = f"[global]\nindex-url = {index.url}/simple/\n"
        write_files(tmp_path, {"pip.conf": conf})
        served = serve_package(FROM_WHEEL, ["lib/a.py"])
        assert index.asked == [f"/simple/{NAME}/", f"/files/{WHEEL}"]
    assert served.files == {"lib/a.py": FILES["lib/a.py"]}


def test_wheel_of_a_wrong_digest_is_refused(monkeypatch):
    files = index_files({WHEEL: make_wheel(IN_WHEEL)}, {WHEEL: "0" * 64})
    with http_server(files) as index:
        monkeypatch.setenv("PIP_INDEX_URL", f"{index.url}/simple")
        assert "HASHES" in error_of(FROM_WHEEL)


def test_wheel_of_another_version_or_platform_does_not_serve(links):
    for asked, other in (("1.0", "2.0"), ("win_amd64", "win32"), ("cp39", "cp310")):
        (links / WHEEL.replace(asked, other)).write_bytes(make_wheel(IN_WHEEL))
    wanted = f"pip: No matching distribution found for {NAME}=={VERSION}"
    assert error_of(FROM_WHEEL) == wanted


def test_index_that_cannot_be_reached_is_not_one_without_the_package(monkeypatch):
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")
    assert error_of(FROM_WHEEL) == "pip: the package index cannot be reached"
    wanted = f"no sdist of {NAME} {VERSION}: the package index cannot be reached"
    assert error_of(FROM_SDIST) == wanted


def test_a_release_that_a_constraint_excludes_is_said_in_words(links, monkeypatch):
    constraints = write_files(links, {"constraints": f"{NAME}<{VERSION}"})
    monkeypatch.setenv("PIP_CONSTRAINT", str(constraints / "constraints"))
    wanted = "pip: its own settings leave no such release: pip config list shows them"
    assert error_of(FROM_WHEEL) == wanted


def test_pip_has_a_time_limit(monkeypatch):
    monkeypatch.setattr(package_source, "DOWNLOAD_SECONDS", 0.5)
    with silent_server() as port:
        monkeypatch.setenv("PIP_INDEX_URL", f"http://127.0.0.1:{port}/simple")
        assert error_of(FROM_WHEEL) == "pip did not end within 0.5 s"


@pytest.mark.parametrize("upstream", [FROM_WHEEL, FROM_SDIST])
def test_missing_pip_is_an_error(upstream, monkeypatch, tmp_path):
    bare = tmp_path / "python"
    bare.write_text(f'#!/bin/sh\nexec "{sys.executable}" -I -S "$@"\n')
    bare.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(bare))
    assert error_of(upstream) == "pip: pip is not installed beside readerkit"


def test_upstream_without_a_package_does_not_serve():
    upstream = replace(FROM_WHEEL, package=None)
    assert error_of(upstream) == "it has no package in upstreams.yaml"


# --- wheels that are not what they should be ---


def patched(wheel: bytes, name: str, offset: int, value: bytes) -> bytes:
    """Return a wheel with a field changed in both headers of a member.

    Offsets are those of the local header; the central one has two bytes more before.
    """
    data = bytearray(wheel)
    with zipfile.ZipFile(io.BytesIO(wheel)) as archive:
        local = archive.getinfo(name).header_offset
    central = wheel.index(b"PK\x01\x02")
    while wheel[central + 46 :][: len(name)] != name.encode():
        central = wheel.index(b"PK\x01\x02", central + 1)
    data[local + offset : local + offset + len(value)] = value
    data[central + offset + 2 : central + offset + 2 + len(value)] = value
    return bytes(data)


def spoilt(wheel: bytes, name: str) -> bytes:
    """Return a wheel with the compressed bytes of a member overwritten."""
    with zipfile.ZipFile(io.BytesIO(wheel)) as archive:
        member = archive.getinfo(name)
    start = member.header_offset + 30 + len(name)
    size = member.compress_size
    return wheel[:start] + b"\xff" * size + wheel[start + size :]


GOOD = make_wheel([("lib/a.py", b"x = 1\n" * 1000)])
CRC, SIZE = 14, 22


@pytest.mark.parametrize(
    "data, message",
    [
        pytest.param(spoilt(GOOD, "lib/a.py"), "is damaged: Error -3", id="spoilt"),
        pytest.param(
            patched(GOOD, "lib/a.py", SIZE, struct.pack("<I", 3_000_000_000)),
            "lib/a.py in sample_core-1.0-cp39-cp39-win_amd64.whl is too large: "
            "got 3,000,000,000 bytes, expected at most 4,000,000",
            id="claims-to-be-large",
        ),
    ],
)
def test_damaged_or_lying_wheel_is_one_clear_error(data, message, links):
    (links / WHEEL).write_bytes(data)
    assert message in error_of(FROM_WHEEL)


def test_bomb_that_claims_to_be_small_is_not_set_off(links):
    bomb = make_wheel([("lib/bomb.py", bytes(100_000_000))])
    lying = patched(bomb, "lib/bomb.py", SIZE, struct.pack("<I", 5))
    (links / WHEEL).write_bytes(lying)
    tracemalloc.start()
    try:
        assert "is damaged: Bad CRC-32" in error_of(FROM_WHEEL)
        assert tracemalloc.get_traced_memory()[1] < 50_000_000
    finally:
        tracemalloc.stop()


# --- sdists ---


def odd_member(name: str, kind: bytes, **fields) -> tuple[tarfile.TarInfo, bytes]:
    info = tarfile.TarInfo(f"{TOP}/{name}")
    info.type = kind
    for key, value in fields.items():
        setattr(info, key, value)
    return info, b""


def test_licence_of_a_package_whose_pin_names_none_is_found(links):
    other = (f"{TOP}.dist-info/licenses/COPYING.txt", b"As they like.\n")
    members = [*IN_WHEEL[:-1], other]
    (links / WHEEL).write_bytes(make_wheel(members))
    assert serve_package(FROM_WHEEL, None).licence is None  # it names LICENSE
    served = serve_package(replace(FROM_WHEEL, licence=None), None)
    assert served.licence == b"As they like.\n"


def test_sdist_is_read_by_member_name(monkeypatch, tmp_path):
    sdist = make_sdist(
        [
            *IN_SDIST,
            odd_member("lib", tarfile.DIRTYPE),
            ("lib.py", b"at_the_top = 1\n"),
            (f"{TOP}/LICENSE", LICENCE),
            (f"{TOP}/docs/lib/other.py", b"not included\n"),
        ]
    )
    with http_server(index_files({SDIST: sdist})) as index:
        monkeypatch.setenv("PIP_INDEX_URL", f"{index.url}/simple")
        served = serve_package(FROM_SDIST, None)
        assert index.asked == [f"/simple/{NAME}/", f"/files/{SDIST}"]
    assert served.files == FILES
    assert served.licence == LICENCE
    assert served.origin == f"package {NAME} 1.0 (sdist)"
    assert python_files(tmp_path) == []


def evil_sdist(marker: Path) -> bytes:
    """Return an sdist whose build backend and setup.py leave a mark when they run."""
    mark = f"open({str(marker)!r}, 'w').close()\n"
    project = '[build-system]\nrequires = []\nbuild-backend = "evil"\n'
    return make_sdist(
        [
            *IN_SDIST,
            (f"{TOP}/PKG-INFO", f"Name: {NAME}\nVersion: {VERSION}\n".encode()),
            (f"{TOP}/pyproject.toml", f'{project}backend-path = ["."]\n'.encode()),
            (f"{TOP}/evil.py", mark.encode()),
            (f"{TOP}/setup.py", mark.encode()),
        ]
    )


def test_build_backend_never_runs(monkeypatch, tmp_path):
    marker = tmp_path / "marker"
    with http_server(index_files({SDIST: evil_sdist(marker)})) as index:
        monkeypatch.setenv("PIP_INDEX_URL", f"{index.url}/simple")
        assert serve_package(FROM_SDIST, None).files == FILES
        # An index with no wheel must not make pip turn to the sdist.
        assert "No matching distribution" in error_of(FROM_WHEEL)
        assert not marker.exists()
        command = [sys.executable, "-m", "pip", "download", "--no-deps", NAME]
        subprocess.run(command, cwd=tmp_path, capture_output=True, check=False)
    assert marker.exists(), "plain pip does not run it either: this proves nothing"


@pytest.mark.parametrize(
    "configuration, variables",
    [
        pytest.param("index-url = {good}", {}, id="file"),
        pytest.param(
            "index-url = {dead}", {"PIP_INDEX_URL": "{good}"}, id="variable-over-file"
        ),
        pytest.param(
            "index-url = {dead}\nextra-index-url =\n  {bad}\n  {good}",
            {},
            id="extra-indexes",
        ),
        pytest.param(
            "index-url = {bad}",
            {"PIP_EXTRA_INDEX_URL": "{dead} {good}"},
            id="extra-indexes-in-a-variable",
        ),
        pytest.param("index-url = {secret}", {}, id="password"),
    ],
)
def test_sdist_comes_from_the_first_configured_index_that_has_it(
    configuration, variables, monkeypatch, tmp_path
):
    files = index_files({SDIST: make_sdist(IN_SDIST)})
    with http_server(files) as good, http_server({}) as bad:
        urls = {
            "good": f"{good.url}/simple/",
            "bad": f"{bad.url}/simple/",
            "dead": "http://127.0.0.1:9/simple/",
            "secret": f"{good.url}/simple/".replace("//", "//user:secret@", 1),
        }
        conf = f"[global]\n{configuration.format(**urls)}\n"
        write_files(tmp_path, {"pip.conf": conf})
        for key, value in variables.items():
            monkeypatch.setenv(key, value.format(**urls))
        assert serve_package(FROM_SDIST, None).files == FILES


@pytest.mark.parametrize(
    "configuration",
    [
        pytest.param("no-index = true", id="no-index"),
        pytest.param("index-url = file:///srv/packages", id="folder"),
    ],
)
def test_without_a_configured_index_nobody_is_asked(configuration, tmp_path):
    write_files(tmp_path, {"pip.conf": f"[global]\n{configuration}\n"})
    wanted = f"no sdist of {NAME} {VERSION}: pip is configured without a web index"
    assert error_of(FROM_SDIST) == wanted


NEWER = b'<html><meta name="pypi:repository-version" content="9.0"></html>'


@pytest.mark.parametrize(
    "files, message",
    [
        pytest.param({}, "No details about project", id="no-project"),
        pytest.param(
            index_files({SDIST.replace("1.0", "2.0"): b"", WHEEL: b""}),
            "no sdist of 1.0",
            id="another-version",
        ),
        pytest.param(
            index_files({SDIST: make_sdist(IN_SDIST)}, {SDIST: "0" * 64}),
            "sha256 digest of",
            id="wrong-digest",
        ),
        pytest.param(
            {f"/simple/{NAME}/": index_files({SDIST: b""})[f"/simple/{NAME}/"]},
            "404 Client Error",
            id="missing-file",
        ),
        pytest.param({f"/simple/{NAME}/": NEWER}, "version (9.0)", id="newer-index"),
    ],
)
def test_index_without_the_sdist_is_one_clear_error(files, message, monkeypatch):
    with http_server(files) as index:
        url = f"{index.url}/simple/".replace("//", "//user:secret@", 1)
        monkeypatch.setenv("PIP_INDEX_URL", url)
        error = error_of(FROM_SDIST)
    assert error.startswith(f"no sdist of {NAME} {VERSION}: ")
    assert message in error
    assert "secret" not in error


def test_silent_index_is_given_up(monkeypatch):
    monkeypatch.setattr(package_source, "PROBE_SECONDS", 0.2)
    with silent_server() as port:
        monkeypatch.setenv("PIP_INDEX_URL", f"http://127.0.0.1:{port}/simple")
        assert "(read timeout=0.2)" in error_of(FROM_SDIST)


def sdist_with(name: str, size: int) -> bytes:
    """Return an sdist that ends in a member that claims a size and has one byte."""
    info = tarfile.TarInfo(f"{TOP}/{name}")
    info.size = size
    plain = io.BytesIO()
    with tarfile.open(fileobj=plain, mode="w") as tar:
        tar.addfile(tarfile.TarInfo(f"{TOP}/PKG-INFO"))
    return plain.getvalue()[:512] + info.tobuf() + b"x" * 512


@pytest.mark.parametrize(
    "data, message",
    [
        pytest.param(make_sdist(IN_SDIST)[:60], "is damaged: ", id="truncated"),
        pytest.param(make_sdist(IN_SDIST)[:15], "is damaged: ", id="only-a-header"),
        pytest.param(
            sdist_with("lib/a.py", 10**12),
            "lib/a.py' makes it 1,000,000,000,000 bytes unpacked, expected at most",
            id="claims-to-be-large",
        ),
        pytest.param(
            make_sdist([(f"{TOP}/lib/bomb.py", bytes(MAX_MEMBER_BYTES + 1))]),
            "too large: got 4,000,001 bytes, expected at most 4,000,000",
            id="bomb",
        ),
    ],
)
def test_damaged_or_lying_sdist_is_one_clear_error(data, message, monkeypatch):
    with http_server(index_files({SDIST: data})) as index:
        monkeypatch.setenv("PIP_INDEX_URL", f"{index.url}/simple")
        assert message in error_of(FROM_SDIST)


@pytest.mark.parametrize(
    "limit, message",
    [
        ("MAX_ARCHIVE_BYTES", f"{SDIST} is over 1 bytes"),
        ("MAX_MEMBERS", f"{SDIST} has over 1 members"),
    ],
)
def test_sdist_that_is_too_large_is_refused(limit, message, monkeypatch):
    monkeypatch.setattr(archive, limit, 1)
    with http_server(index_files({SDIST: make_sdist(IN_SDIST)})) as index:
        monkeypatch.setenv("PIP_INDEX_URL", f"{index.url}/simple")
        assert error_of(FROM_SDIST) == message


# --- archives that no honest release is ---


def zip_with(*members: tuple[str | zipfile.ZipInfo, bytes]) -> bytes:
    """Return a wheel with odd members behind the good ones."""
    archive = io.BytesIO(make_wheel(IN_WHEEL))
    with zipfile.ZipFile(archive, "a") as wheel, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of a name that is there twice
        for name, data in members:
            wheel.writestr(name, data)
    return archive.getvalue()


def zip_mode(name: str, mode: int) -> zipfile.ZipInfo:
    info = zipfile.ZipInfo(name)
    info.create_system = 3
    info.external_attr = mode << 16
    return info


BAD_NAMES = [
    *(
        "../out.py",
        "lib/../../x.py",
        "..",
        "/lib/absolute.py",
        "//host/x",
        "./lib/x.py",
    ),
    *("lib//x.py", "lib/./x.py", "C:\\lib\\drive.py", "C:/x.py", "lib\\..\\x.py"),
    *(".git/config", "lib/.GIT/x", "GIT~1/x", ".git./x", "../", "lib/../", "/lib/"),
]
TWICE = ["lib/a.py", "LIB/A.PY", "lib/A.py"]


def refusal(members, archive: Path, data: bytes) -> str:
    """Return why an archive is not read; no member is seen outside of it."""
    archive.write_bytes(data)
    with pytest.raises(SourceError) as caught:
        list(members(archive))
    return str(caught.value)


def test_archives_that_are_refused_do_not_serve(links, monkeypatch):
    (links / WHEEL).write_bytes(zip_with(("../out.py", b"out = 1\n")))
    assert f"{WHEEL} is refused: its member '../out.py' " in error_of(FROM_WHEEL)
    monkeypatch.delenv("PIP_NO_INDEX")
    sdist = make_sdist([*IN_SDIST, ("../out.py", b"out = 1\n")])
    with http_server(index_files({SDIST: sdist})) as index:
        monkeypatch.setenv("PIP_INDEX_URL", f"{index.url}/simple")
        said = error_of(FROM_SDIST)
    assert f"{SDIST} is refused: its member '../out.py' " in said


@pytest.mark.parametrize("name", BAD_NAMES)
def test_wheel_with_a_member_outside_is_refused(name, tmp_path):
    wheel = zip_with((name, b"out = 1\n"))
    said = refusal(archive.wheel_members, tmp_path / WHEEL, wheel)
    assert f"{WHEEL} is refused: its member {name!r} " in said


@pytest.mark.parametrize("name", TWICE)
def test_wheel_with_a_member_twice_is_refused(name, tmp_path):
    wheel = zip_with((name, b"evil = 1\n"))
    said = refusal(archive.wheel_members, tmp_path / WHEEL, wheel)
    assert f"is refused: its member {name!r} is in it twice" in said


@pytest.mark.parametrize(
    ("mode", "problem"),
    [
        (stat.S_IFLNK | 0o777, "is a link, and links are never followed"),
        (stat.S_IFCHR | 0o666, "is neither a file nor a folder"),
        (stat.S_IFBLK | 0o666, "is neither a file nor a folder"),
        (stat.S_IFIFO | 0o666, "is neither a file nor a folder"),
        (stat.S_IFSOCK | 0o666, "is neither a file nor a folder"),
    ],
)
def test_wheel_with_a_link_or_a_device_is_refused(mode, problem, tmp_path):
    wheel = zip_with((zip_mode("docs/odd", mode), b"/etc/passwd"))
    said = refusal(archive.wheel_members, tmp_path / WHEEL, wheel)
    assert f"its member 'docs/odd' {problem}" in said


def test_wheel_with_an_encrypted_member_is_refused(links):
    flags = 6
    wheel = patched(make_wheel(IN_WHEEL), "lib/a.py", flags, b"\x01\0")
    (links / WHEEL).write_bytes(wheel)
    assert "its member 'lib/a.py' is encrypted" in error_of(FROM_WHEEL)


def test_wheel_whose_name_ends_in_a_nul_is_refused(links):
    wheel = make_wheel([*IN_WHEEL, ("lib/z.pyXY", b"z = 1\n")])
    (links / WHEEL).write_bytes(wheel.replace(b"lib/z.pyXY", b"lib/z.py\0Y"))
    assert "is refused" in error_of(FROM_WHEEL)


def test_wheel_that_unpacks_to_more_than_any_release_is_refused(links):
    members = [(f"docs/{index}.bin", b"") for index in range(3)]
    wheel = make_wheel([*IN_WHEEL, *members])
    for name, _ in members:
        wheel = patched(wheel, name, SIZE, struct.pack("<I", 4_000_000_000))
    (links / WHEEL).write_bytes(wheel)
    assert "bytes unpacked, expected at most 8,000,000,000" in error_of(FROM_WHEEL)


@pytest.mark.parametrize(
    "name",
    [
        *(
            "../../lib/out.py",
            "/etc/x.py",
            f"{TOP}/../lib/up.py",
            "..",
            f"./{TOP}/x.py",
        ),
        *(f"{TOP}//x.py", f"{TOP}/.git/config", f"{TOP}/lib/.GIT/x", f"{TOP}\\x.py"),
        *("C:/x.py", f"{TOP}/lib/GIT~1/x", f"{TOP}/lib/.git /x"),
    ],
)
def test_sdist_with_a_member_outside_is_refused(name, tmp_path):
    sdist = make_sdist([*IN_SDIST, (name, b"out = 1\n")])
    said = refusal(archive.sdist_members, tmp_path / SDIST, sdist)
    assert f"{SDIST} is refused: its member {name!r} " in said


@pytest.mark.parametrize("name", TWICE)
def test_sdist_with_a_member_twice_is_refused(name, tmp_path):
    sdist = make_sdist([*IN_SDIST, (f"{TOP}/{name}", b"evil = 1\n")])
    said = refusal(archive.sdist_members, tmp_path / SDIST, sdist)
    assert f"its member '{TOP}/{name}' is in it twice" in said


@pytest.mark.parametrize(
    ("kind", "fields", "problem"),
    [
        (tarfile.SYMTYPE, {"linkname": "/etc/passwd"}, "is a link"),
        (tarfile.SYMTYPE, {"linkname": "a.py"}, "is a link"),
        (tarfile.LNKTYPE, {"linkname": f"{TOP}/lib/a.py"}, "is a link"),
        (tarfile.LNKTYPE, {"linkname": "/etc/passwd"}, "is a link"),
        (tarfile.FIFOTYPE, {}, "is neither a file nor a folder"),
        (tarfile.CHRTYPE, {"devmajor": 1, "devminor": 5}, "is neither a file nor"),
        (tarfile.BLKTYPE, {"devmajor": 8}, "is neither a file nor"),
    ],
)
def test_sdist_with_a_link_or_a_device_is_refused(kind, fields, problem, tmp_path):
    sdist = make_sdist([*IN_SDIST, odd_member("docs/odd", kind, **fields)])
    said = refusal(archive.sdist_members, tmp_path / SDIST, sdist)
    assert f"its member '{TOP}/docs/odd' {problem}" in said


# --- which release is the newest ---

NAMES = (
    "sample_core-1.0-py3-none-any.whl",
    "sample_core-1.10-py3-none-any.whl",
    "sample_core-1.11rc1-py3-none-any.whl",
    "sample_core-1.9-py3-none-any.whl",
    "sample_core-1.12-cp312-cp312-manylinux_2_24_x86_64.manylinux_2_28_x86_64.whl",
    "sample_core-1.13-cp312-cp312-win_amd64.whl",
    "sample_core-1.11.tar.gz",
    "sample_core-odd.tar.gz",
)
LINUX = Package(NAME, "1.0", Wheel("3.12", "manylinux_2_28_x86_64"))


@pytest.mark.parametrize(
    ("ask", "newest"),
    [
        (lambda: newest_release(NAME), ("1.10", True)),
        (lambda: newest_release(NAME, "1.9"), ("1.9", True)),
        (lambda: newest_release(NAME, "1.11rc1"), ("1.11rc1", True)),
        (lambda: newest_release(NAME, "1.11"), ("1.11", False)),
        (lambda: newest_like(LINUX), "1.12"),
        (lambda: newest_like(Package(NAME, "1.0")), "1.11"),
    ],
)
def test_the_newest_release_is_told_without_a_download(ask, newest, monkeypatch):
    with http_server(index_files(dict.fromkeys(NAMES, b"never read"))) as index:
        monkeypatch.setenv("PIP_INDEX_URL", f"{index.url}/simple")
        assert ask() == newest
        assert index.asked == [f"/simple/{NAME}/"]


def test_a_release_that_is_not_there_is_named(monkeypatch):
    with http_server(index_files({SDIST: b""})) as index:
        monkeypatch.setenv("PIP_INDEX_URL", f"{index.url}/simple")
        with pytest.raises(SourceError, match=f"no release of {NAME} 9"):
            newest_release(NAME, "9")
        with pytest.raises(SourceError, match="no wheel for manylinux_2_28_x86_64"):
            newest_like(LINUX)
        with pytest.raises(
            SourceError, match="no package nothing-like-it can be had: No details"
        ):
            newest_release("nothing-like-it")


def test_an_index_that_is_not_there_is_told_in_a_word(monkeypatch):
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")
    with pytest.raises(SourceError) as caught:
        newest_release(NAME)
    why = f"no package {NAME} can be had: the package index cannot be reached"
    assert str(caught.value) == why


@pytest.mark.further
def test_in_a_folder_pip_finds_the_newest(links):
    name = WHEEL.replace("cp39-cp39-win_amd64", "py3-none-any")
    (links / name).write_bytes(make_wheel(IN_WHEEL))
    assert newest_release(NAME) == (VERSION, True)
