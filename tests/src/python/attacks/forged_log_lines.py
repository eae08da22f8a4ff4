"""A guest cannot write lines of its choice, or escape sequences, into the log."""

import json
import os

import mini
from checks import check, finish, note, wait_until
from server import ALICE, Server

# A line end with a whole line behind it, an escape sequence, and a change of direction.
LINE = "2026-01-01T00:00:00.000000Z  INFO logged in peer=10.0.0.{}:1 transport=tcp user=root"
NAMES = [
    "x\n" + LINE + " kind=Named\x1b[31m",
    "x\r\n" + LINE,
    "x\x1b]0;{}\x07",
    "x\u2028" + LINE,
    "x\u202e{}",
    "x\x85" + LINE,
]
# Characters that change a terminal or the structure of lines, by the format of the log. Inside of
# a JSON string the last three are ordinary characters.
CONTROLS = ["\x1b", "\x07", "\r"]
DANGEROUS = {"human": [*CONTROLS, "\u2028", "\u202e", "\x85"], "json": CONTROLS}


def log_in(name):
    """A login as a guest under a name; its status."""
    connection = mini.Connection()
    connection.negotiate()
    status = mini.status_of(connection.log_in(name, ""))
    connection.close()
    return status


def check_log(own, mark, log_format):
    """No line starts with the forged time, and no dangerous character is in the log."""
    check("the logins are in the log", wait_until(lambda: own.log().count(mark) >= len(NAMES)))
    text = own.log()
    forged = [line for line in text.split("\n") if line.startswith("2026-01-01T00:00:00.000000Z")]
    check("no forged line", not forged, forged[:1] or "")
    found = [character for character in DANGEROUS[log_format] if character in text]
    check("no dangerous character", not found, found or "")


def is_json(line):
    """Whether a line is a JSON object."""
    try:
        return isinstance(json.loads(line), dict)
    except ValueError:
        return False


def attack(name, log_format):
    """Logs in under the names, with one format of the log."""
    mark = os.urandom(4).hex()
    sections = {"security": {"signing_required": False}, "log": {"format": log_format}}
    with Server(name, sections=sections, share={"guest": True}) as own:
        for text in NAMES:
            note(f"login: {log_in(text.replace('{}', mark)):#010x}")
        check_log(own, mark, log_format)
        if log_format == "json":
            others = [line for line in own.log().split("\n") if line and not is_json(line)]
            check("every line is JSON", not others, others[:1] or "")


def main():
    attack("human", "human")
    attack("json", "json")
    finish()


main()
