"""Opening Antfarm's database to read it, whatever its schema, and one clear line where that fails.

Antfarm keeps it in WAL mode. It is opened ``mode=ro`` and never ``immutable`` (that misses what is in
the WAL); no transaction stays open between reads (that would keep others from checkpointing); columns
are asked of the file (``PRAGMA table_info``), since older versions lack some and forks add others.
"""

from __future__ import annotations

import sqlite3
import stat
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType

SqlValue = str | int | float | None

# Readers of a WAL database never wait for writers; a lock is met only while it is recovered, copied over
# or held exclusively. The next look comes within a second, so waiting longer would only freeze this one.
BUSY_TIMEOUT_S = 0.25
TABLES = ("runs", "steps", "stories")
_NEEDED = frozenset({"id", "workflow_id", "status"})


class Unreadable(Exception):
    """A source cannot be read just now. The message is one line: what, where, and why."""


def connect_ro(path: Path) -> sqlite3.Connection:
    """Open the database for reading, in autocommit; bad UTF-8 in text becomes U+FFFD.

    Raises:
        Unreadable: absent, empty, no regular file, or not to be opened.
    """
    try:
        found = path.stat()
    except FileNotFoundError:
        raise Unreadable(f"no database at {path}") from None
    except (OSError, ValueError) as error:
        raise Unreadable(f"cannot reach the database {path}: {_reason(error)}") from None
    if not stat.S_ISREG(found.st_mode):
        raise Unreadable(f"{path} is no regular file, so no database")
    if found.st_size == 0:
        raise Unreadable(f"the database {path} is empty: Antfarm has made no tables in it yet")
    with readable(path):
        connection = sqlite3.connect(
            f"{path.absolute().as_uri()}?mode=ro",
            uri=True,
            timeout=BUSY_TIMEOUT_S,
            isolation_level=None,
            check_same_thread=False,
        )
        connection.text_factory = decode
        connection.execute("PRAGMA trusted_schema = OFF")
    return connection


def decode(raw: bytes) -> str:
    """UTF-8 with what is none replaced, so that one bad byte does not lose the whole read."""
    return raw.decode("utf-8", "replace")


@contextmanager
def readable(path: Path) -> Iterator[None]:
    """Turn SQLite's errors inside the block into `Unreadable`."""
    try:
        yield
    except sqlite3.Error as error:
        raise Unreadable(explain(error, path)) from error


@contextmanager
def snapshot(connection: sqlite3.Connection) -> Iterator[None]:
    """One consistent state of the database for all reads in the block; nothing stays open after it."""
    connection.execute("BEGIN")
    try:
        yield
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")


def explain(error: Exception, path: Path) -> str:
    """What an error of SQLite or the system means for the database at `path`, in one line."""
    words = _reason(error)
    code = (getattr(error, "sqlite_errorcode", None) or 0) & 0xFF
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return f"the database {path} is locked by another process"
    if code == sqlite3.SQLITE_NOTADB:
        return f"{path} is not an SQLite database"
    if code == sqlite3.SQLITE_CORRUPT:
        return f"the database {path} is corrupt ({words}); see: sqlite3 {path} 'PRAGMA integrity_check'"
    if code == sqlite3.SQLITE_CANTOPEN:
        return f"cannot open the database {path}: may it be read, and its folder be written to?"
    if code == sqlite3.SQLITE_READONLY:
        return (
            f"cannot read the database {path}: its -wal and -shm files need a folder that may be written to"
        )
    return f"cannot read the database {path}: {words}"


def columns_of(connection: sqlite3.Connection, table: str) -> frozenset[str]:
    """The table's column names in lower case; empty where there is no such table."""
    rows = connection.execute("SELECT name FROM pragma_table_info(?)", (table,)).fetchall()
    return frozenset(name.lower() for (name,) in rows)


def schema_of(connection: sqlite3.Connection, path: Path) -> Mapping[str, frozenset[str]]:
    """The columns of runs, steps and stories; those of an absent table are empty.

    Raises:
        Unreadable: no tables at all, or none that could be Antfarm's.
    """
    columns = {table: columns_of(connection, table) for table in TABLES}
    if not columns["runs"]:
        (tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
        if not tables:
            raise Unreadable(f"the database {path} is empty: Antfarm has made no tables in it yet")
        raise Unreadable(f"{path} is not Antfarm's database: it has no table runs")
    if missing := sorted(_NEEDED - columns["runs"]):
        raise Unreadable(f"{path} is not Antfarm's database: its table runs has no column {missing[0]}")
    return columns


def selection(
    columns: frozenset[str], wanted: Iterable[str], crops: Mapping[str, int] = MappingProxyType({})
) -> str:
    """A column list for SELECT in the order wanted, with NULL for what this schema lacks.

    Args:
        crops: characters to which a column is cut.
    """
    return ", ".join(
        f"NULL AS {name}"
        if name not in columns
        else f"substr({name}, 1, {crops[name]}) AS {name}"
        if name in crops
        else name
        for name in wanted
    )


def cell(value: object) -> SqlValue:
    """A cell as plain data: blobs are read as text."""
    if value is None or isinstance(value, (str, int, float)):  # a union costs twice as much
        return value
    return decode(value) if isinstance(value, bytes) else None


def text_of(value: object) -> str:
    """A cell as text, whatever its type; NULL is empty."""
    if isinstance(value, str):
        return value
    plain = cell(value)
    return "" if plain is None else str(plain)


def int_of(value: object, default: int = 0) -> int:
    """A cell as a whole number; `default` where it is none."""
    if isinstance(value, int):
        return value
    try:
        return int(float(text_of(value)))
    except (ValueError, OverflowError):
        return default


def _reason(error: Exception) -> str:
    words = getattr(error, "strerror", None) or str(error) or type(error).__name__
    return " ".join(str(words).split())
