"""The command line of a lab's measurement."""

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from torch.distributed.elastic.multiprocessing import SignalException

from mini_impls.failures import RankFailedError
from mini_impls.labs import result
from mini_impls.limits import Options
from mini_impls.machine import INSIST, check_room
from readerkit.errors import ReaderkitError
from readerkit.system.status import take_over
from readerkit.wording.next_command import written


def main(
    lab: str,
    description: str,
    module: Any,
    measure: Callable[[argparse.Namespace], dict[str, Any]],
    argv: list[str] | None = None,
) -> int:
    """Parse, measure, write the result; return the exit status."""
    parser = Options(written("lab", lab, "--run"), description)
    parser.add_argument("--world", type=int, default=2, help="most ranks (default 2)")
    parser.add_argument("--backend", choices=["gloo", "nccl"], default="gloo")
    parser.add_argument("--rounds", type=int, default=9, help="times each is measured")
    parser.add_argument("--timeout", type=float, default=60.0, help="of a collective")
    parser.add_argument("--out", type=Path, required=True, help="the result's file")
    parser.add_argument(INSIST, action="store_true", help="start them all the same")
    take_over()
    args = parser.parse_args(argv)
    options = ("--world", str(args.world), "--backend", args.backend)
    command = written("lab", lab, "--run", *options)
    try:
        if args.world < 2:
            raise ValueError(
                f"a lab compares 1 rank with more: got --world {args.world}"
            )
        if args.rounds < 3:
            raise ValueError(f"a median needs 3 rounds or more: got {args.rounds}")
        check_room(args.world, insist=args.oversubscribe)
        numbers = measure(args)
        result.write(args.out, lab, module, command, args.backend, numbers)
    except (ValueError, RankFailedError, ReaderkitError) as error:
        print(f"lab {lab}: {error}", file=sys.stderr)
        return 1
    except SignalException as error:
        return 128 + error.sigval
    return 0
