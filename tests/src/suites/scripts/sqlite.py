"""SQLite on a file system: sqlite.py DIRECTORY LOCAL ROWS

Makes a database with each kind of journal, with the statements of a small accounting program, and
compares it with the same database on a local disk.
"""

import os
import random
import sqlite3
import sys


def check(database):
    found = database.execute("PRAGMA integrity_check").fetchall()
    if found != [("ok",)]:
        raise SystemExit(f"integrity_check: {found}")


def fill(path, journal, rows):
    chooser = random.Random(7)
    database = sqlite3.connect(path, isolation_level=None)
    database.execute(f"PRAGMA journal_mode={journal}")
    database.execute("CREATE TABLE entry (id INTEGER PRIMARY KEY, account INTEGER, text TEXT)")
    for start in range(0, rows, 1000):
        database.execute("BEGIN")
        for number in range(start, min(start + 1000, rows)):
            text = "x" * chooser.randrange(200)
            database.execute("INSERT INTO entry VALUES (?, ?, ?)", (number, number % 97, text))
        database.execute("COMMIT")
    database.execute("CREATE INDEX by_account ON entry (account, text)")
    for _ in range(20):
        number = chooser.randrange(rows)
        database.execute("UPDATE entry SET text = ? WHERE id = ?", (f"changed {number}", number))
    database.execute("BEGIN")
    database.execute("DELETE FROM entry WHERE account < 50")
    database.execute("ROLLBACK")
    database.execute("DELETE FROM entry WHERE account = 3")
    check(database)
    database.execute("VACUUM")
    check(database)
    database.close()


def content(path):
    database = sqlite3.connect(path)
    check(database)
    rows = database.execute("SELECT account, count(*), sum(length(text)) FROM entry GROUP BY 1")
    result = rows.fetchall(), database.execute("SELECT sum(id) FROM entry").fetchone()
    database.close()
    return result


def main():
    directory, local, rows = sys.argv[1], sys.argv[2], int(sys.argv[3])
    expected = os.path.join(local, "expected.sqlite")
    fill(expected, "memory", rows)
    for journal in ("delete", "truncate", "persist", "wal"):
        path = os.path.join(directory, f"{journal}.sqlite")
        fill(path, journal, rows)
        if content(path) != content(expected):
            raise SystemExit(f"{journal}: the database differs")


main()
