"""What was worked out for published runs is kept, for the code that worked it out."""

from readerkit.app import published_runs
from readerkit.app.cached_files import keep, kept_file, read_kept
from readerkit.app.catalog import shipped
from readerkit.app.folders import cache_folder


def test_what_older_code_kept_in_another_shape_is_worked_out_anew(monkeypatch):
    monkeypatch.setattr(published_runs, "load_runs", lambda: [])
    place = kept_file(cache_folder(), shipped("runs.yaml"), ".compared")
    keep(place, b'{"key": "older", "found": [[1.5, {"tp": 8}, {"tp": 4}]]}')
    assert published_runs.compared_runs() == ()
    assert b"older" not in read_kept(place)
