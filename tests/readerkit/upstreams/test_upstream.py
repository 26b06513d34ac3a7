import pytest
from msgspec import convert

from readerkit.anchors import Span
from readerkit.upstreams import Upstream
from readerkit.upstreams.upstream import Licence, Package, Wheel

ENTRY = {
    "name": "sample",
    "title": "Sample",
    "url": "https://example.org/sample",
    "tag": "v1",
    "commit": "0123456789abcdef0123456789abcdef01234567",
    "include": ["lib/**/*.py"],
    "licence": {"spdx": "MIT", "path": "LICENSE", "holder": "Nobody"},
}


def upstream(**changed) -> Upstream:
    return convert({**ENTRY, **changed}, Upstream)


@pytest.mark.parametrize(
    "pattern, path",
    [
        pytest.param("lib/**/*.py", "lib/a.py", id="no-folder-between"),
        pytest.param("lib/**/*.py", "lib/a/b/c.py", id="folders-between"),
        pytest.param("lib/**", "lib/a/b.txt", id="everything-below"),
        pytest.param("lib/*.py", "lib/.py", id="empty-star"),
        pytest.param("lib/?.py", "lib/a.py", id="one-character"),
        pytest.param("setup.py", "setup.py", id="one-file"),
        pytest.param("**/*.py", "a/b.py", id="any-folder"),
        pytest.param("lib/*.py", "lib/a\nb.py", id="newline-in-a-name"),
        pytest.param("a+b/(c)/[d].py", "a+b/(c)/[d].py", id="no-regular-expression"),
    ],
)
def test_glob_includes_path(pattern, path):
    assert upstream(include=[pattern]).includes(path)


@pytest.mark.parametrize(
    "pattern, path",
    [
        pytest.param("lib/**/*.py", "lib.py", id="beside-the-folder"),
        pytest.param("lib/**/*.py", "lib/a.pyc", id="longer-suffix"),
        pytest.param("lib/**/*.py", "src/lib/a.py", id="deeper-folder"),
        pytest.param("lib/**/*.py", "library/a.py", id="longer-folder"),
        pytest.param("lib/*.py", "lib/a/b.py", id="star-stays-in-its-folder"),
        pytest.param("lib/?.py", "lib//.py", id="question-mark-is-no-slash"),
        pytest.param("lib/a.py", "lib/axpy", id="dot-is-a-dot"),
        pytest.param("lib/**/*.py", "../lib/a.py", id="outside"),
        pytest.param("lib/**/*.py", "lib/a.py\n", id="trailing-newline"),
    ],
)
def test_glob_leaves_path_out(pattern, path):
    assert not upstream(include=[pattern]).includes(path)


def test_path_matters_if_any_glob_includes_it():
    both = upstream(include=["a/*.py", "b/*.py"])
    assert both.includes("a/x.py")
    assert both.includes("b/x.py")
    assert not both.includes("c/x.py")


def test_entry_becomes_an_upstream():
    package = {"name": "sample-core", "version": "1.0"}
    assert upstream(package=package, installed="sample") == Upstream(
        name="sample",
        title="Sample",
        include=("lib/**/*.py",),
        url="https://example.org/sample",
        tag="v1",
        commit=ENTRY["commit"],
        licence=Licence("MIT", "LICENSE", "Nobody"),
        package=Package("sample-core", "1.0", wheel=None),
        installed="sample",
    )


def test_wheel_of_an_entry_names_interpreter_and_platform():
    wheel = {"python": "3.12", "platform": "manylinux_2_28_x86_64"}
    package = upstream(package={"name": "a", "version": "1", "wheel": wheel}).package
    assert package == Package("a", "1", Wheel("3.12", "manylinux_2_28_x86_64"))


def test_only_a_commit_is_held_against_a_lock():
    assert upstream().is_pinned
    folder = Upstream("minis", "Minis", ("mini_impls/*.py",), folder="mini_impls")
    assert not folder.is_pinned


def test_permalink_names_the_pinned_commit_and_the_lines():
    link = upstream().permalink(Span("lib/a.py", 3, 9))
    commit = ENTRY["commit"]
    assert link == f"https://example.org/sample/blob/{commit}/lib/a.py#L3-L9"
    folder = Upstream("minis", "Minis", ("mini_impls/*.py",), folder="mini_impls")
    assert folder.permalink(Span("mini_impls/ddp.py", 1, 2)) == ""
