"""Where a user's own folders are: as platformdirs says, which the quick way skips."""

import platformdirs
import pytest

from readerkit.app.own_place import own_place


@pytest.mark.parametrize(
    "surroundings",
    [
        {"HOME": "/home/a"},
        {"HOME": "/home/a/"},
        {"HOME": "/home/a", "XDG_CACHE_HOME": "/c", "XDG_DATA_HOME": "/d"},
        {"HOME": "/home/a", "XDG_CACHE_HOME": "c", "XDG_DATA_HOME": "d"},
        {"HOME": "/home/a", "XDG_CACHE_HOME": "", "XDG_DATA_HOME": " "},
        {"HOME": "here"},
    ],
)
def test_a_folder_is_the_one_that_platformdirs_names(surroundings, monkeypatch):
    for name in ("READERKIT_CACHE", "READERKIT_DATA", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)
    for name, value in surroundings.items():
        monkeypatch.setenv(name, value)
    for variable, kind in (
        ("READERKIT_CACHE", "user_cache_path"),
        ("READERKIT_DATA", "user_data_path"),
    ):
        found = getattr(platformdirs, kind)("readerkit")
        assert own_place(variable, kind) == str(found)


def test_a_variable_names_a_folder_before_that(monkeypatch):
    monkeypatch.setenv("READERKIT_CACHE", "/elsewhere")
    assert own_place("READERKIT_CACHE", "user_cache_path") == "/elsewhere"
