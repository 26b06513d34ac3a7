"""Makes the records that ship with the book: those that are stale or missing, or all.

Step times are of the machine as it is: run it where nothing else runs, alone.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from mini_impls.compare.comparisons import comparisons
from mini_impls.compare.run import compare
from readerkit.app.library import Library, open_library
from readerkit.app.records import find_stale
from readerkit.errors import ReaderkitError
from readerkit.evidence.conclusion import Conclusion, say_conclusion
from readerkit.evidence.record import Record
from readerkit.upstreams.store import write_atomically

FOLDER = Path(__file__).resolve().parent.parent / "annotations" / "records"
WORLD_SIZE = 2
WORLD_SIZES = {"layout": 8}
"""Of minis that show more on more ranks: three dimensions at once need two of each."""
STEPS = 12


def main() -> int:
    """Make records; return 1 where one has a line without a reason, or half a clock."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="comparisons; default: the stale ones")
    parser.add_argument("--all", action="store_true", help="all of them")
    args = parser.parse_args()
    library = open_library()
    failed = 0
    for comparison in comparisons():
        path = FOLDER / f"{comparison.name}.json"
        if args.names and comparison.name not in args.names:
            continue
        if not (args.all or args.names) and is_fresh(library, path):
            continue
        record = compare(
            library,
            comparison,
            world_size=WORLD_SIZES.get(comparison.mini, WORLD_SIZE),
            backend="gloo",
            steps=STEPS,
            is_clocked=True,
        )
        assert record is not None
        write_atomically(path, record.to_text().encode())
        is_whole = len(record.clocks) == 2 * record.world_size
        failed += not (record.agrees and is_whole)
        happened = next(say_conclusion(Conclusion.of(record)))
        lacks = "" if is_whole else " Its clock lacks a side: make it once more."
        print(f"{comparison.name}: {happened}{lacks}", flush=True)
    return 1 if failed else 0


def is_fresh(library: Library, path: Path) -> bool:
    """Tell whether a record speaks of the code at hand."""
    try:
        record = Record.parse(path.read_text("utf-8"), path.name)
    except (OSError, ReaderkitError):
        return False
    return record.agrees and not find_stale(library, record)


if __name__ == "__main__":
    sys.exit(main())
