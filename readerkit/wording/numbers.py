"""Numbers with their units or nouns, as terminal, pages and exports say them.

Decimal steps (kB, MB, GB) are of 1000, binary ones (KiB, MiB, GiB) of 1024. A number is
rounded once, and the unit is chosen after that: 999,999 bytes are ``1 MB``.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite

DECIMAL = {letter: 1000**power for power, letter in enumerate("kMGTPE", 1)}
BINARY_PREFIXES = {f"{letter}i": 1024**n for n, letter in enumerate("KMGTPE", 1)}
BYTES = ("B", "kB", "MB", "GB", "TB", "PB", "EB")
BINARY = ("B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")
RATES = ("B/s", "kB/s", "MB/s", "GB/s", "TB/s", "PB/s")
FLOP_RATES = tuple(f"{letter}FLOP/s" for letter in ("", *"kMGTPE"))
SECONDS = ("ns", "µs", "ms", "s")
SECONDS_PER_DAY = 86_400


def format_bytes(value: float, decimals: int | None = None) -> str:
    """Return bytes in 10^3n, with three digits or so many decimals.

    >>> format_bytes(65_536), format_bytes(999_999), format_bytes(65_536, 2)
    ('65.5 kB', '1 MB', '65.54 kB')
    """
    return _scaled(value, 1000, BYTES, decimals)


def format_binary(value: float, decimals: int | None = None) -> str:
    """Return bytes in 2^10n.

    >>> format_binary(65_536), format_binary(1_048_575)
    ('64 KiB', '1 MiB')
    """
    return _scaled(value, 1024, BINARY, decimals)


def format_rate(value: float, decimals: int | None = None) -> str:
    """Return bytes in a second.

    >>> format_rate(450e9), format_rate(1.5e6, 2)
    ('450 GB/s', '1.50 MB/s')
    """
    return _scaled(value, 1000, RATES, decimals)


def format_flop_rate(value: float, decimals: int | None = None) -> str:
    """Return FLOPs in a second.

    >>> format_flop_rate(989.4e12, 1)
    '989.4 TFLOP/s'
    """
    return _scaled(value, 1000, FLOP_RATES, decimals)


def format_flops(value: float) -> str:
    """Return FLOPs, as papers write them.

    >>> format_flops(4.304e23)
    '4.304e+23 FLOPs'
    """
    return f"{value:.4g} FLOPs"


def format_seconds(value: float, decimals: int | None = 2) -> str:
    """Return a time in the largest unit of which there is one.

    >>> format_seconds(0.04375), format_seconds(0.999999), format_seconds(0)
    ('43.75 ms', '1.00 s', '0.00 s')
    """
    if not value:
        return f"{0:.{decimals}f} s"
    return _scaled(value * 10**9, 1000, SECONDS, decimals)


def format_milliseconds(value: float) -> str:
    """Return a time in milliseconds, however long: the marks of one scale are alike.

    >>> format_milliseconds(2.5)
    '2500 ms'
    """
    milliseconds = value * 1e3
    return f"{milliseconds:g} ms"


def format_share(value: float, decimals: int = 2) -> str:
    """Return a share in per cent.

    >>> format_share(0.12345), format_share(0.5, 0)
    ('12.35%', '50%')
    """
    return f"{value:.{decimals}%}"


def format_billions(value: float) -> str:
    """Return a count in 10^9, as models are named.

    >>> format_billions(6_738_415_616)
    '6.74 B'
    """
    return f"{value / 1e9:,.2f} B"


def format_number(value: float) -> str:
    """Return a number with as many digits as tell it apart from its neighbours.

    >>> format_number(2.9856958389282227), format_number(13), format_number(9.5e-07)
    ('2.985696', '13', '9.5e-07')
    """
    if isinstance(value, int) or (isfinite(value) and value == int(value)):
        return f"{value:,.0f}"
    return f"{value:.7g}"


def format_digits(value: float) -> str:
    """Return a number with three digits, or all that stand before the point.

    >>> format_digits(2.98569), format_digits(989.4), format_digits(12_345.6)
    ('2.99', '989', '12,346')
    """
    return _rounded(value, None)


def counted(number: int, noun: str, nouns: str = "") -> str:
    """Return a number with its noun in the right form.

    >>> counted(1, "file"), counted(1200, "file"), counted(2, "entry", "entries")
    ('1 file', '1,200 files', '2 entries')
    """
    return f"{number:,} {noun if number == 1 else nouns or noun + 's'}"


def _scaled(value: float, step: int, units: Sequence[str], decimals: int | None) -> str:
    if not isfinite(value):
        return f"{value} {units[0]}"
    for power, unit in enumerate(units):
        last = unit == units[-1]
        exact = value / step**power if power else value
        text = _rounded(exact, decimals if power else _few(value, decimals))
        if last or abs(float(text.replace(",", ""))) < step:
            return f"{text} {unit}"
    raise AssertionError("the last unit takes any number")


def _few(value: float, decimals: int | None) -> int | None:
    """Return the decimals of a number in its base unit: none where it is whole."""
    return 0 if value == int(value) else decimals


def _rounded(value: float, decimals: int | None) -> str:
    if decimals is not None:
        return f"{value:,.{decimals}f}"
    size = float(f"{abs(value):.2e}")  # three digits: 9.996 has one decimal, as 10.0
    if size < 1:
        return f"{value:.3g}"
    text = f"{value:,.{0 if size >= 100 else 1 if size >= 10 else 2}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text
