"""Checks when written data reach the disk: PORT USER PASSWORD DIRECTORY.

The shares `client`, `flush` and `always` have the value of `sync` that their names say; their
directories are below DIRECTORY. cachestat(2) counts the pages of a file that only the page cache
has. Exit code 77: the kernel or the file system does not report them.
"""

import ctypes
import errno
import os
import sys
import uuid

from smbprotocol.connection import Connection
from smbprotocol.open import (
    CreateDisposition,
    CreateOptions,
    FilePipePrinterAccessMask,
    ImpersonationLevel,
    Open,
)
from smbprotocol.session import Session
from smbprotocol.tree import TreeConnect

# cachestat(2), since Linux 6.5. The number is that of every architecture.
SYS_CACHESTAT = 451
SKIPPED = 77
ACCESS = FilePipePrinterAccessMask.GENERIC_READ | FilePipePrinterAccessMask.GENERIC_WRITE
PAGES = 4
DATA = b"data" * 1024 * PAGES
# The kernel may write pages to the disk by itself at any time. It does not do so each time.
ATTEMPTS = 10

libc = ctypes.CDLL(None, use_errno=True)


class Range(ctypes.Structure):
    """struct cachestat_range"""

    _fields_ = [("offset", ctypes.c_uint64), ("length", ctypes.c_uint64)]


class Counts(ctypes.Structure):
    """struct cachestat, in pages"""

    _fields_ = [
        (name, ctypes.c_uint64)
        for name in ("cached", "dirty", "writeback", "evicted", "recently_evicted")
    ]


def unwritten_pages(path):
    """The number of pages of a file that are not on the disk."""
    file = os.open(path, os.O_RDONLY)
    try:
        counts = Counts()
        whole = Range(0, 0)
        found = libc.syscall(
            SYS_CACHESTAT, file, ctypes.byref(whole), ctypes.byref(counts), ctypes.c_uint(0)
        )
        if found != 0:
            raise OSError(ctypes.get_errno(), "cachestat")
        return counts.dirty + counts.writeback
    finally:
        os.close(file)


def check_machine(directory):
    """Ends the program unless the file system reports pages before and after fdatasync."""
    path = os.path.join(directory, "machine")
    with open(path, "wb") as file:
        file.write(DATA)
        file.flush()
        try:
            before = unwritten_pages(path)
        except OSError as error:
            print(f"no cachestat: {errno.errorcode.get(error.errno)}")
            sys.exit(SKIPPED)
        os.fdatasync(file.fileno())
        after = unwritten_pages(path)
    if before == 0 or after != 0:
        print(f"the file system does not report unwritten pages: {before}, {after}")
        sys.exit(SKIPPED)


class Share:
    """A tree connect, and the directory of its files."""

    def __init__(self, session, name, directory):
        self.tree = TreeConnect(session, rf"\\127.0.0.1\{name}")
        self.tree.connect()
        self.name = name
        self.directory = os.path.join(directory, name)
        self.files = 0

    def unwritten_after(self, options, act):
        """The unwritten pages of a new file after `act` has written to an open with options."""
        self.files += 1
        name = f"file{self.files}"
        handle = Open(self.tree, name)
        options |= CreateOptions.FILE_NON_DIRECTORY_FILE
        handle.create(
            ImpersonationLevel.Impersonation, ACCESS, 0, 7, CreateDisposition.FILE_CREATE, options
        )
        act(handle)
        pages = unwritten_pages(os.path.join(self.directory, name))
        handle.close()
        return pages

    def check(self, what, is_written, options, act):
        """Checks whether the data are on the disk when the server has answered."""
        counts = [self.unwritten_after(options, act) for _ in range(ATTEMPTS)]
        holds = not any(counts) if is_written else any(counts)
        assert holds, f"{self.name}, {what}: unwritten pages {counts}, on the disk: {is_written}"


def write(handle):
    handle.write(DATA, 0)


def write_and_flush(handle):
    handle.write(DATA, 0)
    handle.flush()


def write_through(handle):
    handle.write(DATA, 0, write_through=True)


def main(port, user, password, directory):
    check_machine(directory)
    connection = Connection(uuid.uuid4(), "127.0.0.1", int(port), require_signing=True)
    connection.connect()
    session = Session(connection, user, password, require_encryption=False)
    session.connect()
    # Whether a plain write, and whether FLUSH and write-through, put the data on the disk.
    for name, is_plain_written, is_asked_written in (
        ("client", False, False),
        ("flush", False, True),
        ("always", True, True),
    ):
        share = Share(session, name, directory)
        unbuffered = CreateOptions.FILE_NO_INTERMEDIATE_BUFFERING
        through = CreateOptions.FILE_WRITE_THROUGH
        share.check("WRITE", is_plain_written, 0, write)
        share.check("unbuffered open", is_plain_written, unbuffered, write)
        share.check("FLUSH", is_asked_written, 0, write_and_flush)
        share.check("write-through WRITE", is_asked_written, 0, write_through)
        share.check("write-through open", is_asked_written, through, write)
    connection.disconnect()


main(*sys.argv[1:])
