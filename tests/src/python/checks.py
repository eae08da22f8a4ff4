"""Checks of a case, its figures and its end.

A case prints one line per check. Its exit code is 0 if every check holds, 1 if a check failed, and
77 if this machine cannot run the case.
"""

import json
import os
import sys
import time

# Whether the case runs at its full size: `cargo xtask test full`.
IS_FULL = os.environ.get("SMBEAM_TEST_SCALE") == "full"
# The file that receives the figures of the case as JSON; empty: no figures are measured.
FIGURES = os.environ.get("SMBEAM_CASE_FIGURES", "")
# The exit code of a case that this machine cannot run.
SKIPPED = 77
# Seconds that a condition may take to become true. No check measures speed.
LONG_LIMIT = 30

_failed = []
_figures = {}


def scaled(default, full):
    """`default` in a default run, `full` in a full run and where figures are measured."""
    return full if IS_FULL or FIGURES else default


def note(text):
    """Prints a fact that no check uses."""
    print(f"       {text}", flush=True)


def check(name, holds, detail=""):
    """Records a check, and returns whether it holds."""
    verdict = "ok    " if holds else "FAILED"
    print(f"{verdict} {name}" + (f": {detail}" if detail != "" else ""), flush=True)
    if not holds:
        _failed.append(name)
    return holds


def check_equal(name, actual, expected):
    """Checks that two values are equal."""
    if actual == expected:
        return check(name, True, short(actual))
    return check(name, False, f"{short(actual)}, expected {short(expected)}")


def check_one_of(name, actual, expected):
    """Checks that a value is among the expected ones."""
    detail = short(actual) if actual in expected else f"{short(actual)}, expected one of {expected}"
    return check(name, actual in expected, detail)


def check_at_most(name, actual, limit):
    """Checks that a number does not exceed its limit."""
    return check(name, actual <= limit, f"{actual:,.0f}, at most {limit:,.0f}")


def short(value):
    """A value as text of limited length."""
    text = repr(value)
    return text if len(text) <= 300 else text[:300] + "..."


def wait_until(condition, limit=LONG_LIMIT):
    """Waits until `condition()` is true. Returns false after `limit` seconds."""
    end = time.monotonic() + limit
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.05)
    return True


def figure(name, value):
    """Records a figure for the table: see `COLUMNS` in tests/src/script.rs for the names."""
    _figures[name] = value
    note(f"{name}: {value}")


def skip(reason):
    """Ends the case: this machine cannot run it."""
    print(reason, flush=True)
    sys.exit(SKIPPED)


def finish():
    """Ends the case."""
    if FIGURES:
        with open(FIGURES, "w", encoding="utf-8") as file:
            json.dump(_figures, file)
    if _failed:
        print("FAILED: " + "; ".join(_failed), flush=True)
    sys.exit(1 if _failed else 0)
