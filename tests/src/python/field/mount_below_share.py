"""Another file system that is mounted below the share has its own space and its own file ids.

Reports: namjaejeon/ksmbd#400, istoreos/istoreos#761 (the space of the root is reported for the disk
below). Equal file ids make clients take two files for one.
"""

import os
import subprocess

from fieldlib import *

DISK_MEBIBYTES = 64
DISK_BYTES = DISK_MEBIBYTES << 20
# Files on the disk, and files that are made beside it until one has the same inode number.
ON_DISK, BESIDE = 40, 4000


def check_space(session):
    """QUERY_INFO and `df` report the file system of the directory that they ask about."""
    total, free = session.space("disks\\disk")
    check_equal("bytes of the mounted disk", total, DISK_BYTES)
    check_at_most("free bytes of the mounted disk", free, DISK_BYTES)
    check("bytes of the share itself", session.space("")[0] > DISK_BYTES, session.space("")[0])
    result = run("df", url("disks/disk"))
    check_equal("exit code of df of the mounted disk", result.code, 0)
    check("df reports the mounted disk", str(DISK_BYTES) in result.text, result.text.strip())
    result = run("df", url("disks/missing"))
    check_equal("exit code of df of a missing directory", result.code, NOT_FOUND)
    handle = session.open("disks\\disk", access=READ_ATTRIBUTES)
    found = session.query_information(handle, FS_ATTRIBUTE_INFORMATION, INFO_FILE_SYSTEM)
    handle.close()
    (length,) = struct.unpack_from("<I", found, 8)
    note(f"file system of the disk: {found[12:12 + length].decode('utf-16-le')}")


def same_inode_number(directory):
    """The paths of two files of two file systems with the same inode number."""
    on_disk = {}
    for number in range(ON_DISK):
        path = f"{directory}/disk/on-disk-{number}"
        write_local(path, b"disk")
        on_disk[os.stat(path).st_ino] = f"disks\\disk\\on-disk-{number}"
    for number in range(BESIDE):
        path = f"{directory}/beside-{number}"
        write_local(path, b"root")
        inode = os.stat(path).st_ino
        if inode in on_disk:
            return on_disk[inode], f"disks\\beside-{number}"
        os.unlink(path)
    # The numbers of two new file systems start at the same value.
    make_mount(f"{directory}/second", 16)
    for number in range(ON_DISK):
        path = f"{directory}/second/on-second-{number}"
        write_local(path, b"second")
        inode = os.stat(path).st_ino
        if inode in on_disk:
            return on_disk[inode], f"disks\\second\\on-second-{number}"
    return None


def ids(session, path):
    """The file id of a file, by QUERY_INFO and by a listing."""
    directory, name = path.rsplit("\\", 1)
    return session.file_id(path), session.list(directory, name)[0].file_id


def check_ids(session, directory):
    """Two files with the same inode number are two files."""
    pair = same_inode_number(directory)
    if not check("two files with the same inode number exist", pair is not None, pair):
        return
    one, other = (ids(session, path) for path in pair)
    note(f"file ids: {one}, {other}")
    check("file ids of QUERY_INFO differ", one[0] != other[0])
    check("file ids of listings differ", one[1] != other[1])
    check_equal("QUERY_INFO and listing agree", (one[0], other[0]), (one[1], other[1]))
    exclusive = session.open(pair[0], sharing=0)
    status = status_of(lambda: session.open(pair[1], sharing=0).close())
    check_equal("the second opens while the first is open exclusively", status, "OK")
    exclusive.close()
    again = [session.file_id(path) for path in pair]
    check_equal("file ids stay the same", again, [one[0], other[0]])


def check_roots(session, directory):
    """Roots of file systems of one kind have the same inode number: 2 on ext4, 1 on tmpfs."""
    make_mount(f"{directory}/disk/inner", 1)
    make_mount(f"{directory}/side", 1)
    paths = ["disks\\disk", "disks\\disk\\inner", "disks\\side"]
    found = [session.file_id(path, IS_DIRECTORY) for path in paths]
    check_equal("file ids of three roots", len(set(found)), 3)
    listed = {entry.name: entry.file_id for entry in session.list("disks")}
    listed = [listed["disk"], listed["side"]]
    check_equal("listings have the ids of the mounted roots", listed, [found[0], found[2]])
    subprocess.run(["umount", f"{directory}/disk/inner"], check=True)


def check_moves(session, directory):
    """A rename to another file system fails or moves the file; a copy works."""
    session.write_file("disks\\move", b"12345")
    status = status_of(lambda: session.rename("disks\\move", "disks\\disk\\moved"))
    check_one_of("rename to the disk", status, ("OK", "NOT_SAME_DEVICE"))
    places = (session.names("disks", "mov*"), session.names("disks\\disk", "mov*"))
    expected = ([], ["moved"]) if status == "OK" else (["move"], [])
    check_equal("the file is in one place", places, expected)
    session.write_file("disks\\source", b"12345")
    result = run("cp", "--quiet", url("disks/source"), url("disks/disk/copied"))
    check_equal("exit code of cp to the disk", result.code, 0)
    check_equal("content of the copy", session.read_file("disks\\disk\\copied"), b"12345")
    status = status_of(lambda: session.link("disks\\source", "disks\\disk\\linked"))
    check_one_of("hard link to the disk", status, ("NOT_SAME_DEVICE", "NOT_SUPPORTED"))
    status = status_of(lambda: session.remove("disks\\disk", IS_DIRECTORY))
    check("the mount point cannot be removed", status != "OK", status)
    check("the mount point exists", os.path.ismount(f"{directory}/disk"))


def make_mount(path, mebibytes):
    """Mounts a new file system on a new directory."""
    make_open_directory(path)
    server.mount_tmpfs(path, mebibytes)


def main():
    with Server() as own:
        directory = os.path.join(own.data, "disks")
        make_mount(os.path.join(directory, "disk"), DISK_MEBIBYTES)
        os.chmod(directory, 0o777)
        session = Session()
        check_space(session)
        check_ids(session, directory)
        check_roots(session, directory)
        check_moves(session, directory)
    finish()


main()
