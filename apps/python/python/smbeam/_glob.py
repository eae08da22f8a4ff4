"""Patterns of paths: ``*``, ``?``, ``[...]`` within a component, ``**`` for any depth."""

import fnmatch
import re

MAGIC = re.compile(r"[*?\[]")


def has_magic(text):
    """Returns whether a text has a wildcard."""
    return MAGIC.search(text) is not None


def fixed_part(pattern):
    """Splits a pattern into the directory without wildcards and the rest."""
    parts = pattern.split("/")
    count = 0
    while count < len(parts) - 1 and not has_magic(parts[count]):
        count += 1
    return "/".join(parts[:count]), "/".join(parts[count:])


def depth_of(pattern):
    """Returns the number of levels that a pattern can match, or None without a limit."""
    return None if "**" in pattern else pattern.count("/") + 1


def compile_pattern(pattern):
    """Returns the regular expression for paths that match a pattern."""
    text = ""
    for position, part in enumerate(pattern.split("/")):
        if part == "**":
            text += "(?:[^/]+/)*" if position < pattern.count("/") else ".*"
            continue
        inner = fnmatch.translate(part)
        inner = re.sub(r"^\(\?s:(.*)\)\\[zZ]$", r"\1", inner).replace(".*", "[^/]*")
        text += inner + ("/" if position < pattern.count("/") else "")
    return re.compile(f"(?s:{text})\\Z")
