"""The ledger: what is reserved and spent, in one SQLite file.

Checking a ceiling and reserving under it are one transaction that locks the file, so
that two processes cannot both pass. A reservation that is never settled stays. A ledger
that is missing, locked, damaged, of another kind, or on a full disk refuses; none is
ever made anew by itself, because an empty ledger would allow everything again.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path

from readerkit.budget.money import Job, show_usd
from readerkit.budget.running_entries import check_ended
from readerkit.budget.spending_ceiling import Ceilings, Reservation, Room, check_room
from readerkit.errors import BudgetError, JobError, LedgerTakenError
from readerkit.system.private_files import make_database, tighten
from readerkit.wording.next_command import typed

APPLICATION_ID = 0x72646B62
VERSION = 1
LOCK_WAIT_SECONDS = 10.0
MAX_CENTS = 10**9

_RAISED = "CREATE TABLE raised (reason TEXT NOT NULL, at TEXT NOT NULL) STRICT"
"""Only in a ledger whose ceilings someone raised above the default, and why."""

_SCHEMA = f"""
PRAGMA application_id = {APPLICATION_ID};
PRAGMA user_version = {VERSION};
CREATE TABLE ceilings (
    phase TEXT NOT NULL,
    phase_cents INTEGER NOT NULL CHECK (phase_cents > 0),
    lab_cents INTEGER NOT NULL CHECK (lab_cents > 0)
) STRICT;
CREATE TABLE entries (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    lab TEXT,
    what TEXT NOT NULL,
    command TEXT NOT NULL,
    price_source TEXT NOT NULL,
    price_dated TEXT NOT NULL,
    limit_seconds INTEGER NOT NULL CHECK (limit_seconds > 0),
    reserved_cents INTEGER NOT NULL CHECK (reserved_cents > 0),
    reserved_at TEXT NOT NULL,
    actual_cents INTEGER CHECK (actual_cents >= 0),
    seconds REAL,
    exit_code INTEGER,
    settled_at TEXT,
    note TEXT,
    CHECK ((actual_cents IS NULL) = (settled_at IS NULL))
) STRICT;
"""


class Ledger:
    """A ledger file. Every call opens it, does one thing whole, and closes it."""

    def __init__(self, path: Path, *, lock_wait: float = LOCK_WAIT_SECONDS) -> None:
        self.path = path
        self._lock_wait = lock_wait

    # --- opening ---

    def create(self, ceilings: Ceilings) -> None:
        """Make a new ledger, whole or not at all.

        Raises:
            BudgetError: there is one already, ceilings above the default without a
                reason, or the disk refuses.
        """
        for name, cents in (
            ("phase ceiling", ceilings.phase_cents),
            ("lab ceiling", ceilings.lab_cents),
        ):
            if not 0 < cents <= MAX_CENTS:
                raise BudgetError(
                    f"{name}: got {show_usd(cents)}, expected more than $0"
                )
        reason = (ceilings.raised_because or "").strip()
        if ceilings.are_raised and not reason:
            default = Ceilings()
            raise BudgetError(
                f"ceilings: got {show_usd(ceilings.phase_cents)} for the phase and "
                f"{show_usd(ceilings.lab_cents)} for a lab, expected at most "
                f"{show_usd(default.phase_cents)} and {show_usd(default.lab_cents)}; "
                "to spend more, say why, which is recorded: --raise-because REASON"
            )
        aside = self.path.with_name(f".{self.path.name}.{_now().timestamp()}.aside")
        try:
            make_database(aside)
            with closing(sqlite3.connect(aside)) as connection:
                connection.executescript(_SCHEMA)
                connection.execute(
                    "INSERT INTO ceilings VALUES (?, ?, ?)",
                    (ceilings.phase, ceilings.phase_cents, ceilings.lab_cents),
                )
                if ceilings.are_raised:
                    connection.execute(_RAISED)
                    connection.execute(
                        "INSERT INTO raised VALUES (?, ?)",
                        (reason, _now().isoformat(timespec="seconds")),
                    )
                connection.commit()
            # A link, unlike a rename, never takes the place of a ledger that is there.
            self.path.hardlink_to(aside)
        except FileExistsError:
            raise LedgerTakenError(
                f"{self.path}: got a ledger that exists, expected none; it keeps what "
                "was spent, so it is not replaced"
            ) from None
        except (OSError, sqlite3.Error) as error:
            raise BudgetError(f"{self.path}: cannot make a ledger: {error}") from None
        finally:
            aside.unlink(missing_ok=True)

    @contextmanager
    def _open(self, *, write: bool) -> Iterator[sqlite3.Connection]:
        """Yield a connection inside one transaction; every refusal is a BudgetError."""
        if not self.path.is_file():
            raise BudgetError(
                f"{self.path}: got no ledger, expected one; nothing is spent without "
                "it; make it with " + typed("budget", "ledger", "--create")
            )
        try:
            with closing(self._connect()) as connection:
                self._check(connection)
                connection.execute("BEGIN IMMEDIATE" if write else "BEGIN")
                yield connection
                connection.commit()
        except sqlite3.Error as error:
            raise BudgetError(f"{self.path}: {_explain(error)}") from None

    def _connect(self) -> sqlite3.Connection:
        tighten(self.path)
        uri = f"{self.path.absolute().as_uri()}?mode=rw"
        connection = sqlite3.connect(
            uri, uri=True, timeout=self._lock_wait, isolation_level=None
        )
        connection.execute("PRAGMA synchronous = FULL")
        return connection

    def _check(self, connection: sqlite3.Connection) -> None:
        for pragma, expected in (
            ("application_id", APPLICATION_ID),
            ("user_version", VERSION),
        ):
            (got,) = connection.execute(f"PRAGMA {pragma}").fetchone()
            if got != expected:
                raise BudgetError(
                    f"{self.path}: got a file with {pragma} {got}, expected the "
                    f"ledger's {expected}: it is damaged, or no ledger of this version"
                )
        found = connection.execute("PRAGMA quick_check(1)").fetchone()
        if found != ("ok",):
            raise BudgetError(
                f"{self.path}: got a damaged ledger ({found[0]}), expected a whole "
                "one; bring back a copy of it"
            )

    # --- reading ---

    def ceilings(self) -> Ceilings:
        """Return the spending ceilings.

        Raises:
            BudgetError: a ledger that cannot be read.
        """
        with self._open(write=False) as connection:
            return self._ceilings(connection)

    def entries(self) -> list[Reservation]:
        """Return all reservations, oldest first.

        Raises:
            BudgetError: a ledger that cannot be read.
        """
        with self._open(write=False) as connection:
            rows = connection.execute("SELECT * FROM entries ORDER BY id").fetchall()
        return [Reservation(*row) for row in rows]

    def rooms(self, lab: str | None) -> list[Room]:
        """Return the room under each ceiling, the tighter one first.

        Raises:
            BudgetError: a ledger that cannot be read.
        """
        with self._open(write=False) as connection:
            return self._rooms(connection, lab)

    def _ceilings(self, connection: sqlite3.Connection) -> Ceilings:
        rows = connection.execute("SELECT * FROM ceilings").fetchall()
        if len(rows) != 1:
            raise BudgetError(
                f"{self.path}: got {len(rows)} rows of ceilings, expected one: damaged"
            )
        phase, phase_cents, lab_cents = rows[0]
        known = "SELECT count(*) FROM sqlite_master WHERE name = 'raised'"
        if connection.execute(known).fetchone() != (0,):
            (reason,) = connection.execute("SELECT reason FROM raised").fetchone()
            return Ceilings(phase, phase_cents, lab_cents, reason)
        # Higher ones that nobody gave a reason for do not count.
        default = Ceilings()
        return Ceilings(
            phase,
            min(phase_cents, default.phase_cents),
            min(lab_cents, default.lab_cents),
        )

    def _rooms(self, connection: sqlite3.Connection, lab: str | None) -> list[Room]:
        ceilings = self._ceilings(connection)
        counted = "SELECT coalesce(sum(coalesce(actual_cents, reserved_cents)), 0)"
        (all_of_it,) = connection.execute(f"{counted} FROM entries").fetchone()
        rooms = [Room(f"phase {ceilings.phase}", ceilings.phase_cents, all_of_it)]
        if lab is not None:
            (of_lab,) = connection.execute(
                f"{counted} FROM entries WHERE lab = ?", (lab,)
            ).fetchone()
            rooms.append(Room(f"lab {lab}", ceilings.lab_cents, of_lab))
        return sorted(rooms, key=lambda room: room.left_cents)

    def check(self, job: Job) -> None:
        """Raise where a job would not fit now; reserving checks again.

        Raises:
            BudgetError: over a ceiling, which is named; or the ledger refuses.
        """
        check_room(job, self.rooms(job.lab)[0])

    # --- writing ---

    def reserve(self, job: Job, command: str) -> int:
        """Reserve a job's worst case and return the number of its entry.

        Raises:
            BudgetError: it does not fit under a ceiling, which is named; or the ledger
                refuses.
        """
        with self._open(write=True) as connection:
            check_room(job, self._rooms(connection, job.lab)[0])
            cursor = connection.execute(
                "INSERT INTO entries (lab, what, command, price_source, price_dated, "
                "limit_seconds, reserved_cents, reserved_at) "
                "VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    job.lab,
                    f"{job.instances} × {job.price.gpu} ({job.price.kind}) at "
                    f"{job.price.vendor}",
                    command,
                    job.price.source,
                    job.price.dated.isoformat(),
                    max(1, job.limit_seconds),
                    job.cost_cents,
                    _now().isoformat(timespec="seconds"),
                ),
            )
            assert cursor.lastrowid is not None
            return cursor.lastrowid

    def leave_open(
        self, entry: int, *, seconds: float, exit_code: int, note: str
    ) -> None:
        """Record how a run ended whose cost only the vendor's bill can tell.

        Raises:
            BudgetError: a ledger that refuses.
        """
        with self._open(write=True) as connection:
            connection.execute(
                "UPDATE entries SET seconds = ?, exit_code = ?, note = ? "
                "WHERE id = ? AND settled_at IS NULL",
                (seconds, exit_code, note, entry),
            )

    def settle(
        self,
        entry: int,
        actual_cents: int,
        *,
        seconds: float | None = None,
        exit_code: int | None = None,
        note: str | None = None,
    ) -> None:
        """Record what a reservation cost in the end; the rest of it is free again.

        Settling again corrects it; what was said before is kept in the note.

        Raises:
            BudgetError: no such reservation, one that still runs, or a ledger that
                refuses (the reservation stays then).
        """
        if isinstance(actual_cents, bool) or not 0 <= actual_cents <= MAX_CENTS:
            raise BudgetError(
                f"actual cost: got {actual_cents} cents, expected 0 or more"
            )
        with self._open(write=True) as connection:
            row = connection.execute(
                "SELECT actual_cents, note FROM entries WHERE id = ?", (entry,)
            ).fetchone()
            if row is None:
                raise JobError(
                    f"entry {entry}: got none of this number, expected a reservation "
                    f"to settle; {typed('budget', 'ledger')} lists them"
                )
            check_ended(self.path, entry)
            connection.execute(
                "UPDATE entries SET actual_cents = ?, "
                "seconds = coalesce(?, seconds), exit_code = coalesce(?, exit_code), "
                "settled_at = ?, note = ? WHERE id = ?",
                (
                    actual_cents,
                    seconds,
                    exit_code,
                    _now().isoformat(timespec="seconds"),
                    _join_notes(note, *row),
                    entry,
                ),
            )


def _join_notes(new: str | None, cents: int | None, old: str | None) -> str | None:
    """Return a note that keeps what an entry said before."""
    before = [] if cents is None else [f"corrected from {show_usd(cents)}"]
    return "; ".join([*filter(None, [new]), *before, *filter(None, [old])]) or None


def _explain(error: sqlite3.Error) -> str:
    text = str(error)
    # Of an extended code the first byte; what Python itself raises has none.
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return "got a ledger that another process holds, expected a free one; try again"
    if code == sqlite3.SQLITE_FULL:
        return "got a full disk, expected room for the ledger; nothing was reserved"
    if code == sqlite3.SQLITE_READONLY:
        return "got a ledger that cannot be written, expected a writable one"
    if code in (sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN):
        return f"got a disk that refuses ({text}), expected one that keeps the ledger"
    return f"got a damaged ledger ({text}), expected a whole one; bring back a copy"


def _now() -> datetime:
    return datetime.now(UTC)
