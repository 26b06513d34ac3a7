"""The page that lists every file of an upstream, folder by folder."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from readerkit.anchors.xref.links import File
from readerkit.content.book import MINIS
from readerkit.content.kept_drift import KeptDrift
from readerkit.model import addresses
from readerkit.model.git_names import TreePath
from readerkit.model.language import said
from readerkit.render.html.file_page import rights
from readerkit.render.html.site_model import Context, SiteModel

Leaf = tuple[str, str, int]
"""A file: its name, its page, how many notes are in it."""


@dataclass(frozen=True, slots=True)
class Folder:
    """A folder, to be folded away."""

    path: str
    name: str
    folders: tuple[Folder, ...]
    files: tuple[Leaf, ...]
    count: int
    """Of the files in it and below."""
    notes: int
    """In them."""
    is_open: bool


def tree_page(
    model: SiteModel, upstream: str, drifts: Sequence[KeptDrift] = ()
) -> Context:
    """Return the page of an upstream's files."""
    paths = sorted(path for name, path in model.sheets if name == upstream)
    leaves = {path: _leaf(model, (upstream, path)) for path in paths}
    folders, files = _inside("", leaves)
    why = model.absent.get(upstream)
    return {
        "title": model.book.upstreams[upstream].title,
        "folders": folders,
        "files": files,
        "count": len(paths),
        "here": addresses.tree_page(upstream),
        "trees": [*trees(model)],
        "absent": model.words.text(partial(said, why)) if why else None,
        "annotated": [(path, *leaf[1:]) for path, leaf in leaves.items() if leaf[2]],
        "drift": next(
            (
                (addresses.drift_page(upstream), each.to)
                for each in drifts
                if each.upstream == upstream
            ),
            None,
        ),
        "rights": rights(model, model.book.upstreams[upstream]),
    }


def _inside(
    at: str, leaves: Mapping[TreePath, Leaf]
) -> tuple[tuple[Folder, ...], tuple[Leaf, ...]]:
    """Return the folders and the files that stand directly at a path."""
    below: dict[str, dict[TreePath, Leaf]] = {}
    files = []
    for path, leaf in leaves.items():
        name, slash, _ = path.removeprefix(at).partition("/")
        if slash:
            below.setdefault(name, {})[path] = leaf
        else:
            files.append(leaf)
    folders = tuple(_folder(at, name, inner) for name, inner in below.items())
    return folders, tuple(files)


def _folder(at: str, name: str, leaves: Mapping[TreePath, Leaf]) -> Folder:
    """Return a folder; it is open if there are notes in it, and so is the outermost."""
    folders, files = _inside(f"{at}{name}/", leaves)
    notes = sum(leaf[2] for leaf in leaves.values())
    is_open = notes > 0 or not at
    path = f"{at}{name}"
    return Folder(path, name, folders, files, len(leaves), notes, is_open)


def _leaf(model: SiteModel, file: File) -> Leaf:
    name = file[1].rpartition("/")[2]
    return name, addresses.source_page(*file), len(model.notes_in(file))


def upstreams_shown(model: SiteModel) -> Iterable[str]:
    """Return the upstreams whose files the site holds, in the book's order."""
    present = {upstream for upstream, _ in model.sheets}
    return [name for name in model.book.upstreams if name in present]


def trees(model: SiteModel) -> Iterator[tuple[str, str]]:
    """Yield what each upstream is called, and the page of its files."""
    for name in upstreams_shown(model):
        title = "Minis" if name == MINIS else model.book.upstreams[name].title
        yield title, addresses.tree_page(name)
