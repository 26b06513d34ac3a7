"""``drift --apply``: claims and other anchors follow code that moved or was renamed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from tests.helpers import REFERENCES, git, make_repository, run, write_files
from tests.readerkit.commands.test_living import CONCEPTS

pytestmark = pytest.mark.sampled

PAGES = '''\
"""Pages of a site."""

import time

LIMIT = 7


class Pages:
    keep: int = 60

    def __init__(self, fetch):
        self._fetch = fetch
        self._kept = {}

    def page(self, address, tries=3):
        kept = self._kept.get(address)
        if kept and time.monotonic() - kept[0] < self.keep:
            return kept[1]
        for attempt in range(tries):
            text = self._fetch(address)
            if text is not None:
                self._kept[address] = (time.monotonic(), text)
                return text
        raise LookupError(address)


def crawl(pages, addresses):
    found = []
    for address in addresses[:LIMIT]:
        found.append(pages.page(address))
    return found
'''
NOTES = """\
# What pages are for. This remark stays.
- id: kept-once
  at:
    file: pages.py            # where it is
    symbol: Pages.page
    code: 'for attempt in ...: ...'
  kind: note
  title: What is kept, and when
  text: >-
    It comes once and is kept; at most 3 times it is asked for, and 60 is the number of
    seconds. No lock is held. At most 7 are crawled. The clock is read twice. Kept after
    it was fetched. One place keeps it. The limit is 7. The loop is there. Two in all.
  concepts: [idea]
  claims:
    - says: at most 3 times   # a parameter
      default: {file: pages.py, of: Pages.page.tries, is: 3}
    - {says: 60 is the number, default: {file: pages.py, of: Pages.keep, is: 60}}
    - says: At most 7 are crawled
      default: {file: pages.py, of: LIMIT, is: 7}
    - says: No lock is held
      absent: {name: Lock, in: [pages.py], symbol: Pages.page}
    - says: The clock is read twice
      uses: {of: monotonic, in: [pages.py], count: 2}
    - says: Kept after it was fetched
      order:
        file: pages.py
        symbol: Pages.page
        code:
          - text = self._fetch(address)
          - self._kept[address] = ...
    - says: It comes once and is kept
      guard: {file: pages.py, symbol: Pages.page,
              code: "self._kept[address] = ...", under: text is not None}
    - says: One place keeps it
      uses:
        of: monotonic
        in:
          - pages.py
        are: ["pages.py::Pages.page"]
    - says: The limit is 7
      value: {of: limit, with: {limit: {file: pages.py, of: LIMIT}}}
    - says: The loop is there
      stands: {file: pages.py, symbol: Pages.page, code: 'for attempt in ...: ...'}
- id: crawling
  at: {file: pages.py, symbol: crawl}
  kind: note
  title: All of them
  text: Each address is asked for.
  concepts: [idea]
"""


class OwnBook:
    def __init__(self, root: Path, capsys) -> None:
        self.root, self.book, self._capsys = root, root / "book", capsys

    def __call__(self, *arguments: str):
        return run(self._capsys, *arguments, "--book", str(self.book))

    @property
    def notes(self) -> str:
        return (self.book / "annotations/app/notes.yaml").read_text()

    def refactor(self, files: dict[str, str | None]) -> None:
        for name in [name for name, text in files.items() if text is None]:
            (self.root / name).unlink()
        write_files(self.root, {n: t for n, t in files.items() if t is not None})

    def apply(self):
        done = self("drift", "app", "--apply")
        assert done.code == 0, done.err
        return done


@pytest.fixture
def own(tmp_path, monkeypatch, capsys) -> OwnBook:
    monkeypatch.setenv("READERKIT_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("READERKIT_DATA", str(tmp_path / "data"))
    upstream = {"name": "app", "title": "App", "worktree": True, "include": ["**/*.py"]}
    files = {
        "pages.py": PAGES,
        "book/annotations/upstreams.yaml": yaml.safe_dump([upstream]),
        "book/annotations/concepts.yaml": CONCEPTS,
        "book/annotations/references.yaml": REFERENCES,
        "book/annotations/app/notes.yaml": NOTES,
    }
    root = tmp_path / "repo"
    make_repository(root, files)
    git(root, "config", "user.name", "Jane Doe")
    own = OwnBook(root, capsys)
    for words in (("annotate", "--update-lock"), ("review", "kept-once", "crawling")):
        done = own(*words)
        assert done.code == 0, done.err
    check = own("annotate", "--check", "--strict")
    assert check.code == 0, check.err
    return own


def split_in_two() -> dict[str, str]:
    """The class to a file of its own, in a folder; the rest stays."""
    at = PAGES.index("class Pages")
    end = PAGES.index("def crawl")
    body = PAGES[at:end].rstrip() + "\n"
    rest = (
        PAGES[:at].replace("import time", "from net.store import Pages") + PAGES[end:]
    )
    return {"net/store.py": '"""Kept."""\n\nimport time\n\n\n' + body, "pages.py": rest}


REFACTORINGS = {
    "the file is called otherwise": {"pages.py": None, "net/site.py": PAGES},
    "the class has a file of its own": split_in_two(),
    "the method is called otherwise": {
        "pages.py": PAGES.replace("def page(", "def read(").replace(".page(", ".read(")
    },
    "the class and what it keeps are called otherwise": {
        "pages.py": PAGES.replace("Pages", "Store").replace("_kept", "_known_texts")
    },
    "another file, another name, lines above": {
        "pages.py": None,
        "net/site.py": "import os\nimport sys\n\n"
        + PAGES.replace("Pages", "Store")
        .replace("def page(", "def read(")
        .replace(".page(", ".read("),
    },
    "the constant is called otherwise": {
        "pages.py": PAGES.replace("LIMIT", "MOST_ADDRESSES")
    },
}


@pytest.mark.parametrize("files", REFACTORINGS.values(), ids=REFACTORINGS.keys())
def test_a_book_is_red_after_a_refactoring_and_green_when_it_is_applied(own, files):
    own.refactor(files)
    assert own("annotate", "--check").code == 1
    own.apply()
    check = own("annotate", "--check", "--strict")
    assert (check.code, check.err) == (0, ""), own.notes
    assert "claims: 10 sentences held" in check.out
    states = {n["id"]: n["state"] for n in json.loads(own("annotate", "--json").out)}
    assert states == {"kept-once": "reviewed", "crawling": "reviewed"}


def test_what_is_written_keeps_its_layout_and_its_remarks(own):
    own.refactor({"pages.py": None, "net/site.py": PAGES.replace("Pages", "Store")})
    own.apply()
    wanted = NOTES.replace("pages.py", "net/site.py").replace("Pages.", "Store.")
    assert yaml.safe_load(own.notes) == yaml.safe_load(wanted)
    quotes = str.maketrans("", "", "'\"")
    assert own.notes.translate(quotes) == wanted.translate(quotes)


def test_a_sentence_that_is_no_longer_true_goes_with_its_code_and_is_told(own):
    other = PAGES.replace("tries=3", "tries=5").replace("Pages", "Store")
    own.refactor({"pages.py": None, "net/site.py": other})
    done = own.apply()
    assert "kept-once: 'at most 3 times' is no longer true" in done.out
    assert "{file: net/site.py, of: Store.page.tries, is: 3}" in own.notes
    check = own("annotate", "--check")
    assert check.code == 1
    assert "Store.page.tries is 5, expected `Store.page.tries` is `3`" in check.err


def test_another_call_is_no_new_name_for_the_same(own):
    other = PAGES.replace("text = self._fetch(address)", "text = self._ask(address)")
    own.refactor({"pages.py": other.replace("Pages", "Store")})
    own.apply()
    order = yaml.safe_load(own.notes)[0]["claims"][5]["order"]
    assert order["code"][0] == "text = self._fetch(address)"
    check = own("annotate", "--check")
    assert check.code == 1
    # It is looked for in the definition as it is called now.
    assert order["symbol"] == "Store.page"
    said = "'Kept after it was fetched' cannot be held here: pages.py: no match for"
    assert said in check.err


def test_a_name_that_the_note_says_is_to_be_read_again(own):
    file = own.book / "annotations/app/notes.yaml"
    file.write_text(own.notes.replace("Each address", "By `crawl` each address"))
    assert own("review", "crawling").code == 0
    own.refactor({"pages.py": PAGES.replace("crawl(", "walk_all(")})
    done = own.apply()
    assert "crawl is walk_all now, and the note says crawl" in done.out
    check = own("annotate", "--check")
    assert check.code == 1
    assert "crawling: the code under it changed since Jane Doe" in check.err


@pytest.mark.parametrize(
    ("files", "where"),
    [
        (split_in_two(), ["pages.py", "net/store.py"]),
        (
            {"pages.py": None, "net/site.py": PAGES, "more.py": "def more(): ...\n"},
            ["*.py", "net/site.py"],
        ),
    ],
    ids=["most of the file went elsewhere", "the file is like its glob no more"],
)
def test_what_stands_nowhere_is_looked_for_where_its_file_went(own, files, where):
    file = own.book / "annotations/app/notes.yaml"
    wide = f"in: [{where[0]!r}]}}"
    file.write_text(own.notes.replace("in: [pages.py], symbol: Pages.page}", wide))
    (own.root / "more.py").write_text("def more(): ...\n")
    assert own("annotate", "--update-lock").code == 0
    assert own("annotate", "--check").code == 0
    [moved] = [name for name in files if name.startswith("net/")]
    locked = files[moved].replace("self._kept = {}", "self._kept = {}; Lock()")
    own.refactor({**files, moved: locked})
    done = own.apply()
    assert "kept-once: 'No lock is held' is no longer true" in done.out
    absent = yaml.safe_load(own.notes)[0]["claims"][3]["absent"]
    assert absent == {"name": "Lock", "in": where}


def test_what_stands_nowhere_stays_as_it_is_where_nothing_moved(own):
    file = own.book / "annotations/app/notes.yaml"
    file.write_text(own.notes.replace(", symbol: Pages.page}", "}"))
    assert own("annotate", "--update-lock").code == 0
    own.refactor({"pages.py": PAGES.replace("import time", "import time as time")})
    found = json.loads(own("drift", "app", "--json").out)
    assert found["moved_claims"] == []


def test_what_stands_nowhere_is_looked_for_in_no_file_that_took_a_little(own):
    file = own.book / "annotations/app/notes.yaml"
    file.write_text(own.notes.replace(", symbol: Pages.page}", "}"))
    assert own("annotate", "--update-lock").code == 0
    at = PAGES.index("def crawl")
    kept = "from net.crawling import crawl\n\n" + PAGES[:at]
    own.refactor({"pages.py": kept, "net/crawling.py": PAGES[at:] + "\n\nLock()\n"})
    own.apply()
    absent = yaml.safe_load(own.notes)[0]["claims"][3]["absent"]
    assert absent == {"name": "Lock", "in": ["pages.py"]}


def test_claims_that_moved_are_told_before_anything_is_written(own):
    before = own.notes
    own.refactor({"pages.py": None, "net/site.py": PAGES})
    found = own("drift", "app", "--json")
    told = json.loads(found.out)
    assert len(told["moved_claims"]) == 10
    assert told["sentences"] == []
    assert told["moved_claims"][0]["now"]["file"] == "net/site.py"
    assert own.notes == before


def test_locks_hold_what_moved_claims_rest_on(own):
    own.refactor({"pages.py": None, "net/site.py": PAGES})
    own.apply()
    lock = json.loads((own.book / "annotations/app.lock").read_text())
    own("annotate", "--update-lock")
    assert json.loads((own.book / "annotations/app.lock").read_text()) == lock


QUESTION = """
- id: where-kept
  type: locate
  asks: explain
  objective: {objective}
  concepts: [idea]
  difficulty: 1
  prompt: Which line keeps a page?
  within: {upstream: app, file: pages.py, symbol: Pages.page}   # all of it
  at: {upstream: app, file: pages.py, symbol: Pages.page,
       code: "self._kept[address] = ..."}
  mistakes:
    - at: {upstream: app, file: pages.py, symbol: Pages.page, code: "raise ..."}
      why: Here nothing was fetched.
    - at: {upstream: app, file: pages.py, symbol: Pages.page, code: "return kept[1]"}
      why: Here it was kept already.
  notes: [kept-once]
  explanation: It is kept once it was fetched.
"""


def test_questions_follow_their_lines_and_keep_what_stands_beside_them(own):
    assert own("quiz", "init", "36").code == 0
    folder = own.book / "quizzes/36"
    [file] = [each for each in folder.glob("*.yaml") if each.name != "bank.yaml"]
    objective = yaml.safe_load((folder / "bank.yaml").read_text())["objectives"][0][
        "id"
    ]
    file.write_text(file.read_text() + QUESTION.replace("{objective}", objective))
    locked = own("quiz", "lint", "36", "--update-lock")
    assert locked.code == 0, locked.err
    own.refactor({"pages.py": None, "net/site.py": PAGES.replace("Pages", "Store")})
    assert own("quiz", "lint", "36").code == 1
    done = own.apply()
    assert f"wrote {file}" in done.out
    written = file.read_text()
    assert "symbol: Store.page}   # all of it" in written
    assert (
        '{upstream: app, file: net/site.py, symbol: Store.page, code: "raise ..."}'
        in (written)
    )
    held = own("quiz", "lint", "36")
    assert (held.code, held.err) == (0, "")
    check = own("annotate", "--check")
    assert (check.code, check.err) == (0, "")
