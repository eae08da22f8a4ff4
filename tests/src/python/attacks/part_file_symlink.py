"""A download into a directory that others can write to follows no symbolic link.

An attacker makes a link under the name of the part file: before the download, if the name can be
computed, or between an interrupted download and the one that continues it.
"""

import os
import struct
import subprocess
import time

import mini
import server
from checks import check, check_equal, finish, note, wait_until
from server import ALICE, DIRECTORY, MIB, Server

PRECIOUS = b"precious"
SMALL_BYTES = 9 * MIB
LARGE_BYTES = 256 * MIB
# Between 1601 and 1970, in units of 100 ns.
EPOCH = 116_444_736_000_000_000
# The sign of a time in the former name.
AFTER_1970 = 0


class Target:
    """A directory for downloads, and a precious file beside it."""

    def __init__(self, name):
        self.directory = os.path.join(DIRECTORY, name)
        self.precious = os.path.join(DIRECTORY, name + "-precious")
        server.make_open_directory(self.directory)
        with open(self.precious, "wb") as file:
            file.write(PRECIOUS)

    def link(self, name):
        """Makes a link to the precious file."""
        os.symlink(self.precious, os.path.join(self.directory, name))

    def parts(self):
        """The part files of downloads."""
        return [name for name in os.listdir(self.directory) if name.endswith(".part")]

    def check_precious(self, title):
        """The file that the link names did not change."""
        with open(self.precious, "rb") as file:
            content = file.read(100)
        check_equal(f"{title}: the linked file", content, PRECIOUS)


def make_file(own, name, size):
    """Makes a file of the share."""
    with open(os.path.join(own.data, name), "wb") as file:
        for _ in range(size // MIB):
            file.write(os.urandom(MIB))


def computed_name(url, name, size, written_ns):
    """The former name of a part file: a hash (FNV-1a) of location, name, size and time."""
    value = 0xCBF29CE484222325
    facts = struct.pack("<QBQQ", size, AFTER_1970, written_ns, 0)
    for byte in url.encode() + b"\0" + name.encode() + facts:
        value = ((value ^ byte) * 0x100000001B3) % (1 << 64)
    return f"{name}.{value:016x}.part"


def attack_by_computed_name(own):
    """The link exists before the download."""
    target = Target("computed")
    connection = mini.connect(ALICE)
    file = connection.create("small.bin", access=mini.READ_ATTRIBUTES)
    times = connection.query_information(file, mini.FILE_BASIC_INFORMATION)
    written_ns = (struct.unpack_from("<Q", times, 16)[0] - EPOCH) * 100
    url = server.url("small.bin")
    # With and without the default port.
    for location in (url, url.replace(":445", "")):
        target.link(computed_name(location, "small.bin", SMALL_BYTES, written_ns))
    result = server.run("get", "--quiet", url, target.directory + "/")
    note(f"get: {result.code} {result.errors}")
    target.check_precious("computed name")
    path = os.path.join(target.directory, "small.bin")
    check("the download is no link", not os.path.islink(path))
    if result.code == 0:
        check_equal("bytes of the download", os.path.getsize(path), SMALL_BYTES)


def attack_before_continue(own):
    """The link replaces the part file of an interrupted download."""
    target = Target("continued")
    command = ["get", "--quiet", server.url("large.bin"), target.directory + "/"]
    environment = {**os.environ, "SMBEAM_PASSWORD": ALICE[1]}
    # Slow enough to be interrupted in the middle.
    slowly = [server.PROGRAM, *command, "--bwlimit=32M"]
    download = subprocess.Popen(slowly, env=environment)
    is_started = wait_until(lambda: target.parts() or download.poll() is not None)
    download.kill()
    download.wait()
    if not check("an interrupted download leaves a part file", is_started and target.parts()):
        return
    name = target.parts()[0]
    size = os.path.getsize(os.path.join(target.directory, name))
    note(f"{name} has {size} bytes")
    os.unlink(os.path.join(target.directory, name))
    target.link(name)
    result = server.run(*command, "--continue")
    note(f"get --continue: {result.code} {result.errors}")
    target.check_precious("continued download")
    path = os.path.join(target.directory, "large.bin")
    check("the continued download is no link", not os.path.islink(path))


def main():
    with Server() as own:
        make_file(own, "small.bin", SMALL_BYTES)
        make_file(own, "large.bin", LARGE_BYTES)
        attack_by_computed_name(own)
        attack_before_continue(own)
    finish()


main()
