"""A full disk leaves the old files as they were, and every command names the reason.

Reports: elfmz/far2l#1387 (files of length 0), files-community/Files#7957 ("success"),
owncloud/core#30243 (an error without a reason), dianlight/hassio-addons#248.
"""

import os

from fieldlib import *

DISK_MEBIBYTES = 16
TOO_LARGE = 24 << 20
# A tree that does not fit.
FILES, FILE_BYTES = 40, 600_000
OLD = b"old" * 1000


class Stage:
    """A server whose share is a small file system, a session, and local files."""

    def __init__(self, own):
        self.disk = own.data
        self.session = Session()
        self.local = os.path.join(DIRECTORY, "local")
        os.makedirs(self.local)
        self.make("old", OLD)
        self.make("large", os.urandom(TOO_LARGE))
        os.mkdir(os.path.join(self.local, "many"))
        for number in range(FILES):
            self.make(f"many/{number:02}", os.urandom(FILE_BYTES))

    def make(self, name, data):
        """Writes a local file and returns its path."""
        path = os.path.join(self.local, name)
        write_local(path, data)
        return path

    def path(self, name):
        """The path of a local file."""
        return os.path.join(self.local, name)

    def remaining(self, path=""):
        """Names and lengths of the files in a directory of the share."""
        return [(entry.name, entry.size) for entry in self.session.list(path)]


def check_one_file(stage):
    """A file of many requests that does not fit leaves the old file."""
    code = run("put", "--quiet", stage.path("old"), url("file")).code
    check_equal("exit code of put", code, 0)
    for options in ([], ["--channels", "1"], ["--atomic"]):
        result = run("put", "--quiet", *options, stage.path("large"), url("file"))
        check_equal(f"exit code of put {options} of a large file", result.code, NO_SPACE)
        check("the message names the reason", "DISK_FULL" in result.errors, result.errors[:200])
        check("the old file remains", stage.session.read_file("file") == OLD)
        check_equal("files under final names", final_names(stage), ["file"])
        clear(stage, keep=["file"])
    result = run("put", "--quiet", "-", url("input"), input=os.urandom(20 << 20))
    check_equal("exit code of put of standard input", result.code, NO_SPACE)
    check_equal("nothing remains of standard input", final_names(stage), ["file"])
    clear(stage, keep=["file"])


def check_tree(stage):
    """A tree that does not fit leaves no cut file under a final name."""
    result = run("put", "-r", "--quiet", stage.path("many"), url())
    check_equal("exit code of put -r", result.code, NO_SPACE)
    note(f"{len(result.errors.splitlines())} lines: {result.errors.splitlines()[:2]}")
    check_equal("cut files after put -r", cut_files(stage, "many"), [])
    run("rm", "-r", url("many"))
    result = run("sync", "--quiet", stage.path("many"), url("many"))
    check_equal("exit code of sync", result.code, NO_SPACE)
    check_equal("cut files after sync", cut_files(stage, "many"), [])
    run("rm", "-r", url("many"))


def check_small_file(stage):
    """A file of one request that does not fit leaves the old file."""
    new = stage.make("new", os.urandom(900_000))
    for options in ([], ["--atomic"]):
        stage.session.write_file("small", b"good" * 100)
        fill_disk(stage, 300_000)
        result = run("put", "--quiet", *options, new, url("small"))
        check_equal(f"exit code of put {options} of a small file", result.code, NO_SPACE)
        check_equal("the old bytes remain", stage.session.read_file("small"), b"good" * 100)
        result = run("put", "--quiet", *options, new, url("absent"))
        check_equal(f"exit code of put {options} of a new small file", result.code, NO_SPACE)
        check_equal("files under final names", final_names(stage), ["file", "fill", "small"])
        clear(stage, keep=["file"])


def check_requests(stage):
    """WRITE and SET_INFO report DISK_FULL, and freed space can be used."""
    session = stage.session
    handle = session.open("written", disposition=OVERWRITE_OR_CREATE)
    acknowledged, status = 0, "OK"
    while status == "OK" and acknowledged < 32 << 20:
        status = status_of(lambda: handle.write(b"x" * CHUNK, acknowledged))
        acknowledged += CHUNK if status == "OK" else 0
    check_equal("WRITE beyond the space", status, "DISK_FULL")
    found = session.query_information(handle, FILE_STANDARD_INFORMATION)
    length = struct.unpack_from("<QQ", found)[1]
    is_expected = acknowledged <= length <= acknowledged + CHUNK
    check("the length covers the acknowledged writes", is_expected, (acknowledged, length))
    too_large = struct.pack("<Q", 64 << 20)
    allocate = lambda: session.set_information(handle, FILE_ALLOCATION_INFORMATION, too_large)
    check_equal("allocation beyond the space", status_of(allocate), "DISK_FULL")
    cut = lambda: session.set_information(handle, FILE_END_OF_FILE_INFORMATION, bytes(8))
    check_equal("truncation on a full disk", status_of(cut), "OK")
    check_equal("WRITE after it", status_of(lambda: handle.write(b"y" * CHUNK, 0)), "OK")
    handle.close()
    clear(stage, keep=["file"])


def check_copies(stage):
    """A copy on the server that does not fit fails, and leaves nothing under the final name."""
    check_equal("exit code of cp", run("cp", "--quiet", url("file"), url("copy")).code, 0)
    write_local(os.path.join(stage.disk, "large"), b"z" * (10 << 20))
    result = run("cp", "--quiet", url("large"), url("large-copy"))
    check_equal("exit code of cp of a file that does not fit", result.code, NO_SPACE)
    check_equal("files under final names", final_names(stage), ["copy", "file", "large"])
    status = status_of(lambda: stage.session.remove("large"))
    check_equal("a file can be removed from a full disk", status, "OK")


def fill_disk(stage, free_bytes):
    """Makes a file that leaves this number of bytes free."""
    found = os.statvfs(stage.disk)
    size = found.f_bavail * found.f_bsize - free_bytes
    write_local(os.path.join(stage.disk, "fill"), b"z" * size)


def is_part(name):
    """Whether a file is a part file of a transfer that can be continued."""
    return name.endswith(".part")


def final_names(stage):
    """The names in the share without part files."""
    return [name for name, _ in sorted(stage.remaining()) if not is_part(name)]


def cut_files(stage, directory):
    """The files under final names that do not have the length of their source."""
    found = stage.remaining(directory)
    return [(name, size) for name, size in found if not is_part(name) and size != FILE_BYTES]


def clear(stage, keep):
    """Removes all other files of the share."""
    for name, _ in stage.remaining():
        if name not in keep:
            stage.session.remove(name)


def main():
    disk = os.path.join(DIRECTORY, "server", "data")
    make_open_directory(disk)
    server.mount_tmpfs(disk, DISK_MEBIBYTES)
    with Server() as own:
        stage = Stage(own)
        check_one_file(stage)
        check_tree(stage)
        check_small_file(stage)
        check_requests(stage)
        check_copies(stage)
    finish()


main()
