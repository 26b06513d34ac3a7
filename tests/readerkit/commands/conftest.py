"""A small book on a small upstream, for the tests of commands."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.helpers import (
    Result,
    SampleBook,
    made_once,
    make_book,
    run,
    run_process,
    run_typed,
)


class Desk:
    """A book, and a short way to run a command on it."""

    def __init__(self, book: SampleBook, capsys: pytest.CaptureFixture[str]) -> None:
        self.book = book
        self._capsys = capsys

    def run(self, *arguments: str) -> Result:
        return run(self._capsys, *arguments, "--book", str(self.book.root))

    def lock(self) -> Path:
        return self.book.path("sample.lock")


@pytest.fixture
def desk(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Desk:
    """The sample book, its upstream not fetched yet."""
    return Desk(make_book(tmp_path), capsys)


@pytest.fixture(scope="session")
def locked_once(tmp_path_factory: pytest.TempPathFactory) -> SampleBook:
    """The sample book, fetched, with its anchors locked: to be copied."""
    folder = tmp_path_factory.mktemp("locked")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("READERKIT_CACHE", str(folder / "cache"))
        patch.setenv("READERKIT_DATA", str(folder / "data"))
        book = make_book(folder)
        arguments = ("annotate", "--update-lock", "--book", str(book.root))
        assert run_typed(*arguments, stdin="").code == 0
    shutil.rmtree(folder / "cache" / "git")  # it names this folder
    return book


@pytest.fixture
def locked(
    locked_once: SampleBook, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> Desk:
    """The sample book, fetched, with its anchors locked."""
    made = locked_once.root.parent
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    root, repository = tmp_path / "book", tmp_path / "served" / "sample"
    named_in = (tmp_path / "cache" / "served").glob("*.json")
    for path in (root / "annotations" / "upstreams.yaml", *named_in):
        path.write_text(path.read_text().replace(str(made), str(tmp_path)))
    desk = Desk(SampleBook(root, repository, locked_once.commit), capsys)
    assert desk.run("annotate", "--update-lock").code == 0  # what was parsed is kept
    return desk


@pytest.hookimpl(tryfirst=True)  # before marks decide what is run
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what measures a lab as slow."""
    for item in items:
        if "measure" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.slow)


@pytest.fixture(scope="session")
def measure(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Return what measures a lab, once a session, and says where its result is."""

    def run_lab(lab: str) -> Path:
        def run(folder: Path) -> None:
            arguments = ("lab", lab, "--run", "--rounds=3", "--folder", str(folder))
            ran = run_process(*arguments)
            assert ran.code == 0, ran.err
            check = f"check it with readerkit lab {lab} --check --folder {folder}"
            assert f"35-lab-{lab}.json: {check}\n" in ran.out
            (folder / "printed").write_text(ran.out)

        return made_once(tmp_path_factory, f"lab-{lab}", run)

    return run_lab
