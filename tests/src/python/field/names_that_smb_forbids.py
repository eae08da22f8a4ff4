"""Clients see and open files whose names SMB forbids.

Programs on the server make such files: snapshots of cameras (`:`), questions (`?`), old encodings.
Reports: home-assistant/addons#2541, rclone/rclone#2333, google/samba-documents-provider#65.
"""

import os
import shutil

from fieldlib import *

# Each file contains its own name.
FORBIDDEN = [
    b"cam_11:05:00.jpg",
    b"what?.txt",
    b"dot.",
    b"blank ",
    b"a|b.txt",
    b'say "x".txt',
    b"star*.txt",
    b"lt<gt>.txt",
    b"back\\slash.txt",
    b"tab\tx.txt",
    b"plain.txt",
    # Neighbors of the reported names.
    b"...",
    b"two dots..",
    b"dot and blank. ",
    b"\x01first control",
    b"last control\x1f",
    b"Latin 1: \xe4\xf6\xfc.txt",
    b"half a character \xf0\x9f",
    b"a:b",
    # The first is the private-use twin of the one above. The second has such a character itself.
    "a\uf022b".encode(),
    "\uf025.txt".encode(),
]
# A directory with a forbidden name, and with a forbidden name inside.
DIRECTORY_NAME, INNER_NAME = b"what now?", b"in: here"


def fill(directory):
    """Makes the files on the server's disk."""
    for name in FORBIDDEN:
        write_local(os.path.join(directory, name), name)
    inner = os.path.join(directory, DIRECTORY_NAME)
    server.make_open_directory(inner)
    write_local(os.path.join(inner, INNER_NAME), INNER_NAME)


def check_listing(session):
    """Every file has a name of its own, by which it opens."""
    names = session.names("made")
    check_equal("number of listed names", len(names), len(FORBIDDEN) + 1)
    check_equal("listed names differ", len(set(names)), len(names))
    found = []
    for name in names:
        content = content_of(session, "made\\" + name)
        if content is not None:
            found.append(content)
    for name in FORBIDDEN:
        check(f"content of {name!r} is reachable", name in found)


def content_of(session, path):
    """The content of a file; of a directory that of its only file; None if it cannot be opened."""
    result = []
    status = status_of(lambda: result.append(session.read_file(path)))
    if status == "OK":
        return result[0]
    note(f"cannot open {path!r}: {status}")
    return None


def check_directory(session):
    """A directory with a forbidden name opens, and so does the file in it."""
    known = {entry.name for entry in session.list("made") if entry.size == len(INNER_NAME)}
    for name in session.names("made"):
        path = "made\\" + name
        inner = []
        if status_of(lambda: inner.extend(session.names(path))) == "OK" and len(inner) == 1:
            content = content_of(session, f"{path}\\{inner[0]}")
            check_equal("content in a directory with a forbidden name", content, INNER_NAME)
            return
    check("a directory with a forbidden name opens", False, f"{len(known)} candidates")


def check_changes(session, directory):
    """A listed name can be renamed and removed, and a mapped name becomes the forbidden one."""
    for name in session.names("made"):
        old, new = "made\\" + name, "made\\renamed-" + name
        status = status_of(lambda: (session.rename(old, new), session.rename(new, old)))
        check_equal(f"{name!r} can be renamed twice", status, "OK")
    check_equal("names on the disk", sorted(os.listdir(directory)), expected_names())
    session.write_file("made\\new\uf025.txt", b"new")
    check("a new mapped name is the forbidden one", b"new?.txt" in os.listdir(directory))
    for name in session.names("made"):
        if content_of(session, "made\\" + name) in (b"what?.txt", b"new", b"dot."):
            status = status_of(lambda: session.remove("made\\" + name))
            check_equal(f"{name!r} can be removed", status, "OK")
    check("the removed files are removed", b"dot." not in os.listdir(directory))


def expected_names():
    """The names in the directory of the server."""
    return sorted([*FORBIDDEN, DIRECTORY_NAME])


def check_commands(directory):
    """`get -r` and `put -r` transfer the tree name for name, and `rm -r` removes it."""
    back, again = os.path.join(DIRECTORY, "back"), directory + b"-again"
    result = run("get", "-r", "--quiet", url("made"), back)
    check_equal("exit code of get -r", result.code, 0)
    note(result.errors[:600])
    check_equal("names after get -r", tree_of(os.fsencode(back)), tree_of(directory))
    result = run("put", "-r", "--quiet", back, url("made-again"))
    check_equal("exit code of put -r", result.code, 0)
    note(result.errors[:600])
    check_equal("names after put -r", tree_of(again), tree_of(directory))
    result = run("rm", "-r", url("made"))
    check_equal("exit code of rm -r", result.code, 0)
    check("rm -r removes the directory", not os.path.exists(directory), result.errors[:300])


def tree_of(directory):
    """Names and contents of the files below a directory, wherever it is."""
    tree = {}
    for parent, _, names in os.walk(directory):
        for name in names:
            path = os.path.join(parent, name)
            tree[os.path.relpath(path, directory)] = read_local(path)
    return tree


def check_hidden():
    """With `names = "hide"` only the names that SMB allows are visible."""
    with Server("hide", share={"names": "hide"}) as other:
        made = os.fsencode(os.path.join(other.data, "made"))
        server.make_open_directory(made)
        fill(made)
        plain = sorted(["plain.txt", "a\uf022b", "\uf025.txt"])
        check_equal('names with names = "hide"', Session().names("made"), plain)


def main():
    with Server() as own:
        made = os.fsencode(os.path.join(own.data, "made"))
        server.make_open_directory(made)
        fill(made)
        session = Session()
        check_listing(session)
        check_directory(session)
        check_commands(made)
        shutil.rmtree(made, ignore_errors=True)
        server.make_open_directory(made)
        fill(made)
        check_changes(session, made)
    check_hidden()
    finish()


main()
