"""Checks a mount of cifs.ko with the option posix: posix_mount.py DIRECTORY [CHECK-TO-SKIP...]

Runs every check in a directory of its own below DIRECTORY, prints a line for each, and ends with 1
if one fails.
"""

import errno
import fcntl
import os
import socket
import stat
import sys


def same(found, wanted, what="value"):
    if found != wanted:
        raise AssertionError(f"{what}: {found!r} is not {wanted!r}")


def fails(number, call, *arguments):
    try:
        call(*arguments)
    except OSError as error:
        same(error.errno, number, "errno")
        return
    raise AssertionError(f"{call.__name__}{arguments} succeeds")


def write(path, data=b"data"):
    with open(path, "wb") as file:
        file.write(data)


def read(path):
    with open(path, "rb") as file:
        return file.read()


def mode(path):
    return stat.S_IMODE(os.lstat(path).st_mode)


def check_modes_of_new_directories():
    # A new file shows the option file_mode of cifs.ko here, over smbd too.
    for bits in (0o700, 0o755, 0o777, 0o1777, 0o500):
        os.mkdir(f"d{bits:o}", bits)
        same(mode(f"d{bits:o}"), bits, "mode of a directory")
    os.umask(0o27)
    os.mkdir("masked")
    os.umask(0)
    same(mode("masked"), 0o750, "mode with the umask of the client")


def check_chmod():
    write("file")
    os.mkdir("directory")
    for bits in (0o600, 0o755, 0o444, 0o000, 0o644):
        os.chmod("file", bits)
        same(mode("file"), bits, "mode of a file")
    for bits in (0o700, 0o1777, 0o2755, 0o755):
        os.chmod("directory", bits)
        same(mode("directory"), bits, "mode of a directory")
    drop_caches()
    same((mode("file"), mode("directory")), (0o644, 0o755), "modes without the cache")


def check_special_bits():
    write("file")
    for bits in (0o4755, 0o2755, 0o1755, 0o6755):
        os.chmod("file", bits)
        drop_caches()
        same(mode("file"), bits, "mode")


def check_names_differ_in_case():
    names = ["name", "Name", "NAME", "n\u00e4me", "N\u00c4ME"]
    for name in names:
        write(name, name.encode())
    for name in names:
        same(read(name), name.encode(), name)
    same(sorted(os.listdir(".")), sorted(names), "listing")
    fails(errno.ENOENT, os.stat, "nAME")
    os.mkdir("D")
    fails(errno.ENOENT, os.stat, "d")
    os.rename("name", "nAmE")
    os.remove("Name")
    drop_caches()
    same(sorted(os.listdir(".")), sorted(["D", "nAmE", "NAME", "n\u00e4me", "N\u00c4ME"]), "rest")


NAMES = ["a:b", "a:b:$DATA", "a.", "a..", "a ", ". ", "con", "nul.txt", "*", "?", "<>", '"', "|"]
NAMES += ["back\\slash", "\\", "tab\t", "line\n", "\x01", "a\uf022b", "\U0001f600", " ", "..."]


def check_names_have_every_character():
    for name in NAMES:
        write(name, name.encode())
    drop_caches()
    same(sorted(os.listdir(".")), sorted(NAMES), "listing")
    for name in NAMES:
        same(read(name), name.encode(), name)
        same(os.stat(name).st_size, len(name.encode()), name)
    for name in NAMES:
        os.rename(name, name + "x")
        os.rename(name + "x", name)
        os.link(name, name + "l")
        os.remove(name)
        same(read(name + "l"), name.encode(), name)
        os.remove(name + "l")
        os.mkdir(name)
        write(name + "/" + name)
        os.remove(name + "/" + name)
        os.rmdir(name)
    same(os.listdir("."), [], "listing")
    long = "\u00e4" * 60 + "x"
    write(long)
    same(os.listdir("."), [long], "listing")
    fails(errno.ENAMETOOLONG, write, "x" * 256)


def check_unlink_of_an_open_file():
    file = os.open("file", os.O_CREAT | os.O_RDWR, 0o600)
    os.write(file, b"before")
    os.unlink("file")
    fails(errno.ENOENT, os.stat, "file")
    same(os.listdir("."), [], "listing")
    os.write(file, b" after")
    same(os.pread(file, 100, 0), b"before after", "data")
    write("file", b"another")
    os.fsync(file)
    os.close(file)
    same(read("file"), b"another", "the new file")


def check_rmdir_after_unlink_of_an_open_file():
    os.mkdir("directory")
    file = os.open("directory/file", os.O_CREAT | os.O_RDWR, 0o600)
    os.unlink("directory/file")
    os.rmdir("directory")
    os.write(file, b"data")
    same(os.pread(file, 100, 0), b"data", "data")
    os.close(file)


def check_unlink_of_a_hard_link():
    write("a")
    os.link("a", "b")
    os.link("a", "c")
    drop_caches()
    same(os.stat("b").st_nlink, 3, "links")
    same(os.stat("a").st_ino, os.stat("b").st_ino, "inode")
    file = os.open("c", os.O_RDWR)
    os.unlink("a")
    os.unlink("b")
    same(os.listdir("."), ["c"], "listing")
    os.unlink("c")
    same(os.listdir("."), [], "listing")
    os.close(file)


def check_rename_replaces():
    write("from", b"from")
    write("to", b"to")
    os.chmod("to", 0o444)
    os.rename("from", "to")
    same(read("to"), b"from", "data")
    same(os.listdir("."), ["to"], "listing")
    os.mkdir("full")
    write("full/file")
    os.mkdir("empty")
    os.mkdir("source")
    write("source/inner")
    fails(errno.ENOTEMPTY, os.rename, "source", "full")
    os.rename("source", "empty")
    same(sorted(os.listdir(".")), ["empty", "full", "to"], "listing")
    same(os.listdir("empty"), ["inner"], "directory")
    fails(errno.EISDIR, os.rename, "to", "empty")
    fails(errno.ENOTDIR, os.rename, "empty", "to")


def check_rename_replaces_an_open_file():
    write("from", b"from")
    write("to", b"to")
    source, target = os.open("from", os.O_RDWR), os.open("to", os.O_RDWR)
    os.rename("from", "to")
    same(os.pread(source, 10, 0), b"from", "the source")
    same(os.pread(target, 10, 0), b"to", "the replaced file")
    os.pwrite(target, b"TO", 0)
    os.close(source)
    os.close(target)
    same(read("to"), b"from", "data")
    same(os.listdir("."), ["to"], "listing")


def check_rename_of_two_links():
    write("a")
    os.link("a", "b")
    os.rename("a", "b")
    same(sorted(os.listdir(".")), ["a", "b"], "listing")


def check_rename_of_a_directory_with_open_files():
    os.mkdir("old")
    file = os.open("old/file", os.O_CREAT | os.O_RDWR, 0o600)
    os.write(file, b"before")
    os.rename("old", "new")
    os.write(file, b" after")
    os.close(file)
    same(read("new/file"), b"before after", "data")
    os.unlink("new/file")
    os.rmdir("new")


def check_symbolic_links():
    write("file", b"data")
    os.mkdir("directory")
    write("directory/inner", b"inner")
    targets = {"link": "file", "deep": "directory/inner", "dangling": "no/where", "up": "../x",
               "tree": "directory", "absolute": "/etc/passwd", "colon": "a:b"}
    for name, target in targets.items():
        os.symlink(target, name)
    drop_caches()
    for name, target in targets.items():
        same(os.readlink(name), target, name)
        same(stat.S_ISLNK(os.lstat(name).st_mode), True, name)
        same(os.lstat(name).st_size, len(target), "length of " + name)
    same(read("link"), b"data", "followed")
    same(os.listdir("tree"), ["inner"], "followed")
    kinds = {entry.name: entry.is_symlink() for entry in os.scandir(".")}
    same({name for name, is_link in kinds.items() if is_link}, set(targets), "listing")
    os.rename("link", "moved")
    same(os.readlink("moved"), "file", "renamed")
    os.unlink("moved")
    same(read("file"), b"data", "the target stays")


def check_special_files():
    os.mkfifo("fifo", 0o600)
    os.mknod("device", stat.S_IFCHR | 0o600, os.makedev(1, 3))
    os.mknod("block", stat.S_IFBLK | 0o600, os.makedev(8, 1))
    server = socket.socket(socket.AF_UNIX)
    server.bind("socket")
    drop_caches()
    kinds = {"fifo": stat.S_ISFIFO, "device": stat.S_ISCHR, "block": stat.S_ISBLK,
             "socket": stat.S_ISSOCK}
    for name, is_kind in kinds.items():
        same(is_kind(os.lstat(name).st_mode), True, name)
    same(os.lstat("device").st_rdev, os.makedev(1, 3), "device")
    same(os.lstat("block").st_rdev, os.makedev(8, 1), "block")
    types = {entry.name: stat.S_IFMT(os.lstat(entry.path).st_mode) for entry in os.scandir(".")}
    same(len(types), 4, "listing")
    for name in kinds:
        os.unlink(name)


def check_times():
    write("file")
    for moment in (1_000_000_000_123_456_700, 1_700_000_000_999_999_900, 100):
        os.utime("file", ns=(moment, moment + 1_000))
        drop_caches()
        found = os.stat("file")
        same((found.st_atime_ns, found.st_mtime_ns), (moment, moment + 1_000), "times")


def check_unnamed_files():
    try:
        file = os.open(".", os.O_TMPFILE | os.O_RDWR, 0o600)
    except OSError as error:
        same(error.errno, errno.EOPNOTSUPP, "errno")
        return
    os.write(file, b"data")
    # cifs.ko returns zeros after the end here, from smbd too.
    same(os.pread(file, 4, 0), b"data", "data")
    os.close(file)
    same(os.listdir("."), [], "listing")


def check_locks_are_advisory():
    write("file", b"x" * 100)
    holder = os.open("file", os.O_RDWR)
    fcntl.lockf(holder, fcntl.LOCK_EX, 50, 0)
    code = os.fork()
    if code == 0:
        try:
            other = os.open("file", os.O_RDWR)
            fails_to_lock = False
            try:
                fcntl.lockf(other, fcntl.LOCK_EX | fcntl.LOCK_NB, 10, 0)
            except OSError:
                fails_to_lock = True
            os.pwrite(other, b"y", 5)
            same(os.pread(other, 1, 5), b"y", "written in spite of the lock")
            fcntl.lockf(other, fcntl.LOCK_EX | fcntl.LOCK_NB, 10, 60)
            os._exit(0 if fails_to_lock else 3)
        except BaseException as error:
            print(repr(error))
            os._exit(4)
    same(os.waitstatus_to_exitcode(os.waitpid(code, 0)[1]), 0, "exit code of the other process")
    fcntl.lockf(holder, fcntl.LOCK_UN, 20, 10)
    fcntl.lockf(holder, fcntl.LOCK_SH, 10, 30)
    fcntl.lockf(holder, fcntl.LOCK_UN)
    os.close(holder)


def check_extended_attributes():
    write("file")
    os.setxattr("file", "user.one", b"value")
    os.setxattr("file", "user.ONE", b"other")
    os.setxattr("file", "user.bytes", bytes(range(256)))
    drop_caches()
    same(sorted(os.listxattr("file")), ["user.ONE", "user.bytes", "user.one"], "names")
    same(os.getxattr("file", "user.one"), b"value", "value")
    same(os.getxattr("file", "user.ONE"), b"other", "value")
    same(os.getxattr("file", "user.bytes"), bytes(range(256)), "value")
    os.removexattr("file", "user.ONE")
    same(sorted(os.listxattr("file")), ["user.bytes", "user.one"], "names")


def check_append():
    file = os.open("file", os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o644)
    other = os.open("file", os.O_WRONLY | os.O_APPEND)
    for number in range(10):
        os.write(file, b"a%d" % number)
        os.write(other, b"b%d" % number)
    os.close(file)
    os.close(other)
    same(len(read("file")), 40, "length")


def check_sizes():
    file = os.open("file", os.O_CREAT | os.O_RDWR, 0o644)
    os.ftruncate(file, 1 << 20)
    os.pwrite(file, b"end", (1 << 20) - 3)
    same(os.fstat(file).st_size, 1 << 20, "size")
    os.truncate("file", 5)
    os.close(file)
    same(os.stat("file").st_size, 5, "size")
    found = os.statvfs(".")
    same(found.f_blocks > 0 and found.f_bfree <= found.f_blocks, True, "blocks")
    same(found.f_files > 0, True, "inodes")
    same(found.f_namemax, 255, "longest name")


def check_directories():
    for number in range(300):
        write(f"file{number:03}")
    same(len(os.listdir(".")), 300, "listing")
    fails(errno.ENOTDIR, os.mkdir, "file000/x")
    fails(errno.EEXIST, os.mkdir, "file000")
    fails(errno.ENOTDIR, os.rmdir, "file000")
    fails(errno.EISDIR, os.unlink, ".")
    os.mkdir("full")
    write("full/x")
    fails(errno.ENOTEMPTY, os.rmdir, "full")
    for number in range(300):
        os.unlink(f"file{number:03}")
    same(os.listdir("."), ["full"], "listing")
    same(os.stat("full").st_nlink >= 1, True, "links")


def drop_caches():
    os.sync()
    with open("/proc/sys/vm/drop_caches", "w") as file:
        file.write("3")


def run(name, check, base):
    path = os.path.join(base, name)
    os.mkdir(path)
    os.chdir(path)
    os.umask(0)
    try:
        check()
    except Exception as error:
        print(f"FAILED {name}: {type(error).__name__}: {error}", flush=True)
        return False
    finally:
        os.chdir(base)
    print(f"passed {name}", flush=True)
    return True


def main():
    base, skipped = sys.argv[1], sys.argv[2:]
    checks = {name[6:]: check for name, check in globals().items() if name.startswith("check_")}
    unknown = set(skipped) - set(checks)
    if unknown:
        sys.exit(f"no such check: {unknown}")
    chosen = [(name, check) for name, check in checks.items() if name not in skipped]
    passed = sum([run(name, check, base) for name, check in chosen])
    print(f"{passed} of {len(chosen)} checks passed")
    sys.exit(passed != len(chosen))


main()
