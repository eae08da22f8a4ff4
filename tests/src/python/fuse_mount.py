"""Checks of a FUSE mount. Arguments: two mounts of one share, and the directory that is shared."""

import ctypes
import errno
import fcntl
import mmap
import os
import signal
import stat
import sys
import time

ONE, TWO, SHARED = sys.argv[1:4]
LIBC = ctypes.CDLL(None, use_errno=True)
MIB = 1 << 20


def fails(code, function, *arguments):
    try:
        function(*arguments)
    except OSError as error:
        name = errno.errorcode[error.errno]
        assert error.errno == code, f"{function.__name__}{arguments}: {name}"
        return
    raise AssertionError(f"{function.__name__}{arguments} has not failed")


def system(function, *arguments):
    if function(*arguments) == -1:
        raise OSError(ctypes.get_errno(), function.__name__)


def until(condition, what):
    end = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < end, what
        time.sleep(0.001)


def read(path):
    with open(path, "rb") as file:
        return file.read()


def write(path, data):
    with open(path, "wb") as file:
        file.write(data)


def in_child(function):
    child = os.fork()
    if child == 0:
        try:
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
            function()
        finally:
            os._exit(0)
    return child


def basic():
    path = f"{ONE}/file"
    write(path, b"x" * 100_000)
    assert os.stat(path).st_size == 100_000
    assert read(f"{SHARED}/file") == read(f"{TWO}/file") == b"x" * 100_000
    os.mkdir(f"{ONE}/d")
    fails(errno.EEXIST, os.mkdir, f"{ONE}/d")
    write(f"{ONE}/d/x", b"")
    fails(errno.ENOTEMPTY, os.rmdir, f"{ONE}/d")
    os.mkdir(f"{ONE}/e")
    fails(errno.ENOTEMPTY, os.rename, f"{ONE}/e", f"{ONE}/d")
    os.unlink(f"{ONE}/d/x")
    os.rename(f"{ONE}/e", f"{ONE}/d")
    fails(errno.ENOENT, os.stat, f"{ONE}/e")
    fails(errno.ENOTDIR, os.rename, f"{ONE}/d", path)
    fails(errno.EISDIR, os.rename, path, f"{ONE}/d")
    fails(errno.ENOTDIR, os.rmdir, path)
    os.rmdir(f"{ONE}/d")
    fails(errno.ENAMETOOLONG, open, f"{ONE}/{'n' * 256}", "w")
    for name in ["a:b", "q?", "x|y", "dot.", "blank ", "tab\t", "\u00e4", "back\\s"]:
        write(f"{ONE}/{name}", name.encode())
        assert name in os.listdir(ONE), name
        assert read(f"{ONE}/{name}") == name.encode()
        os.unlink(f"{ONE}/{name}")
    for number in range(300):
        write(f"{ONE}/n{number}", b"")
    assert len(os.listdir(TWO)) == 301
    for number in range(300):
        os.unlink(f"{ONE}/n{number}")
    assert os.listdir(TWO) == ["file"]
    os.utime(path, (1_000_000_000, 1_100_000_000.5))
    times = os.stat(path)
    assert (times.st_atime, times.st_mtime) == (1_000_000_000, 1_100_000_000.5)
    os.chmod(path, 0o444)
    assert os.stat(path).st_mode & 0o222 == 0
    os.chmod(path, 0o644)
    assert os.stat(path).st_mode & 0o200
    os.truncate(path, 10)
    assert os.stat(path).st_size == 10
    assert os.statvfs(ONE).f_blocks > 0


def open_files():
    path, other = f"{ONE}/file", f"{ONE}/other"
    write(path, b"old")
    file = os.open(path, os.O_RDWR)
    os.unlink(path)
    fails(errno.ENOENT, os.stat, path)
    assert os.fstat(file).st_nlink == 0
    assert os.listdir(ONE) == []
    write(path, b"new")
    os.pwrite(file, b"O", 0)
    assert os.pread(file, 3, 0) == b"Old"
    os.close(file)
    write(other, b"third")
    file = os.open(path, os.O_RDONLY)
    os.rename(other, path)
    assert read(path) == b"third" and os.pread(file, 3, 0) == b"new"
    os.close(file)
    until(lambda: os.listdir(SHARED) == ["file"], "the removed files stay on the server")
    ends = [os.open(f"{mount}/file", os.O_WRONLY | os.O_APPEND) for mount in (ONE, TWO)]
    os.ftruncate(ends[0], 0)
    for number in range(20):
        for end in ends:
            os.write(end, b"%03d" % number)
    assert read(path) == b"".join(b"%03d%03d" % (it, it) for it in range(20))


def coherence():
    write(f"{ONE}/file", bytes(MIB))
    files = [os.open(f"{mount}/file", os.O_RDWR) for mount in (ONE, TWO)]
    maps = [mmap.mmap(file, MIB) for file in files]
    aligned = mmap.mmap(-1, 4096)
    direct = os.open(f"{TWO}/file", os.O_RDWR | os.O_DIRECT)
    for number in range(200):
        for here, there in [(0, 1), (1, 0)]:
            at, data = number * 16, b"%08d%08d" % (number, here)
            if number % 3 == 0:
                maps[here][at : at + 16] = data
                maps[here].flush()
            else:
                os.pwrite(files[here], data, at)
            # A read(2) after the write sees it; a mapping sees it when the break has arrived.
            assert os.pread(files[there], 16, at) == data, (number, here)
            assert os.preadv(direct, [aligned], at // 4096 * 4096) == 4096
            assert aligned[at % 4096 : at % 4096 + 16] == data, (number, here)
            for it in maps:
                until(lambda: it[at : at + 16] == data, f"a mapping is stale: {number}")
            with open(f"{SHARED}/file", "rb") as file:
                file.seek(at)
                assert file.read(16) == data
    os.ftruncate(files[1], 50)
    assert os.fstat(files[0]).st_size == 50
    assert len(os.pread(files[0], 1000, 0)) == 50


def direct():
    file = os.open(f"{ONE}/file", os.O_RDWR | os.O_CREAT | os.O_DIRECT)
    buffer = mmap.mmap(-1, MIB)
    buffer.write(os.urandom(MIB))
    data = buffer[:]
    assert os.pwritev(file, [buffer], 0) == MIB
    buffer.seek(0)
    buffer.write(bytes(MIB))
    assert os.preadv(file, [buffer], 0) == MIB and buffer[:] == data
    os.fsync(file)
    assert read(f"{SHARED}/file") == data


def links():
    path = f"{ONE}/file"
    write(path, b"data")
    os.setxattr(path, "user.key", b"value")
    assert os.getxattr(path, "user.key") == b"value"
    fails(errno.EEXIST, os.setxattr, path, "user.key", b"z", os.XATTR_CREATE)
    os.removexattr(path, "user.key")
    fails(errno.ENODATA, os.getxattr, path, "user.key")
    fails(errno.EOPNOTSUPP, os.setxattr, path, "system.other", b"z")
    os.link(path, f"{ONE}/hard")
    assert os.stat(path).st_nlink == 2
    assert os.stat(path).st_ino == os.stat(f"{ONE}/hard").st_ino
    os.unlink(path)
    assert read(f"{ONE}/hard") == b"data"


def special():
    os.symlink("../a/b", f"{ONE}/link")
    assert os.readlink(f"{ONE}/link") == "../a/b" and os.lstat(f"{ONE}/link").st_size == 6
    os.mkfifo(f"{ONE}/fifo")
    assert stat.S_ISFIFO(os.lstat(f"{TWO}/fifo").st_mode)
    os.mknod(f"{ONE}/null", stat.S_IFCHR | 0o600, os.makedev(1, 3))
    assert os.lstat(f"{TWO}/null").st_rdev == os.makedev(1, 3)


def locks():
    write(f"{ONE}/file", b"data")
    one, two = (os.open(f"{mount}/file", os.O_RDWR) for mount in (ONE, TWO))
    exclusive = fcntl.LOCK_EX | fcntl.LOCK_NB
    fcntl.lockf(one, exclusive, 10, 0)
    fails(errno.EAGAIN, fcntl.lockf, two, exclusive, 5, 5)
    fcntl.lockf(two, exclusive, 5, 10)
    os.pwrite(one, b"D", 0)

    def wait():
        file = os.open(f"{TWO}/file", os.O_RDWR)
        fcntl.lockf(file, fcntl.LOCK_EX, 10, 0)

    child = in_child(wait)
    time.sleep(0.1)
    assert os.waitpid(child, os.WNOHANG) == (0, 0)
    fcntl.lockf(one, fcntl.LOCK_UN, 10, 0)
    assert os.waitpid(child, 0)[1] == 0
    os.close(two)
    two = os.open(f"{TWO}/file", os.O_RDWR)
    fcntl.flock(one, fcntl.LOCK_EX)
    fails(errno.EAGAIN, fcntl.flock, two, exclusive)

    def killed():
        signal.alarm(1)
        fcntl.flock(two, fcntl.LOCK_EX)

    assert os.WTERMSIG(os.waitpid(in_child(killed), 0)[1]) == signal.SIGALRM
    fcntl.flock(one, fcntl.LOCK_UN)
    fcntl.flock(two, exclusive)


def fallocate(file, mode, offset, length):
    system(LIBC.fallocate, file, mode, ctypes.c_long(offset), ctypes.c_long(length))


def space():
    keep, punch, collapse, zero = 1, 2, 8, 16
    file = os.open(f"{ONE}/file", os.O_RDWR | os.O_CREAT)
    os.posix_fallocate(file, 0, MIB)
    assert os.fstat(file).st_size == MIB
    os.pwrite(file, b"y" * MIB, 0)
    fallocate(file, keep | punch, 65536, 131072)
    assert os.pread(file, 131072, 65536) == bytes(131072)
    assert os.lseek(file, 0, os.SEEK_HOLE) == 65536
    assert os.lseek(file, 65536, os.SEEK_DATA) == 196608
    fails(errno.ENXIO, os.lseek, file, MIB, os.SEEK_DATA)
    fallocate(file, zero, 0, 4096)
    assert os.pread(file, 8192, 0) == bytes(4096) + b"y" * 4096
    fails(errno.EOPNOTSUPP, fallocate, file, collapse, 0, 4096)
    copy, done = os.open(f"{ONE}/copy", os.O_RDWR | os.O_CREAT), 0
    while done < MIB:
        count = os.copy_file_range(file, copy, MIB - done, done, done)
        assert count > 0
        done += count
    assert read(f"{ONE}/copy") == read(f"{SHARED}/file")


def rename_flags():
    write(f"{ONE}/a", b"a")
    write(f"{ONE}/b", b"b")
    names = [-100, f"{ONE}/a".encode(), -100, f"{ONE}/b".encode()]
    no_replace, exchange = 1, 2
    fails(errno.EEXIST, system, LIBC.renameat2, *names, no_replace)
    fails(errno.EINVAL, system, LIBC.renameat2, *names, exchange)
    assert read(f"{ONE}/a") == b"a"


def write_slowly():
    """Writes a record each 10 ms with one open file for 4 seconds."""
    file = os.open(f"{ONE}/records", os.O_RDWR | os.O_CREAT)
    end, number = time.monotonic() + 4, 0
    while time.monotonic() < end:
        os.pwrite(file, b"%07d\n" % number, number * 8)
        number += 1
        time.sleep(0.01)
    os.fsync(file)
    os.close(file)
    assert read(f"{SHARED}/records") == b"".join(b"%07d\n" % it for it in range(number))


def main():
    for name in sys.argv[4:]:
        for entry in os.listdir(SHARED):
            os.unlink(f"{SHARED}/{entry}")
        globals()[name]()


main()
