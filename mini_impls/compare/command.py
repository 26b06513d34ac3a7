"""The command: from its arguments to the table, or the record, and the exit status."""

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from msgspec.structs import replace
from torch.distributed.elastic.multiprocessing import SignalException

from mini_impls.compare.comparisons import MINIS, comparisons, find
from mini_impls.compare.run import UNPINNED, compare
from mini_impls.compare.show import render
from mini_impls.failures import RankFailedError
from mini_impls.limits import Options, add_run_options, program
from mini_impls.machine import check_room
from mini_impls.recorder import RankTrace
from mini_impls.run_table import table
from mini_impls.run_trace import check_target, drawn, write
from mini_impls.torchrun import complain_once, is_under_torchrun, ranks_of
from readerkit.app.folders import is_own
from readerkit.app.interface_translation import say_of_records
from readerkit.app.library import open_library
from readerkit.app.records import record_path, records_folder
from readerkit.content.book import Book
from readerkit.content.mirrors import Mirror
from readerkit.errors import ReaderkitError
from readerkit.evidence.record import Record
from readerkit.evidence.relevance import Evidence, homes
from readerkit.model.language import LANGUAGES, SPANISH
from readerkit.system.garbage import kept
from readerkit.system.output import OutputError, printing
from readerkit.system.status import take_over
from readerkit.upstreams.store import write_atomically
from readerkit.wording.fold import fitting, screen_columns, width_of


def main(argv: list[str] | None = None) -> int:
    """Compare, print, save; return 0 where all agrees or is explained, 1 otherwise."""
    take_over()
    parser = _options()
    args = parser.parse_args(argv)
    try:
        with kept():
            comparison = find(args.mini, args.upstream)
        if not is_under_torchrun():
            check_room(ranks_of(args.world), insist=args.oversubscribe)
        if args.trace is not None:
            check_target(args.trace)
        if args.save is not None:
            check_folder(args.save)
        if args.watch and args.json:
            raise ValueError("--watch and --json: got both, expected one")
        library = open_library(args.book)
        traces: list[RankTrace] = []
        record = compare(
            library,
            comparison,
            world_size=ranks_of(args.world),
            backend=args.backend,
            steps=args.steps,
            timeout_s=args.timeout,
            share_gpus=args.oversubscribe,
            unpinned=args.unpinned,
            is_clocked=args.json or args.save is not None,  # nothing else shows it
            show_traces=traces.extend if args.trace or args.watch else None,
        )
        if record is None:
            return 0  # another rank of torchrun has it
        try:
            _print(record, library.book, traces, args)
        finally:  # what cannot be printed is kept, and what cannot be kept was printed
            _keep(record, traces, args)
    except (ValueError, ReaderkitError, RankFailedError, OutputError) as error:
        return complain_once(parser.prog, error)
    except SignalException as error:
        return 128 + error.sigval
    return 0 if record.agrees else 1


def _print(
    record: Record, book: Book, traces: Sequence[RankTrace], args: argparse.Namespace
) -> None:
    with printing():
        if args.json:
            print(record.to_text())
            return
        print(report(record, book, args.lang))
        if traces:
            told = table([drawn(each).summary for each in traces], width_of(sys.stdout))
            print(f"\n{fitting(told, sys.stdout)}")


def _keep(
    record: Record, traces: Sequence[RankTrace], args: argparse.Namespace
) -> None:
    """Write the files that were asked for.

    Raises:
        StoreError: a disk that is full, or a folder that is gone meanwhile.
        OutputError: the same, of the trace.
    """
    if args.save is not None:
        path = args.save / record_path(record.comparison, record.backend)
        write_atomically(path, record.to_text().encode(), private=is_own(path))
        print(f"wrote {path}", file=sys.stderr)
    if args.trace is not None:
        write(args.trace, traces)
        if not args.json:
            with printing():
                print(f"trace of all ranks: {args.trace}")


def _options() -> Options:
    parser = _Parser(
        program(), "Run a mini beside its upstream on the same work.", "MINI"
    )
    parser.add_argument("mini", metavar="MINI", help=f"one of {', '.join(MINIS)}")
    parser.add_argument("--upstream", help="what it is held against (default: first)")
    add_run_options(parser, steps=12)
    parser.add_argument("--json", action="store_true", help="print the record only")
    parser.add_argument(
        "--save",
        nargs="?",
        type=Path,
        const=records_folder(),
        metavar="DIR",
        help="write the record, by default where it takes the shipped one's place",
    )
    unpinned = "take torch as it is installed; its record then names that commit"
    parser.add_argument(UNPINNED, action="store_true", help=unpinned)
    lang = "say the verdict in another language: es"
    parser.add_argument(
        "--lang", type=str.lower, choices=LANGUAGES, default="en", help=lang
    )
    parser.add_argument("--book", type=Path, help="a folder with another book")
    return parser


class _Parser(Options):
    """Lists the comparisons in its help alone: that imports every upstream."""

    def format_help(self) -> str:
        """Return the help."""
        names = "\n".join(f"  {c.mini} --upstream {c.upstream}" for c in comparisons())
        self.epilog = f"Comparisons:\n{names}"
        return super().format_help()


def check_folder(folder: Path) -> None:
    """Raise ValueError where no record can be saved, before anything runs."""
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"--save {folder} is a file: name a folder")
    there = next(each for each in (folder, *folder.absolute().parents) if each.exists())
    if not there.is_dir():
        raise ValueError(f"--save {folder}: {there} is a file, expected a folder")
    if not os.access(there, os.W_OK | os.X_OK):
        raise ValueError(f"--save {folder}: {there} cannot be written")


def report(record: Record, book: Book, language: str) -> str:
    """Return a record as the screen has room for it."""
    of_it = homes(book.mirrors.values(), {record.comparison: Evidence(record)})
    mirror = of_it.get(record.comparison)
    if mirror is not None and language == SPANISH:
        mirror = _marked(mirror, book.mirror_in(mirror.id, SPANISH))

    def give(name: str, why: str) -> str:
        if language != SPANISH:
            return why
        other = book.reason_in(name, why, SPANISH)
        return other if other not in ("", why) else f"[en] {why}"

    return render(record, screen_width(), mirror, say_of_records(language), give)


def _marked(mirror: Mirror, other: Mirror) -> Mirror:
    """Return a translated mirror, its titles marked where they are still English."""
    sections = [
        there if there.title != own.title else replace(own, title=f"[en] {own.title}")
        for own, there in zip(mirror.sections, other.sections, strict=True)
    ]
    return replace(other, sections=tuple(sections))


def screen_width() -> int:
    """Return how wide the terminal is; 80 columns where there is none."""
    return max(screen_columns(), 40) if sys.stdout.isatty() else 80
