import sys
from importlib import invalidate_caches
from pathlib import Path

import pytest
from msgspec.structs import replace

from readerkit.errors import SourceError
from readerkit.upstreams import Upstream
from readerkit.upstreams.installed_source import installed_version, serve_installed
from readerkit.upstreams.upstream import Licence, Package
from tests.helpers import write_files

COMMIT = "0123456789abcdef0123456789abcdef01234567"
UPSTREAM = Upstream(
    name="sample",
    title="Sample",
    include=("fakelib/**/*.py",),
    url="https://127.0.0.1:9/sample",
    tag="v1",
    commit=COMMIT,
    licence=Licence("MIT", "LICENSE", "Nobody"),
    package=Package("fakelib-core", "1.0"),
    installed="fakelib",
)
FILES = {
    "fakelib/__init__.py": b"import fakelib.deep\r\n",
    "fakelib/deep/__init__.py": b"",
    "fakelib/deep/a.py": b"x = 1\n",
}
INFO = "fakelib_core-1.0.dist-info"


@pytest.fixture
def site(tmp_path, monkeypatch) -> Path:
    """A folder on ``sys.path`` with an installed package that marks every import."""
    folder = tmp_path / "site"
    write_files(folder, FILES)
    write_files(
        folder,
        {
            "fakelib/native.so": b"\x7fELF",
            "fakelib/deep/b.pyi": b"",
            f"{INFO}/METADATA": metadata("1.0"),
            f"{INFO}/RECORD": "fakelib/__init__.py,,\n"
            f"{INFO}/LICENSE,,\nfakelib/LICENSE,,\n",
            f"{INFO}/LICENSE": "Do as you like.\n",
            "fakelib/LICENSE": "Not this one.\n",
        },
    )
    monkeypatch.syspath_prepend(folder)
    invalidate_caches()
    return folder


def metadata(version: str) -> str:
    return f"Metadata-Version: 2.1\nName: fakelib-core\nVersion: {version}\n"


def test_files_of_the_package_are_served_as_they_are(site):
    served = serve_installed(UPSTREAM, None)
    assert served.files == FILES
    assert served.licence == b"Do as you like.\n"
    assert served.origin == f"installed fakelib 1.0 in {site}"
    assert served.public == "installed fakelib 1.0"


@pytest.mark.parametrize("name", ["LICENSE.txt", "licenses/COPYING"])
def test_licence_of_a_package_whose_pin_names_none_is_found(site, name):
    write_files(site, {f"{INFO}/{name}": "Do as they like.\n"})
    (site / INFO / "RECORD").write_text(f"fakelib/__init__.py,,\n{INFO}/{name},,\n")
    assert serve_installed(UPSTREAM, None).licence is None  # it names LICENSE
    served = serve_installed(replace(UPSTREAM, licence=None), None)
    assert served.licence == b"Do as they like.\n"


def test_only_asked_files_are_read(site):
    served = serve_installed(UPSTREAM, ["fakelib/deep/a.py"])
    assert served.files == {"fakelib/deep/a.py": b"x = 1\n"}


def test_package_is_never_imported(site, tmp_path):
    marker = tmp_path / "marker"
    code = f"open({str(marker)!r}, 'w')\n"
    for name in FILES:
        (site / name).write_text(code)
    serve_installed(UPSTREAM, None)
    assert not marker.exists()
    assert not [name for name in sys.modules if name.startswith("fakelib")]


@pytest.mark.parametrize(
    "text, proves",
    [
        pytest.param(f"git_version = '{COMMIT}'\n", True, id="this-commit"),
        pytest.param(f"git_version = '{'f' * 40}'\n", False, id="another-commit"),
        pytest.param(None, False, id="no-version-file"),
    ],
)
def test_version_file_may_prove_the_commit(text, proves, site):
    if text:
        (site / "fakelib" / "version.py").write_text(text)
    assert serve_installed(UPSTREAM, ["fakelib/deep/a.py"]).proves_commit is proves


@pytest.mark.parametrize("version", ["1.0", "1.0+cpu", "1.0+cu128.local"])
def test_local_builds_of_the_version_serve(version, site):
    (site / INFO / "METADATA").write_text(metadata(version))
    served = serve_installed(UPSTREAM, None)
    assert f"fakelib {version} in" in served.origin


@pytest.mark.parametrize("version", ["1.0.1", "1.0rc1", "0.9", "1.0.post1+cpu"])
def test_another_version_does_not_serve(version, site):
    (site / INFO / "METADATA").write_text(metadata(version))
    with pytest.raises(SourceError) as caught:
        serve_installed(UPSTREAM, None)
    assert str(caught.value) == f"got fakelib {version}, expected 1.0"


def test_package_without_metadata_serves_its_files(site):
    for file in (site / INFO).iterdir():
        file.unlink()
    (site / INFO).rmdir()
    served = serve_installed(UPSTREAM, None)
    assert served.files == FILES
    assert served.licence is None


@pytest.mark.parametrize(
    "name", ["nowhere_to_be_found", "lonely", "__main__", "builtins", "sys"]
)
def test_package_that_is_not_installed_does_not_serve(name, site):
    (site / "lonely.py").write_text("a = 'module, not a package'\n")
    with pytest.raises(SourceError, match=f"^{name} is not installed here$"):
        serve_installed(replace(UPSTREAM, installed=name), None)


def test_upstream_that_no_package_carries_does_not_serve():
    with pytest.raises(SourceError, match="no installed package carries these files"):
        serve_installed(replace(UPSTREAM, installed=""), None)


def test_missing_file_is_an_error_that_names_it(site):
    with pytest.raises(
        SourceError, match=r"cannot read fakelib/gone\.py in .*: No suc"
    ):
        serve_installed(UPSTREAM, ["fakelib/deep/a.py", "fakelib/gone.py"])


def test_link_out_of_the_installation_is_an_error(site, tmp_path):
    (tmp_path / "secret.py").write_text("secret = 1\n")
    (site / "fakelib" / "link.py").symlink_to(tmp_path / "secret.py")
    with pytest.raises(SourceError, match=r"fakelib/link\.py of .* is a link"):
        serve_installed(UPSTREAM, ["fakelib/link.py"])
    assert serve_installed(UPSTREAM, None).links == ("fakelib/link.py",)


def test_folder_of_that_name_where_one_stands_has_not_the_files(tmp_path, monkeypatch):
    """A namespace package: any folder on the path looks like one."""
    write_files(tmp_path / "fakelib", {"notes.txt": "not the package\n"})
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(SourceError, match=r"cannot read fakelib/deep/a\.py"):
        serve_installed(UPSTREAM, ["fakelib/deep/a.py"])


def test_version_of_what_is_not_installed_is_empty(site):
    assert installed_version("fakelib-core") == "1.0"
    assert installed_version("nowhere-to-be-found") == ""
