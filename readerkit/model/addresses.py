"""Where each page of the site stands, and how one page links to another."""

from __future__ import annotations

from functools import lru_cache
from urllib.parse import quote

from readerkit.model.freshness import digest
from readerkit.model.git_names import place_text

MAX_NAME_BYTES = 200

START = "index.html"
CONCEPTS = "concepts.html"
CONDITIONS = "conditions.html"
REFERENCES = "references.html"
PATHS = "paths.html"
QUIZ = "quiz.html"
BESIDE = "beside/index.html"
CHAPTERS = "chapters/index.html"
LABS = "labs/index.html"
ESTIMATES = "estimates.html"
MECHANISMS = "mechanisms/index.html"


def source_page(upstream: str, path: str) -> str:
    """Return the page of a source file.

    >>> source_page("megatron", "megatron/core/utils.py")
    'read/megatron/megatron/core/utils.py.html'
    """
    return f"read/{upstream}/{_fitting(path)}.html"


def uses_page(upstream: str, path: str) -> str:
    """Return the page that lists the uses of what a file defines."""
    return f"read/{upstream}/{_fitting(path)}.uses.html"


def peek_file(upstream: str, path: str) -> str:
    """Return the script that holds what a file's definitions look like."""
    return f"read/{upstream}/{_fitting(path)}.peek.js"


def lines_page(upstream: str, path: str, first: int, last: int) -> str:
    """Return where lines of a source file stand.

    >>> lines_page("minis", "mini_impls/ddp.py", 7, 7)
    'read/minis/mini_impls/ddp.py.html#L7'
    """
    end = f"-L{last}" if last > first else ""
    return f"{source_page(upstream, path)}#L{first}{end}"


def lines_text(path: str, first: int, last: int) -> str:
    """Return what lines are called where their folder is known.

    >>> lines_text("mini_impls/ddp.py", 7, 9)
    'ddp.py:7-9'
    """
    return place_text(path.rpartition("/")[2], first, last)


def tree_page(upstream: str) -> str:
    """Return the page that lists the files of an upstream."""
    return f"read/{upstream}/index.html"


def mirror_page(mirror: str) -> str:
    """Return the side-by-side page of a mirror."""
    return f"beside/{mirror}.html"


def tour_page(tour: str) -> str:
    """Return the page of a tour."""
    return f"tours/{tour}.html"


def drift_page(upstream: str) -> str:
    """Return the page of an upstream that drifted."""
    return f"drift/{upstream}.html"


def drift_feed(upstream: str) -> str:
    """Return the feed of an upstream that drifted."""
    return f"drift/{upstream}.xml"


def mechanism_page(mechanism: str) -> str:
    """Return the page of a mechanism that plays."""
    return f"mechanisms/{mechanism}.html"


def chapter_page(chapter: str) -> str:
    """Return the page of a chapter."""
    return f"chapters/{chapter}.html"


def quiz_page(phase: int) -> str:
    """Return the page of a phase's quiz."""
    return f"quiz/{phase}.html"


def quiz_topic_page(phase: int, topic: str) -> str:
    """Return the page of one topic of a phase's quiz."""
    return f"quiz/{phase}/{topic}.html"


def lab_page(lab: str) -> str:
    """Return the page of a lab."""
    return f"labs/{lab}.html"


def record_file(comparison: str) -> str:
    """Return the raw record that ships with the site."""
    return f"records/{comparison}.json"


def to_root(page: str) -> str:
    """Return what leads from a page to the top of the site, wherever that is.

    >>> to_root("read/megatron/index.html")
    '../../'
    """
    return "../" * page.count("/")


def to_page(page: str, here: str) -> str:
    """Return what leads from a page to another, no longer than it must be.

    >>> to_page("read/minis/mini_impls/ddp.py.html#L7", "read/minis/demos/loss.py.html")
    '../mini_impls/ddp.py.html#L7'
    """
    folders, parts = here.split("/")[:-1], page.split("/")
    same = 0
    while same < min(len(folders), len(parts) - 1) and folders[same] == parts[same]:
        same += 1
    return "../" * (len(folders) - same) + "/".join(parts[same:])


@lru_cache(1 << 16)
def href(page: str) -> str:
    """Return a page's path as it stands in a link: quoted, except for its fragment."""
    path, mark, fragment = page.partition("#")
    quoted = quote(path, safe="/", errors="surrogateescape")
    return quoted + mark + quote(fragment, safe="-._~", errors="surrogateescape")


def _fitting(path: str) -> str:
    """Return a path whose last part leaves room for an ending in a file system.

    A ``#`` in a name would look like the fragment of a link: it is written out.
    """
    path = path.replace("%", "%25").replace("#", "%23")
    folder, slash, name = path.rpartition("/")
    data = name.encode("utf-8", "surrogateescape")
    if len(data) > MAX_NAME_BYTES:
        name = digest(data)
    return folder + slash + name
