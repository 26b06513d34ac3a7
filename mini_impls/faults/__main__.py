"""`python -m mini_impls.faults MINI FAULT`: predict, run, see, find the guard.

What runs comes with torch, which takes seconds to import: not before the question.
"""

from __future__ import annotations

import argparse
import os
import sys

import click

from mini_impls.faults.fault import Fault, Mutant, check, find, read_faults
from mini_impls.faults.show import (
    Result,
    faults_to_json,
    list_faults,
    show_question,
    show_result,
    to_json,
)
from mini_impls.faults.spanish import in_language
from mini_impls.faults.symptoms import shown
from mini_impls.limits import Options, check_timeout, complain
from readerkit.app.interface_translation import say_in
from readerkit.app.library import note_progress, open_library
from readerkit.errors import ReaderkitError
from readerkit.model.language import LANGUAGES, Say
from readerkit.system import prompt
from readerkit.system.output import OutputError, printing
from readerkit.terminal import asking
from readerkit.terminal.folded import tell
from readerkit.wording.next_command import remember, typed


def parse(argv: list[str] | None) -> argparse.Namespace:
    """Return the arguments, a prediction checked against the fault's choices."""
    parser = Options(
        typed("break"),
        "Run a mini with one deliberate fault, and without it.",
        "[MINI [FAULT]]",
    )
    parser.add_argument("mini", nargs="?", help="its faults, if no fault is named")
    parser.add_argument("fault", nargs="?", help="without: list the faults")
    parser.add_argument("--predict", type=int, metavar="N", help="your answer")
    parser.add_argument("--world", type=int, default=2, help="ranks: 2 (default) or 4")
    parser.add_argument(
        "--timeout",
        type=float,
        default=15.0,
        help="seconds after which a wait is a hang (default %(default)s)",
    )
    lang = "say it in another language: es"
    parser.add_argument(
        "--lang", type=str.lower, choices=LANGUAGES, default="en", help=lang
    )
    parser.add_argument("--json", action="store_true", help="print JSON only")
    args = parser.parse_args(argv)
    args.prog = parser.prog
    return args


def ask(fault: Fault, say: Say) -> int | None:
    """Return the choice of a person at a terminal, from 0; None for no answer."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        missing = say("(no terminal to ask on: --predict N, 1 to {last})")
        click.echo(missing.format(last=len(fault.choices)), err=True)
        return None
    last = len(fault.choices)
    answers = {str(number): number for number in range(last + 1)} | {"": 0}
    number = asking.ask(
        say("Your prediction, 1 to {last} (0 to go on without)").format(last=last),
        lambda typed: answers[asking.one_word(typed, answers)],
        say("Expected a number from 0 to {last}.").format(last=last),
    )
    return number - 1 if number else None


def break_mini(fault: Fault, args: argparse.Namespace) -> None:
    """Ask, run both, show.

    Raises:
        ValueError: a world, a timeout or a prediction that does not fit.
        ReaderkitError: an anchor that no longer resolves, or runs that do not show
            what the fault is for.
    """
    check(args.world)
    check_timeout(args.timeout)
    if args.predict is not None and not 1 <= args.predict <= len(fault.choices):
        raise ValueError(
            f"--predict {args.predict} is not one of 1 to {len(fault.choices)}"
        )
    library, mutant, say = open_library(), Mutant.make(fault), say_in(args.lang)
    if "READERKIT_BOOK" in os.environ:  # the notes that are named are of what ships
        remember("book", str(library.root))
    prediction = None if args.predict is None else args.predict - 1
    if not args.json:
        with printing():
            show_question(mutant, say)
        if args.predict is None:
            prediction = ask(fault, say)
    from mini_impls.faults.run import observe

    options = {"world_size": args.world, "timeout_s": args.timeout}
    note_progress(f"running {fault.mini} as it is, on {args.world} ranks")
    right = observe(fault.work, None, **options)
    if right.failure and right.failure.hung:
        raise ReaderkitError(
            f"without the fault, too, a rank waited longer than {args.timeout:g} s: "
            f"this machine is busy; wait, or give it more: --timeout "
            f"{4 * args.timeout:g}\n{right.failure.said}"
        )
    if right.failure:
        raise ReaderkitError(f"the mini failed without the fault: {right.failure}")
    note_progress("running it with the fault")
    wrong = observe(fault.work, mutant, **options)
    symptoms = [choice.symptom for choice in fault.choices]
    result = Result(mutant, right, wrong, shown(right, wrong, symptoms), prediction)
    with printing():
        if args.json:
            print(to_json(result, library, say))
        else:
            show_result(result, library, say)
    if not result.shown:
        raise ReaderkitError(
            f"{fault.key}: these runs show none of its {len(symptoms)} answers"
        )


def main(argv: list[str] | None = None) -> int:
    """Do what the command line says; return the exit status."""
    args = parse(argv)
    prompt.install()
    try:
        known = in_language(read_faults(), args.lang)
        if args.fault is not None:
            break_mini(find(known, args.mini, args.fault), args)
            return 0
        faults = [fault for fault in known if args.mini in (None, fault.mini)]
        if not faults:
            find(known, args.mini, "")
        with printing():
            if args.json:
                print(faults_to_json(faults))
            else:
                tell(list_faults(faults))
    except (ValueError, ReaderkitError, OutputError) as error:
        return complain(args.prog, error)
    except click.Abort:  # the end of input
        click.echo(f"\n{args.prog}: interrupted", err=True)
        return 130
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
