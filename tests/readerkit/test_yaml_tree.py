"""Hand-written YAML is plain data: read strictly, and refused where it is more."""

from __future__ import annotations

import subprocess
import sys

import pytest

from readerkit.content.strict_yaml import (
    MAX_BYTES,
    MAX_DEPTH,
    MAX_VALUES,
    YamlFile,
    parse_yaml,
)
from readerkit.errors import ContentError
from tests.terminals import WAIT_S

pytestmark = pytest.mark.sampled


def parse(text: str | bytes) -> YamlFile:
    data = text if isinstance(text, bytes) else text.encode()
    return parse_yaml(data, "a.yaml")


def faults(text: str | bytes) -> list[str]:
    """Return every fault of a file, whether the rest of it could be read or not."""
    try:
        return [str(fault) for fault in parse(text).faults]
    except ContentError as error:
        return [str(fault) for fault in error.faults]


SCALARS = {
    # Words that older YAML takes for booleans, and that people write as words.
    "no": "no",
    "No": "No",
    "on": "on",
    "off": "off",
    "yes": "yes",
    "y": "y",
    "n": "n",
    "true": True,
    "True": True,
    "TRUE": True,
    "tRUE": "tRUE",
    "false": False,
    "null": None,
    "Null": None,
    "~": None,
    "": None,
    "12": 12,
    "-1": -1,
    "+1": 1,
    "017": 17,
    "0o17": 15,
    "0x1F": 31,
    "1_000": "1_000",
    "1:30": "1:30",
    "2020-01-01": "2020-01-01",
    "1.5": 1.5,
    ".5": 0.5,
    "1e-1": 0.1,
    "1.0": 1,
    "1e3": 1000,
    "1e999": "1e999",
    "12345678901234567890": "12345678901234567890",
    ".inf": ".inf",
    ".nan": ".nan",
    "=": "=",
    "'12'": "12",
    '"true"': "true",
    "''": "",
    '"\\u263a"': "\u263a",
    "|\n  x\n  y": "x\ny\n",
    ">-\n  x\n  y": "x y",
}


@pytest.mark.parametrize(("text", "value"), SCALARS.items(), ids=map(repr, SCALARS))
def test_scalars_follow_the_core_schema(text, value):
    document = parse(f"a: {text}\n")
    assert document.value == {"a": value}
    assert type(document.value["a"]) is type(value)
    assert document.faults == []


PLAIN = {
    "nothing": ("", None),
    "a comment": ("# a\n", None),
    "a byte order mark": (b"\xef\xbb\xbfa: 1", {"a": 1}),
    "CRLF": ("a: 1\r\nb:\r\n- 2\r\n", {"a": 1, "b": [2]}),
    "explicit start and end": ("---\na: 1\n...\n", {"a": 1}),
    "an old version's directive": ("%YAML 1.1\n---\na: no\n", {"a": "no"}),
    "flow and block": ("a: [1, {b: 2}]\nc:\n- - 3\n", {"a": [1, {"b": 2}], "c": [[3]]}),
    "letters of any script": ("título: ☺ 😀\n", {"título": "☺ 😀"}),
}


@pytest.mark.parametrize(("text", "value"), PLAIN.values(), ids=PLAIN)
def test_plain_data_is_read_as_it_stands(text, value):
    document = parse(text)
    assert (document.value, document.faults) == (value, [])


REFUSED = {
    "duplicate key": (
        "a: 1\nb: {c: 1,\n    c: 2}\na: 3\n",
        [
            "a.yaml:3:5: a duplicate key: got 'c', first at line 2, expected each "
            "key once",
            "a.yaml:4:1: a duplicate key: got 'a', first at line 1, expected each "
            "key once",
        ],
    ),
    "duplicate key behind CRLF": (
        "a: 1\r\nb: 2\r\na: 3\r\n",
        ["a.yaml:3:1: a duplicate key: got 'a', first at line 1, expected each "
         "key once"],
    ),
    "duplicate key in one quoted and one plain spelling": (
        "a: 1\n'a': 2\n",
        ["a.yaml:2:1: a duplicate key: got 'a', first at line 1, expected each "
         "key once"],
    ),
    "anchor and alias": (
        "a: &x 1\nb: *x\n",
        [
            "a.yaml:1:4: an anchor: got '&x', expected no YAML anchors",
            "a.yaml:2:4: an alias: got '*x', expected the value itself",
        ],
    ),
    "an alias of nothing": (
        "a: *x\n",
        ["a.yaml:1:4: an alias: got '*x', expected the value itself"],
    ),
    "merge key": (
        "a: {<<: {b: 1}}\n",
        ["a.yaml:1:5: a merge key: got '<<', expected the keys themselves"],
    ),
    "tag that would run code": (
        "a: !!python/object/apply:os.system [x]\n",
        ["a.yaml:1:4: a tag: got "
         "'tag:yaml.org,2002:python/object/apply:os.system', expected no YAML tags"],
    ),
    "tag of a scalar": (
        "a: !!str 1\n",
        ["a.yaml:1:4: a tag: got 'tag:yaml.org,2002:str', expected no YAML tags"],
    ),
    "tag behind a directive": (
        "%TAG ! tag:x,2000:\n---\na: !b c\n",
        ["a.yaml:3:4: a tag: got 'tag:x,2000:b', expected no YAML tags"],
    ),
    "keys that are no strings": (
        "1: a\ntrue: b\nnull: c\n? [d]\n: e\n? {f: g}\n: h\n",
        [
            "a.yaml:1:1: a key that is not a string: got int, expected a string",
            "a.yaml:2:1: a key that is not a string: got bool, expected a string",
            "a.yaml:3:1: a key that is not a string: got NoneType, expected a string",
            "a.yaml:4:3: a key that is not a string: got list, expected a string",
            "a.yaml:6:3: a key that is not a string: got dict, expected a string",
        ],
    ),
    "several documents": (
        "---\na: 1\n---\nb: 2\n",
        ["a.yaml:3:1: a second document: got '---', expected one per file"],
    ),
    "not UTF-8": (
        b"a: b\nc: d\xffe\n",
        ["a.yaml:2:5: file is not UTF-8: got byte 0xff, expected UTF-8 text"],
    ),
    "UTF-16": (
        "a: 1".encode("utf-16"),
        ["a.yaml:1:1: file is not UTF-8: got byte 0xff, expected UTF-8 text"],
    ),
    "a control character behind wide ones": (
        "a: ééé😀\nb: \x07\n",
        ["a.yaml:2:4: not valid YAML: got a control character"],
    ),
    "not YAML": (
        "a: 1\nb: c: d\n",
        ["a.yaml:2:5: not valid YAML: got a ': ' in a text without quotes, or "
         "a key that is indented too far"],
    ),
    "not YAML behind other faults": (
        "a: 1\na: 2\nb: 'c\n",
        [
            "a.yaml:2:1: a duplicate key: got 'a', first at line 1, expected each "
            "key once",
            "a.yaml:4:1: not valid YAML: got a quote that is not closed, in what "
            "began at line 3",
        ],
    ),
    "a tab as indentation": (
        "a:\n\tb: 1\n",
        ["a.yaml:2:1: not valid YAML: got a tab (indent with spaces)"],
    ),
    "a letter that has a meaning": (
        "a:\n- `x`\n",
        ["a.yaml:2:3: not valid YAML: got a text that begins with '`' (put it in "
         "quotes)"],
    ),
    "a list that goes on": (
        "a: [1,\n 2\nb: 3\n",
        ["a.yaml:3:2: not valid YAML: got a '[' that is not closed, in what began at "
         "line 1"],
    ),
    "too large": (
        b"#" * (MAX_BYTES + 1),
        ["a.yaml:1:1: file is too large: got 1,000,001 bytes, expected at most "
         "1,000,000"],
    ),
}  # fmt: skip


@pytest.mark.parametrize(("text", "expected"), REFUSED.values(), ids=REFUSED)
def test_what_is_no_plain_data_is_refused_where_it_stands(text, expected):
    assert faults(text) == expected


def test_largest_file_is_still_read():
    assert parse(b"#" * MAX_BYTES).value is None


def test_first_of_two_duplicates_stays():
    document = parse("a: 1\na: 2\nb: 3\n")
    assert document.value == {"a": 1, "b": 3}
    assert document.mark(("a",)) == (1, 4)


def nested(open_: str, close: str, levels: int) -> str:
    return open_ * levels + "x" + close * levels


DEEP = {
    "brackets": ("[", "]"),
    "braces": ("{a: ", "}"),
    "dashes": ("- ", ""),
}


@pytest.mark.parametrize(("open_", "close"), DEEP.values(), ids=DEEP)
def test_nesting_has_a_limit(open_, close):
    assert faults(nested(open_, close, MAX_DEPTH)) == []
    [fault] = faults(nested(open_, close, MAX_DEPTH + 1))
    column = len(open_) * MAX_DEPTH + 1
    assert fault == f"a.yaml:1:{column}: nested too deep: expected at most 32 levels"


LAUGHS = "a0: &a0 [lol]\n" + "".join(
    f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 10)
)
MERGES = "a0: &a0 {x: 1}\n" + "".join(
    f"a{n}: &a{n} {{<<: [{', '.join([f'*a{n - 1}'] * 10)}]}}\n" for n in range(1, 10)
)
BOMBS = {
    "billion laughs": (LAUGHS, "an alias: got '*a8'"),
    "merge keys": (MERGES, "a merge key"),
    "50,000 brackets": ("[" * 50_000, "nested too deep"),
    "50,000 braces": ("{" * 50_000, "nested too deep"),
    "50,000 mappings": ("{a: " * 50_000, "nested too deep"),
    "50,000 lists": ("- " * 50_000, "nested too deep"),
    "50,000 complex keys": ("? " * 50_000, "nested too deep"),
    "50,000 tags": ("- !a b\n" * 50_000, "a tag"),
    "a key a megabyte long": ("a" * 900_000 + ": 1", ""),
    "a number a megabyte long": ("a: " + "1" * 900_000, ""),
    "a float a megabyte long": ("a: 0." + "1" * 900_000, ""),
}


@pytest.mark.parametrize(("text", "message"), BOMBS.values(), ids=BOMBS)
def test_bomb_ends_in_messages(text, message):
    # In a child process with little memory: what is feared is a crash or a hang.
    program = (
        "import resource, sys\n"
        "resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))\n"
        "from readerkit.errors import ContentError\n"
        "from readerkit.content.strict_yaml import parse_yaml\n"
        "try: faults = parse_yaml(sys.stdin.buffer.read(), 'a.yaml').faults\n"
        "except ContentError as error: faults = error.faults\n"
        "print(*faults, sep='\\n')\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        input=text.encode(),
        capture_output=True,
        timeout=WAIT_S,
    )
    assert done.returncode == 0, done.stderr.decode()[-500:]
    assert message in done.stdout.decode()


MARKED = """\
- id: first
  at: {file: a.py,
       nth: 2}
- [x, é: y]
"""
MARKS = {
    "the document": ((), (1, 1)),
    "an entry": ((0,), (1, 3)),
    "a value": ((0, "id"), (1, 7)),
    "a flow mapping": ((0, "at"), (2, 7)),
    "a value on a later line": ((0, "at", "nth"), (3, 13)),
    "an item": ((1, 0), (4, 4)),
    "a value behind wide letters": ((1, 1, "é"), (4, 10)),
    "a missing key gets its parent's place": ((0, "at", "file", "x", 3), (2, 14)),
}


@pytest.mark.parametrize(("path", "mark"), MARKS.values(), ids=MARKS)
def test_every_value_knows_its_line_and_column(path, mark):
    assert parse(MARKED).mark(path) == mark


def test_keys_have_places_of_their_own():
    document = parse(MARKED)
    assert document.key_mark((0, "at", "nth")) == (3, 8)
    assert document.key_mark((0, "at", "missing")) == document.mark((0, "at"))
    fault = document.fault((0, "id"), "what", "this", "that")
    assert str(fault) == "a.yaml:1:7: what: got this, expected that"


# --- files made to hurt: refused before anything has grown ---

LARGE = {
    "small flow maps": b"- {a: 1}\n" * 30_000,
    "small block maps": b"- a: 1\n  b: 2\n" * 30_000,
    "empty maps": b"- {}\n" * 160_000,
    "empty maps on one line": b"[" + b"{}," * 330_000 + b"]",
    "empty lists": b"[" + b"[]," * 330_000 + b"]",
    "scalars": b"[" + b"a," * 490_000 + b"]",
    "nothings": b"-\n" * 490_000,
    "keys": b"".join(b"k%d: 1\n" % i for i in range(80_000)),
    "duplicate keys": b"a: 1\n" * 190_000,
    "anchors": b"".join(b"- &a%d 1\n" % i for i in range(80_000)),
    "aliases": b"- &a 1\n" + b"- *a\n" * 180_000,
    "tags": b"- !!str 1\n" * 90_000,
}
DEEP = {
    "lists": b"[" * 900_000,
    "maps": b"{a: " * 200_000,
    "block maps": b"".join(b" " * i + b"a:\n" for i in range(1_300)),
    "dashes": b"- " * 400_000,
    "keys that are maps": b"? " * 400_000,
}


@pytest.mark.parametrize("data", LARGE.values(), ids=LARGE)
def test_file_of_too_many_values_is_refused_where_they_begin_to_be(data):
    with pytest.raises(ContentError) as refused:
        parse_yaml(data, "f.yaml")
    too_many = [f for f in refused.value.faults if f.what == "too many values"]
    assert [f.expected for f in too_many] == [
        "at most 10,000: make several files of it"
    ]
    assert len(refused.value.faults) <= 2 * MAX_VALUES + 1


@pytest.mark.parametrize("data", DEEP.values(), ids=DEEP)
def test_file_nested_without_end_is_refused_at_its_depth(data):
    with pytest.raises(ContentError) as refused:
        parse_yaml(data, "f.yaml")
    assert refused.value.faults[-1].what == "nested too deep"


def test_most_values_are_still_read():
    data = b"- a\n" * (MAX_VALUES - 1)
    assert len(parse_yaml(data, "f.yaml").value) == MAX_VALUES - 1


@pytest.mark.parametrize(
    "data",
    [
        b"a: " + b"x" * 990_000,
        b'a: "' + b"\\u0041" * 160_000 + b'"',
        b"a: |\n" + b"  x\n" * 240_000,
        b"a: " + b"x\n  " * 240_000,
        b"# x\n" * 240_000 + b"a: b",
        b"\n" * 990_000 + b"a: b",
    ],
)
def test_one_long_value_is_one_value(data):
    assert list(parse_yaml(data, "f.yaml").value) == ["a"]
