"""Processes that write to one SQLite database, each in separate transactions.

usage: database.py LABEL MODE PATH... MODE is a journal mode. Each PATH is the database as one
process sees it. Prints "database LABEL" and the result: ok, or the failures.
"""
import os
import sqlite3
import subprocess
import sys
import time

ROWS = 15
# Time for which SQLite waits for a lock, in seconds: short where two processes can wait for each
# other, and long enough for a busy machine otherwise.
LOCK_LIMIT = float(os.environ.get("LOCK_LIMIT", "1"))


def connect(path):
    return sqlite3.connect(path, timeout=LOCK_LIMIT)


def insert(path, name):
    """Inserts the rows, each in a transaction."""
    database = connect(path)
    for number in range(ROWS):
        with database:
            database.execute("insert into t values(?)", (f"{name}{number}",))


def run(mode, paths):
    """The failures of one process per path."""
    database = connect(paths[0])
    (chosen,) = database.execute(f"pragma journal_mode={mode}").fetchone()
    if chosen != mode:
        return [f"the journal mode is {chosen}"]
    database.execute("create table t(a)")
    database.commit()
    children = [
        subprocess.Popen([sys.executable, __file__, "insert", path, f"writer{number}-"],
                         stderr=subprocess.PIPE)
        for number, path in enumerate(paths)
    ]
    errors = [child.communicate()[1].decode().strip().splitlines()[-1:] for child in children]
    failures = [error for lines in errors for error in lines]
    (rows,) = database.execute("select count(distinct a) from t").fetchone()
    if rows != ROWS * len(paths):
        failures.append(f"{rows} rows")
    (check,) = database.execute("pragma integrity_check").fetchone()
    if check != "ok":
        failures.append(f"CORRUPT: {check}")
    return failures


def main():
    label, mode, *paths = sys.argv[1:]
    start = time.monotonic()
    try:
        failures = run(mode, paths)
    except sqlite3.Error as error:
        failures = [str(error)]
        if isinstance(error, sqlite3.DatabaseError) and "malformed" in str(error):
            failures.append("CORRUPT")
    seconds = time.monotonic() - start
    result = "; ".join(failures) or "ok"
    print(f"database {label} {result} ({seconds:.1f} s)", flush=True)


if sys.argv[1] == "insert":
    insert(*sys.argv[2:])
else:
    main()
