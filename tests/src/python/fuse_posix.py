"""Checks of a FUSE mount with the POSIX extensions, in a session of root. fuse_mount.py follows in
the same program, with the functions and constants that these use."""

import errno
import os
import socket
import stat


def as_user(function):
    """Runs a function as an ordinary user, with the group 2345."""

    def run():
        os.setgroups([])
        os.setgid(2345)
        os.setuid(1234)
        os.umask(0o027)
        function()

    child = os.fork()
    if child == 0:
        code = 1
        try:
            run()
            code = 0
        finally:
            os._exit(code)
    assert os.waitpid(child, 0)[1] == 0, function.__name__


def mode(path):
    return stat.S_IMODE(os.lstat(path).st_mode)


def owner(path):
    info = os.lstat(path)
    return info.st_uid, info.st_gid


def posix_owners():
    """A session of root gives new files to the user of the program."""
    os.chmod(ONE, 0o777)
    os.mkdir(f"{ONE}/shared")
    os.chown(f"{ONE}/shared", -1, 777)
    os.chmod(f"{ONE}/shared", 0o2777)

    def make():
        for directory in [ONE, f"{ONE}/shared"]:
            write(f"{directory}/file", b"x")
            os.mkdir(f"{directory}/dir")
            os.mkfifo(f"{directory}/fifo", 0o666)
            os.symlink("x", f"{directory}/link")
        os.close(os.open(f"{ONE}/set", os.O_CREAT | os.O_WRONLY, 0o4755))
        fails(errno.EPERM, os.chown, f"{ONE}/file", 0, 0)
        fails(errno.EACCES, os.mkdir, f"{ONE}/shared/closed/x")

    os.mkdir(f"{ONE}/shared/closed", 0o700)
    as_user(make)
    for name, expected in [("file", 0o640), ("dir", 0o750), ("fifo", 0o640)]:
        assert (owner(f"{ONE}/{name}"), mode(f"{ONE}/{name}")) == ((1234, 2345), expected), name
        path = f"{TWO}/shared/{name}"
        inherited = 0o2000 if name == "dir" else 0
        assert (owner(path), mode(path)) == ((1234, 777), expected | inherited), name
    assert owner(f"{ONE}/link") == (1234, 2345) and owner(f"{ONE}/shared/link") == (1234, 777)
    assert mode(f"{ONE}/set") == 0o4750 and owner(f"{ONE}/set") == (1234, 2345)
    os.chown(f"{ONE}/link", 5, 6, follow_symlinks=False)
    assert owner(f"{TWO}/link") == (5, 6)
    for clear in [lambda it: write(it, b"y"), lambda it: os.truncate(it, 0)]:
        os.chown(f"{ONE}/set", 0, 0)
        os.chmod(f"{ONE}/set", 0o6777)
        as_user(lambda: clear(f"{ONE}/set"))
        assert mode(f"{ONE}/set") == mode(f"{TWO}/set") == 0o777
    os.chmod(f"{ONE}/set", 0o6777)
    os.chown(f"{ONE}/set", 1, 1)
    assert mode(f"{ONE}/set") == 0o777


def posix_files():
    path = f"{ONE}/file"
    write(path, b"x")
    file = os.open(path, os.O_RDWR)
    os.chmod(path, 0o751)
    os.utime(path, ns=(1_000_000_100, 2_000_000_300))
    info = os.stat(f"{TWO}/file")
    assert (info.st_atime_ns, info.st_mtime_ns) == (1_000_000_100, 2_000_000_300)
    assert stat.S_IMODE(info.st_mode) == 0o751
    os.unlink(path)
    os.fchmod(file, 0o600)
    os.fchown(file, 3, 4)
    os.ftruncate(file, 7)
    info = os.fstat(file)
    assert (info.st_nlink, info.st_mode, info.st_uid, info.st_gid) == (0, 0o100600, 3, 4)
    assert os.pread(file, 10, 0) == b"x" + bytes(6)
    assert os.listdir(SHARED) == []
    names = ["Case", "CASE", 'a"b*?<>|:', "back\\slash", "dot.", "blank ", "con", "\t\n", "\udcff"]
    names += ["x" * 255, "\u00e4" * 127]
    for name in names:
        write(f"{ONE}/{name}", os.fsencode(name))
    for place in [ONE, TWO, SHARED]:
        assert sorted(os.listdir(place)) == sorted(names), os.listdir(place)
    for name in names:
        assert read(f"{TWO}/{name}") == os.fsencode(name)
        os.unlink(f"{TWO}/{name}")
    fails(errno.ENAMETOOLONG, open, f"{ONE}/{'x' * 256}", "w")
    os.symlink('a\\b/"c', f"{ONE}/link")
    os.link(f"{ONE}/link", f"{ONE}/hard", follow_symlinks=False)
    assert os.readlink(f"{TWO}/hard") == 'a\\b/"c' and os.lstat(f"{ONE}/link").st_nlink == 2
    os.mknod(f"{ONE}/disk", stat.S_IFBLK | 0o640, os.makedev(8, 300))
    info = os.lstat(f"{TWO}/disk")
    assert (info.st_mode, info.st_rdev) == (stat.S_IFBLK | 0o640, os.makedev(8, 300))
    with socket.socket(socket.AF_UNIX) as one, socket.socket(socket.AF_UNIX) as two:
        one.bind(f"{ONE}/socket")
        one.listen()
        two.connect(f"{ONE}/socket")
    assert os.statvfs(ONE).f_namemax == 255


def posix_renames():
    os.makedirs(f"{ONE}/from/below")
    os.mkdir(f"{ONE}/to")
    write(f"{ONE}/from/below/file", b"data")
    inside = os.open(f"{ONE}/from/below/file", os.O_RDWR)
    os.rename(f"{ONE}/from", f"{ONE}/to")
    os.pwrite(inside, b"D", 0)
    assert read(f"{TWO}/to/below/file") == b"Data"
    fails(errno.ENOTEMPTY, os.rename, f"{ONE}/to/below", f"{ONE}/to")
    write(f"{ONE}/other", b"other")
    os.rename(f"{ONE}/other", f"{ONE}/to/below/file")
    assert os.pread(inside, 4, 0) == b"Data" and os.fstat(inside).st_nlink == 0
    assert read(f"{ONE}/to/below/file") == b"other"
    os.unlink(f"{ONE}/to/below/file")
    os.rmdir(f"{ONE}/to/below")
    os.close(inside)
