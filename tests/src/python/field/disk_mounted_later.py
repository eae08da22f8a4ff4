"""The directory of a share is a mount point: its disk appears, leaves and is replaced.

Reports: mbentley/docker-timemachine#86 (empty after a while), LibreELEC/LibreELEC.tv#1919,
ServerContainers/samba#144.
"""

import os
import shutil
import subprocess

from fieldlib import *


def mount_disk(path, name):
    """Mounts a disk that contains one file, which has its name."""
    server.mount_tmpfs(path, 8)
    write_local(os.path.join(path, name), name.encode())


def unmount(path):
    """Unmounts a disk. Returns an empty text or the reason of the failure."""
    result = subprocess.run(["umount", path], capture_output=True, text=True)
    if result.returncode != 0:
        subprocess.run(["umount", "--lazy", path], check=True)
    return result.stderr.strip()


def names(session=None):
    """The names in the share, in a new session or an existing one."""
    found = []
    status = status_of(lambda: found.extend((session or Session()).names()))
    return found if status == "OK" else status


def check_after_start(own):
    """A disk that is mounted, replaced or removed while the server runs is seen."""
    session = Session()
    check_equal("names before the disk", names(session), [])
    mount_disk(own.data, "disk1")
    check_equal("names of the disk in the old session", names(session), ["disk1"])
    check_equal("names of the disk in a new session", names(), ["disk1"])
    result = run("put", "--quiet", "-", url("new.txt"), input=b"on the disk")
    check_equal("exit code of put", result.code, 0)
    path = os.path.join(own.data, "new.txt")
    content = read_local(path) if os.path.exists(path) else None
    check_equal("the new file is on the disk", content, b"on the disk")
    check_equal("umount while sessions exist and no file is open", unmount(own.data), "")
    note(f"names without the disk: {names()}")
    mount_disk(own.data, "disk2")
    check_equal("names of the second disk in a new session", names(), ["disk2"])
    check_equal("names of the second disk in the old session", names(session), ["disk2"])


def check_removed_directory(own):
    """A share without its directory comes back with it."""
    unmount(own.data)
    shutil.rmtree(own.data)
    check_one_of("a session without the directory", share_status(), REFUSED)
    result = run("put", "--quiet", "-", url("lost"), input=b"x")
    check("put without the directory fails", result.code != 0, result.errors)
    make_open_directory(own.data)
    write_local(os.path.join(own.data, "again"), b"1")
    check_equal("names of the new directory", names(), ["again"])


# The answers to a tree connect to a share without its directory.
REFUSED = ("BAD_NETWORK_NAME",)


def share_status():
    """The status of a new session."""
    return status_of(lambda: Session())


def check_before_start():
    """A disk that was mounted before the start can be ejected without clients."""
    data = os.path.join(DIRECTORY, "second", "data")
    make_open_directory(data)
    mount_disk(data, "disk1")
    with Server("second") as own:
        session = Session()
        check_equal("names of the first disk", names(session), ["disk1"])
        session.disconnect()
        # The server may still be closing the connection.
        failures = [""]
        is_unmounted = lambda: attempt_unmount(own.data, failures)
        check("umount without clients", wait_until(is_unmounted), failures[-1])
        if os.path.ismount(own.data):
            unmount(own.data)
        mount_disk(own.data, "disk2")
        check_equal("names of the next disk", names(), ["disk2"])
    unmount(data)


def attempt_unmount(path, failures):
    """Whether the disk is unmounted."""
    result = subprocess.run(["umount", path], capture_output=True, text=True)
    failures.append(result.stderr.strip())
    return result.returncode == 0


def main():
    with Server() as own:
        check_after_start(own)
        check_removed_directory(own)
    check_before_start()
    finish()


main()
