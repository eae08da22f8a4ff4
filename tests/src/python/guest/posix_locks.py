"""Checks the locks of two mounts of cifs.ko with the option posix: posix_locks.py A B, where A and
B are the same directory in both. The locks are those of fcntl(2): advisory, and a lock replaces
what its process has locked before.
"""

import errno
import fcntl
import os
import struct
import sys

A, B = sys.argv[1:]


def opened(directory):
    return os.open(os.path.join(directory, "locked"), os.O_CREAT | os.O_RDWR, 0o600)


def lock(file, kind, start, length):
    """Locks or unlocks without a wait. Whether it is granted."""
    request = struct.pack("hhqqi4x", kind, os.SEEK_SET, start, length, 0)
    try:
        fcntl.fcntl(file, fcntl.F_SETLK, request)
    except OSError as error:
        if error.errno in (errno.EAGAIN, errno.EACCES):
            return False
        raise
    return True


def same(found, wanted, what):
    if found != wanted:
        raise AssertionError(f"{what}: {found!r} is not {wanted!r}")
    print(f"passed {what}", flush=True)


def in_child(call):
    """The result of a call in another process, which has locks of its own."""
    reader, writer = os.pipe()
    if os.fork() == 0:
        try:
            os.write(writer, repr(call()).encode())
        except BaseException as error:
            os.write(writer, repr(error).encode())
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as pipe:
        result = pipe.read()
    os.wait()
    return result


def main():
    a, b = opened(A), opened(B)
    os.write(a, b"x" * 100)
    os.fsync(a)
    same(lock(a, fcntl.F_WRLCK, 0, 50), True, "a lock of one mount")
    same(in_child(lambda: lock(opened(B), fcntl.F_WRLCK, 10, 1)), "False", "it excludes another")
    same(in_child(lambda: lock(opened(B), fcntl.F_WRLCK, 50, 1)), "True", "beside it is free")
    same(in_child(lambda: os.pread(opened(B), 5, 0)), "b'xxxxx'", "reads are free")
    same(in_child(lambda: os.pwrite(opened(B), b"y", 5)), "1", "writes are free")
    same(lock(a, fcntl.F_UNLCK, 0, 50), True, "the unlock")
    same(in_child(lambda: lock(opened(B), fcntl.F_WRLCK, 10, 1)), "True", "it ends the lock")
    same(lock(b, fcntl.F_RDLCK, 0, 100), True, "a shared lock of the other mount")
    same(in_child(lambda: lock(opened(A), fcntl.F_RDLCK, 0, 10)), "True", "is shared")
    same(in_child(lambda: lock(opened(A), fcntl.F_WRLCK, 0, 10)), "False", "excludes an exclusive")
    same(in_child(lambda: os.pwrite(opened(A), b"z", 5)), "1", "writes are free below it")
    os.close(b)
    same(in_child(lambda: lock(opened(A), fcntl.F_WRLCK, 0, 10)), "True", "a close ends it")


main()
