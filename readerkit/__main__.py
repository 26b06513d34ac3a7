"""Run the toolkit as ``python -m readerkit``."""

import os
import sys

# Python puts the working folder first for -m. Whatever lies there is not ours to
# import, unless it is the clone that we are run from.
if __name__ == "__main__" and not sys.flags.safe_path:
    try:
        here = os.getcwd()  # noqa: PTH109  (pathlib would be imported from there)
    except OSError:  # it was deleted
        here = ""
    if sys.path[0] in ("", here) and here != __file__.rpartition("/readerkit/")[0]:
        del sys.path[0]

import signal

# Until the command stands ready to say that it was interrupted, ^C ends it as it ends
# any program, without a word: what is being imported has nothing to clear up.
if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
    signal.signal(signal.SIGINT, signal.SIG_DFL)

from readerkit.cli import main

if __name__ == "__main__":
    main()
