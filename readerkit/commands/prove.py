"""``readerkit prove``: the experiments behind sentences, run on the real upstream."""

from __future__ import annotations

from pathlib import Path

import click

from readerkit.commands.options import (
    FiniteRange,
    book_option,
    json_option,
    lang_option,
)
from readerkit.terminal.completing import names


@click.command(short_help="Run the experiment behind a sentence of ID.")
@click.argument("ids", metavar="[ID]...", nargs=-1, shell_complete=names("proved"))
@click.option("--all", "all_of", is_flag=True, help="Every experiment of the book.")
@click.option(
    "--timeout",
    type=FiniteRange(min=0, min_open=True),
    default=60.0,
    show_default=True,
    metavar="SECONDS",
    help="What has not ended by then fails.",
)
@click.option(
    "--keep",
    is_flag=True,
    help="Keep what they print with the book: pages show it, --check holds it.",
)
@lang_option
@json_option
@book_option
def prove(
    ids: tuple[str, ...],
    all_of: bool,
    timeout: float,
    keep: bool,
    lang: str | None,
    as_json: bool,
    book: Path | None,
) -> None:
    """Run the experiments that prove sentences of a note, a mirror or a concept.

    Each is a program of at most 40 lines on the real upstream, one or two ranks on this
    machine's CPU: its figures are printed beside those that the sentence stands on. A
    wrong one fails. Without ID, lists what there is to prove.

    \b
    Example:
        readerkit prove
        readerkit prove ddp-bucket-caps
        readerkit prove --all --json
        readerkit prove --all --keep
    """
    import importlib.util

    from readerkit.app.interface_translation import known_language
    from readerkit.app.library import open_library
    from readerkit.errors import ReaderkitError
    from readerkit.terminal.prove import (
        experiments_of,
        list_experiments,
        refuse_without,
    )
    from readerkit.terminal.prove import prove as run
    from readerkit.terminal.run_mini import needs_torch
    from readerkit.wording.meant_name import choose_all

    if ids and all_of:
        raise click.UsageError("name an ID, or give --all")
    if keep and not (ids or all_of):
        raise click.UsageError("--keep is for what is run: name an ID, or give --all")
    library = open_library(book)
    language = known_language(lang, library)
    known = experiments_of(library)
    if not ids and not all_of:
        list_experiments(library, known, language, as_json=as_json)
        return
    entries = [*dict.fromkeys(each.entry for each in known)]
    refuse_without(library, ids, entries)
    chosen = choose_all("entry with an experiment", ids, entries)
    wanted = [each for each in known if all_of or each.entry in chosen]
    if wanted and importlib.util.find_spec("torch") is None:
        raise needs_torch("experiments run on it")
    faults = run(
        library,
        wanted,
        as_json=as_json,
        timeout_s=timeout,
        keep=keep,
        language=language,
    )
    if faults:
        raise ReaderkitError("\n".join(faults))
