"""A small book on a small upstream, for the tests of commands."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.helpers import Result, SampleBook, made_once, make_book, run, run_process


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


@pytest.fixture
def locked(desk: Desk) -> Desk:
    """The sample book, fetched, with its anchors locked."""
    assert desk.run("annotate", "--update-lock").code == 0
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
            ran = run_process(*arguments, timeout=200)
            assert ran.code == 0, ran.err
            check = f"check it with readerkit lab {lab} --check --folder {folder}"
            assert f"35-lab-{lab}.json: {check}\n" in ran.out
            (folder / "printed").write_text(ran.out)

        return made_once(tmp_path_factory, f"lab-{lab}", run)

    return run_lab
