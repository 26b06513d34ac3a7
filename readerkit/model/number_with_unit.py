"""Quantities as people type them: "3 GiB", "1.5e3 MB", "7B", "16 * 2 GB", "5 minutes".

The one reader of a number with a unit, for answers of the quiz and for options of the
command line. GB is 10^9 bytes and GiB 2^30: the table keeps them apart. A ``b`` without
the rest of its word is refused where it may be a slip, as in an answer, and a bit where
only bits and bytes are asked, as in 400Gb/s.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from readerkit.errors import ReaderkitError
from readerkit.model.expression import evaluate
from readerkit.model.language import Told
from readerkit.wording.numbers import BINARY_PREFIXES, DECIMAL, SECONDS_PER_DAY

if TYPE_CHECKING:
    from fractions import Fraction

_WORDS = (
    *("kilo", "mega", "giga", "tera", "peta", "exa"),
    *("kibi", "mebi", "gibi", "tebi", "pebi", "exbi"),
)
_PREFIXES = {**DECIMAL, **BINARY_PREFIXES}
_SCALES = {"": 1, **_PREFIXES}
MEGA = 10**6


def _table() -> dict[str, tuple[str, float]]:
    units: dict[str, tuple[str, float]] = {
        "": ("ratio", 1),
        "x": ("ratio", 1),
        "million": ("ratio", 1e6),
        "billion": ("ratio", 1e9),
        "%": ("ratio", 0.01),
        "ns": ("time", 1e-9),
        "us": ("time", 1e-6),
        "ms": ("time", 1e-3),
        "s": ("time", 1),
        "min": ("time", 60),
        "h": ("time", 3_600),
        "days": ("time", SECONDS_PER_DAY),
        "weeks": ("time", 7 * SECONDS_PER_DAY),
        "years": ("time", 365.25 * SECONDS_PER_DAY),
        "GPU-hours": ("device time", 1),
        "$": ("money", 1),
        "cents": ("money", 0.01),
        "elements": ("elements", 1),
        "parameters": ("parameters", 1),
        "B/param": ("bytes per parameter", 1),
    }
    for prefix, factor in _SCALES.items():
        for sign, size in ("B", factor), ("bit", factor / 8):
            units[f"{prefix}{sign}"] = ("bytes", size)
            units[f"{prefix}{sign}/s"] = ("bytes per second", size)
    for prefix, factor in {"": 1, **DECIMAL, "Z": 10**21}.items():
        units[f"{prefix}FLOP"] = ("operations", factor)
        units[f"{prefix}FLOP/s"] = ("operations per second", factor)
    return units


UNITS: Mapping[str, tuple[str, float]] = _table()
"""Unit to its dimension, and how many of the dimension's first unit it is."""

_SPELLINGS = {
    "ns": "nanoseconds,nanosecond,nanosegundos,nanosegundo",
    "us": "µs,μs,usec,microseconds,microsecond,microsegundos,microsegundo",
    "ms": "msec,milliseconds,millisecond,milisegundos,milisegundo",
    "s": "seconds,second,sec,secs,segundos,segundo,seg",
    "min": "minutes,minute,mins,minutos,minuto",
    "h": "hours,hour,hr,hrs,horas,hora",
    "days": "day,d,días,día,dias,dia",
    "weeks": "week,semanas,semana",
    "years": "year,años,año",
    "x": "times,veces",
    "billion": "miles de millones",
    "%": "percent,per cent,pct,points,percentage points,pp,por ciento,puntos",
    "$": "usd,dollars,dollar,us$,dólares,dólar,dolares,dolar",
    "cents": "cent,centavos,centavo",
    "FLOP": "flop,flops",
    "TFLOP": "tflops",
    "GPU-hours": "gpu-hours,gpu hours,gpu-h,gpuh,gpu h,gpu·h,horas de gpu,gpu-horas",
    "elements": "element,elementos,elemento",
    "parameters": "params,parameter,param,weights,parámetros,parámetro,parametros"
    ",pesos",
    "B/param": "b/param,bytes/param,bytes per parameter,b/parameter",
}
_SIZES = {
    f"{prefix}{word}{rate}": f"{sign}{unit}{rate}"
    for sign, said in {"": "", **dict(zip(_PREFIXES, _WORDS, strict=True))}.items()
    for prefix in (sign.lower(), said)
    for word, unit in (("byte", "B"), ("bytes", "B"), ("bit", "bit"), ("bits", "bit"))
    for rate in ("", "/s")
    if f"{prefix}{word}" != f"{sign}{unit}"
}
"""As gigabytes, Gbytes and Gbits are typed, in a second or not."""
ALIASES = {
    **_SIZES,
    **{f"{prefix.lower()}b": f"{prefix}B" for prefix in BINARY_PREFIXES},
    **{f"K{unit}": f"k{unit}" for unit in ("B", "B/s", "bit", "bit/s")},
    **{alias: unit for unit, row in _SPELLINGS.items() for alias in row.split(",")},
}

_ABOUT = re.compile(
    r"\s*(?:[~≈=]|about\b|approx(?:imately|\.)?|circa\b|ca\.|roughly\b)\s*",
    re.IGNORECASE,
)
_QUANTITY = re.compile(
    r"\s*(?P<money>((US)?\$|USD\b))?\s*"
    # An x multiplies between numbers only; alone it is a unit.
    r"(?P<number>([-+*/^()\d.,_\s×·⋅\u2212²³⁻⁰¹⁴-⁹]|(?<=[\d.])[eE][-+]?(?=\d)|"
    r"(?<=[\d\s)])[x](?=\s*[\d(]))*[\d.)²³⁰¹⁴-⁹])"
    r"\s*(?P<unit>[^\d\s].*?)?\s*"
)
_RAISED = re.compile(r"⁻?[⁰¹²³⁴-⁹]+")
RAISED_DIGITS = str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789")
_PER_SECOND = re.compile(r"(\s*/\s*s(ec(ond)?)?|\s+per\s+s(ec(ond)?)?|(?<=[Bbt])ps)$")
_COUNT_WORDS = {
    "k K thousand": 1e3,
    "M mn million millions millones": 1e6,
    "b B bn billion billions": 1e9,
    "T tn trillion trillions": 1e12,
}
COUNTS = {word: each for row, each in _COUNT_WORDS.items() for word in row.split()}
_COUNTED = re.compile(rf"({'|'.join(sorted(COUNTS, key=len, reverse=True))})(\s.*)?")
MAY_BE_COUNTED = {"ratio", "parameters", "elements", "money", "device time"}
"""Dimensions in which a B is a billion: nothing there is measured in bytes."""

_MOST = 1e100
"""What is read stays below it, so that no unit makes it infinite."""
_WITH_COMMA = re.compile(r"[\d.]*,[\d.,]*")
_THOUSANDS = re.compile(r"[1-9]\d{0,2}(,\d{3})+(\.\d*)?")
_BITS = re.compile("((?:[KMGTPE]i?)?)b(/s)?")
_SMALL_B = re.compile(r"(?P<prefix>[kmgtpe]?i?)b(?P<rate>/s)?", re.IGNORECASE)

PATTERNS = {
    "about": _ABOUT,
    "quantity": _QUANTITY,
    "raised": _RAISED,
    "per_second": _PER_SECOND,
    "counted": _COUNTED,
    "with_comma": _WITH_COMMA,
    "thousands": _THOUSANDS,
    "small_b": _SMALL_B,
}
"""By which a quantity is read, on a page too."""


class QuantityError(ReaderkitError):
    """Text that is no quantity, or has a unit that nobody knows."""


class UnitError(QuantityError):
    """A number with a unit that nobody knows."""


class BitOrByteError(UnitError):
    """A unit of which nobody can say whether it is of bits or of bytes."""


@dataclass(frozen=True, slots=True)
class TypedQuantity:
    """A number as it was typed, and its unit; empty where none was given."""

    number: float
    unit: str
    is_computed: bool = False
    """Whether it was more than digits: what was understood is worth saying."""
    digits: str = field(default="", repr=False, compare=False)
    """The number where it was no more, as Python reads it."""
    times: float = field(default=1, repr=False, compare=False)
    """What a word such as million multiplies it by."""

    def exact(self) -> Fraction:
        """Return the number as it was typed: 0.1 is a tenth, and no float beside it."""
        from fractions import Fraction  # no answer of the quiz needs it

        if not self.digits:
            return Fraction(self.number)
        return Fraction(self.digits) * Fraction(self.times)


def parse_quantity(
    text: str,
    *,
    expected: str = "a number and a unit: 41.7 GB",
    to: str = "B",
    b_is_bit: bool = False,
) -> TypedQuantity:
    """Return the quantity that a reader typed; ``to`` is the unit that was asked for.

    With ``b_is_bit`` 400Gb are bits; without, a small b is asked about.

    >>> parse_quantity("1,120 GB")
    TypedQuantity(number=1120.0, unit='GB', is_computed=False)
    >>> parse_quantity("3*2^-4")
    TypedQuantity(number=0.1875, unit='', is_computed=True)

    Raises:
        QuantityError: no number, or a unit that is not in the table.
    """
    for number in _WITH_COMMA.findall(text[:200]):
        if not _THOUSANDS.fullmatch(number):
            raise QuantityError(
                Told(
                    "got '{got}', expected a decimal point, and commas between "
                    "thousands only: 138.46 or 1,120",
                    got=text[:60],
                )
            )
    rest = _ABOUT.sub("", text, count=1) if _ABOUT.match(text[:200]) else text
    match = _QUANTITY.fullmatch(rest.rstrip(" .")) if len(text) < 200 else None
    number = None if match is None else _computed(match["number"])
    if match is None or number is None:
        raise QuantityError(
            Told("got '{got}', expected {expected}", got=text[:60], expected=expected)
        )
    unit = (match["unit"] or ("$" if match["money"] else "")).strip()
    counted = dimension(to) in MAY_BE_COUNTED and _COUNTED.fullmatch(unit)
    times = COUNTS[counted[1]] if counted else 1
    if counted:
        number, unit = number * times, (counted[2] or "").strip()
        number = float(f"{number:.12g}")  # 8.7 billion, not 8699999999.999999
    known = find_unit(unit, b_is_bit=b_is_bit)
    is_ratio = dimension(to) == "ratio"
    # Where a number is asked for, what is counted stands in the question.
    if is_ratio and dimension(known) in ("parameters", "elements"):
        known = ""
    if counted and is_ratio and not known:
        known = "x"  # what it says is the whole of it, also where millions are asked
    typed = match["number"].strip()
    is_computed = not re.fullmatch(r"[-+]?[\d.,_]+", typed) or bool(counted)
    digits = _without_commas(typed)
    is_number = re.fullmatch(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?", digits, re.A)
    return TypedQuantity(number, known, is_computed, digits if is_number else "", times)


def _computed(text: str) -> float | None:
    """Return the value of arithmetic on numbers; None where it is none."""
    text = _RAISED.sub(lambda raised: f"**{raised[0].translate(RAISED_DIGITS)}", text)
    text = text.replace("^", "**").replace("⋅", "*").replace("x", "*")
    text = _without_commas(text)
    text = re.sub(r"(?<![\d.])0+(?=\d)", "", text).strip()
    if re.search(r"[-+]\s*[-+]|(?<![\d.])0+\*\d", text):  # or 0x1F, which is no product
        return None
    try:
        number = float(evaluate(text, {}, {}))
    except (ReaderkitError, OverflowError):
        return None
    return number if abs(number) < _MOST else None


def _without_commas(text: str) -> str:
    return re.sub(r"(?<=\d)([,\u00a0\u2009\u202f](?=\d{3})|_(?=\d))", "", text)


def find_unit(text: str, *, b_is_bit: bool = False) -> str:
    """Return the name in the table for a unit as it was typed.

    Raises:
        QuantityError: no such unit.
    """
    text = _PER_SECOND.sub("/s", text) if text else text
    if b_is_bit and (bits := _BITS.fullmatch(text)):
        text = f"{bits[1]}bit{bits[2] or ''}"
    if text in UNITS:
        return text
    known = ALIASES.get(text)
    if known is None and (meant := _small_b(text)):
        raise BitOrByteError(
            Told("got the unit '{got}', expected {expected}", got=text, expected=meant)
        )
    known = known or ALIASES.get(text.lower())
    if known is None:
        raise UnitError(
            Told(
                "unknown unit '{unit}': expected one such as GB, GiB, MB, ms, s, h, "
                "%, $",
                unit=text,
            )
        )
    return known


def _small_b(text: str) -> str:
    """Return the units that a small b can mean: a bit by rule, often a byte."""
    match = _SMALL_B.fullmatch(text)
    if match is None or text == text.upper():
        return ""
    prefix, rate = match["prefix"].lower(), match["rate"] or ""
    prefix = prefix if prefix == "k" else prefix.capitalize()
    in_bytes = f"{prefix}B{rate}"
    in_bits = f"{prefix}bit{rate}"
    known = [Told("{unit} for bytes", unit=in_bytes)] if in_bytes in UNITS else []
    known += [Told("{unit} for bits", unit=in_bits)] if in_bits in UNITS else []
    if len(known) == 2:
        return Told("{one} or {other}", one=known[0], other=known[1])
    return known[0] if known else ""


def dimension(unit: str) -> str:
    """Return the dimension of a unit of the table."""
    return UNITS[unit][0]


def convert(number: float, unit: str, to: str) -> float:
    """Return a number in another unit of the same dimension."""
    return number * UNITS[unit][1] / UNITS[to][1]


def may_be_billions(given: TypedQuantity, to: str) -> bool:
    """Tell whether a B may be a billion: ``16 * 7B`` where GB are asked.

    Nobody counts a single byte there, so it is no answer in bytes.
    """
    is_large = dimension(to) == "bytes" and UNITS[to][1] >= MEGA
    return is_large and given.unit == "B" and abs(given.number) < MEGA


def binary_twin(unit: str) -> str | None:
    """Return GiB for GB and GB for GiB; None for what has no such twin."""
    if dimension(unit) not in ("bytes", "bytes per second"):
        return None
    head, _, tail = unit.partition("B")
    twin = head[:-1] if head.endswith("i") else f"{head.upper()}i" if head else ""
    twin = "k" if twin == "K" else twin
    name = f"{twin}B{tail}"
    return name if head and name in UNITS and name != unit else None
