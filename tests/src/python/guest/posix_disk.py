"""Checks what a mount of cifs.ko with the option posix leaves on the server's disk:
posix_disk.py root|user|plain DIRECTORY DIRECTORY-ON-DISK. `root`: the session of the mount is root
on the server. `user` and `plain`: it is an ordinary user. `root` and `user` have the mount option
idsfromsid, without which cifs.ko changes no owners.
"""

import errno
import os
import stat
import sys

SESSION, BASE, DISK = sys.argv[1:]
ALICE, BOB = 2001, 2002


def same(found, wanted, what):
    if found != wanted:
        raise AssertionError(f"{what}: {found} is not {wanted}")


def on_disk(name):
    found = os.lstat(os.path.join(DISK, name))
    return oct(stat.S_IMODE(found.st_mode)), found.st_uid, found.st_gid


def has_mode(name, bits):
    same(on_disk(name)[0], oct(bits), f"mode of {name} on disk")


def owned(name, uid, gid):
    same(on_disk(name)[1:], (uid, gid), f"owners of {name} on disk")


def create(name, bits):
    os.close(os.open(name, os.O_CREAT | os.O_EXCL | os.O_RDWR, bits))


def fails(number, call, *arguments):
    try:
        call(*arguments)
    except OSError as error:
        same(errno.errorcode[error.errno], errno.errorcode[number], f"{call.__name__}{arguments}")
        return
    raise AssertionError(f"{call.__name__}{arguments} succeeds")


def check_modes():
    # mkdir(2) ignores the set-user-id and set-group-id bits, open(2) does not.
    for bits in (0o600, 0o640, 0o777, 0o000, 0o1777, 0o2775, 0o4755, 0o6711):
        create(f"new{bits:o}", bits)
        has_mode(f"new{bits:o}", bits)
        os.mkdir(f"made{bits:o}", bits)
        has_mode(f"made{bits:o}", bits & 0o1777)
    create("file", 0o644)
    os.mkdir("directory")
    for bits in (0o4755, 0o2755, 0o1777, 0o2775, 0o6711, 0o000, 0o600):
        for name in ("file", "directory"):
            os.chmod(name, bits)
            has_mode(name, bits)
    os.umask(0o27)
    create("masked", 0o666)
    os.mkdir("masked-directory", 0o777)
    has_mode("masked", 0o640)
    has_mode("masked-directory", 0o750)


def check_group_of_directories():
    os.mkdir("shared")
    if SESSION == "root":
        os.chown("shared", -1, BOB)
    group = on_disk("shared")[2]
    os.chmod("shared", 0o2775)
    create("shared/file", 0o644)
    os.mkdir("shared/directory", 0o755)
    same(on_disk("shared/file")[2], group, "group of a file in a set-group-ID directory")
    same(on_disk("shared/directory")[2], group, "group of a directory in it")
    has_mode("shared/file", 0o644)
    has_mode("shared/directory", 0o2755)


def check_owners():
    create("file", 0o4755)
    os.mkdir("directory", 0o777)
    if SESSION != "root":
        refusal = errno.EPERM if SESSION == "user" else errno.EINVAL
        for name in ("file", "directory"):
            owned(name, ALICE, ALICE)
            fails(refusal, os.chown, name, BOB, -1)
            fails(refusal, os.chown, name, -1, BOB)
            owned(name, ALICE, ALICE)
        has_mode("file", 0o4755)
        return
    for uid, gid in ((ALICE, BOB), (BOB, BOB), (0, 0)):
        for name in ("file", "directory"):
            os.chown(name, uid, gid)
            owned(name, uid, gid)
    os.chown("file", ALICE, -1)
    owned("file", ALICE, 0)
    os.chown("file", -1, BOB)
    owned("file", ALICE, BOB)
    # chown(2) removes the bit.
    has_mode("file", 0o755)


def check_owners_of_new_files():
    os.mkdir("open", 0o777)
    os.chmod("open", 0o777)
    os.seteuid(BOB)
    try:
        # cifs.ko may check the permissions of the new file before it knows its owner.
        create("open/file", 0o600)
    except PermissionError:
        pass
    finally:
        os.seteuid(0)
    owned("open/file", *((BOB, 0) if SESSION == "root" else (ALICE, ALICE)))
    has_mode("open/file", 0o600)


def main():
    failed = 0
    for name, check in list(globals().items()):
        if not name.startswith("check_"):
            continue
        os.umask(0)
        os.chdir(BASE)
        os.mkdir(name)
        os.chdir(name)
        global DISK
        disk, DISK = DISK, os.path.join(DISK, name)
        try:
            check()
            print(f"passed {name}", flush=True)
        except Exception as error:
            print(f"FAILED {name}: {type(error).__name__}: {error}", flush=True)
            failed += 1
        DISK = disk
    sys.exit(failed != 0)


main()
