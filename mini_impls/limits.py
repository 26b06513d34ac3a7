"""What a run may ask for; what it may not is refused before any process starts."""

LONGEST_S = 365 * 24 * 3600.0
"""The longest timeout: far beyond it clocks overflow, in Python and in the store."""


def check_timeout(timeout_s: float) -> None:
    """Raise ValueError for a time that no clock can wait for."""
    if not timeout_s > 0:
        raise ValueError(f"--timeout {timeout_s} is not above 0")
    if timeout_s > LONGEST_S:
        raise ValueError(f"--timeout {timeout_s} is above {LONGEST_S:.0f}, a year")
