"""The Python package beside the class that comes with fsspec (smbprotocol), and beside local files.

    python compare.py smb://root@127.0.0.1:4450/data /dev/shm/share [--rounds 3] [--without-peer]

The URL and the directory name the same files. The password comes from SMBEAM_PASSWORD. Contenders
take turns within a round. Prints medians, and ratios of the package to each other contender.
"""

import argparse
import os
import pathlib
import resource
import shutil
import statistics
import time

import smbeam
from smbeam.fsspec import SmbeamFileSystem

GIB = 1 << 30
SMALL = 150_000


def usage():
    """Seconds of CPU of this process."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


class Contender:
    """One way to the files: an object like a file system of fsspec, and its root."""

    def __init__(self, name, fs, root):
        self.name, self.fs, self.root = name, fs, root

    def path(self, name):
        return f"{self.root}/{name}"

    def read_whole(self):
        with self.fs.open(self.path("large"), "rb") as file:
            count = 0
            while piece := file.read(1 << 20):
                count += len(piece)
        assert count == GIB

    def read_into(self):
        buffer = bytearray(64 << 20)
        with self.fs.open(self.path("large"), "rb") as file:
            count = 0
            while got := file.readinto(buffer):
                count += got
        assert count == GIB

    def read_small(self, count):
        for number in range(count):
            assert len(self.fs.cat_file(self.path(f"small/{number:05}"))) == SMALL

    def read_many(self, count):
        paths = [self.path(f"small/{number:05}") for number in range(count)]
        assert sum(map(len, self.fs.cat(paths).values())) == count * SMALL

    def list(self):
        entries = self.fs.ls(self.path("many"), detail=True)
        assert len(entries) == 10_000 and entries[0]["size"] is not None

    def write(self):
        piece = b"x" * (1 << 20)
        with self.fs.open(self.path("written"), "wb") as file:
            for _ in range(GIB >> 20):
                file.write(piece)


class Local(Contender):
    """Local files by the functions of Python."""

    def __init__(self, root):
        super().__init__("local", None, root)

    def read_whole(self):
        with open(self.path("large"), "rb", buffering=0) as file:
            while file.read(1 << 20):
                pass

    def read_into(self):
        buffer = bytearray(64 << 20)
        with open(self.path("large"), "rb", buffering=0) as file:
            while file.readinto(buffer):
                pass

    def read_small(self, count):
        self.read_many(count)

    def read_many(self, count):
        contents = {}
        for number in range(count):
            path = self.path(f"small/{number:05}")
            with open(path, "rb") as file:
                contents[path] = file.read()
        assert len(contents) == count

    def list(self):
        entries = [(entry.name, entry.stat().st_size) for entry in os.scandir(self.path("many"))]
        assert len(entries) == 10_000

    def write(self):
        piece = b"x" * (1 << 20)
        with open(self.path("written"), "wb") as file:
            for _ in range(GIB >> 20):
                file.write(piece)


def make_files(directory):
    """Makes the files that are missing."""
    small, many = directory / "small", directory / "many"
    if not (directory / "large").exists():
        with open(directory / "large", "wb") as file:
            for _ in range(GIB >> 20):
                file.write(os.urandom(1 << 20))
    for parent, count, length in ((small, 10_000, SMALL), (many, 10_000, 3)):
        parent.mkdir(exist_ok=True)
        content = os.urandom(length)
        for number in range(count):
            path = parent / f"{number:05}"
            if not path.exists():
                path.write_bytes(content)


def peer(login, password):
    from fsspec.implementations.smb import SMBFileSystem

    return SMBFileSystem(
        login["host"],
        port=login["port"],
        username=login["username"],
        password=password,
        share_access="r",
    )


def main():
    from fsspec.utils import infer_storage_options

    parser = argparse.ArgumentParser()
    parser.add_argument("url")
    parser.add_argument("directory", type=pathlib.Path)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--without-peer", action="store_true")
    parser.add_argument("--keep", action="store_true", help="keep the files")
    parser.add_argument("--only", nargs="*", help="names of measurements")
    arguments = parser.parse_args()
    password = os.environ["SMBEAM_PASSWORD"]
    login = infer_storage_options(arguments.url)
    directory = arguments.directory / "compare"
    directory.mkdir(exist_ok=True)
    make_files(directory)
    root = f"{login['path'].rstrip('/')}/compare"
    ours = SmbeamFileSystem(
        login["host"], port=login["port"], username=login["username"], password=password
    )
    contenders = [Contender("smbeam", ours, root), Local(str(directory))]
    if not arguments.without_peer:
        contenders.append(Contender("smbprotocol", peer(login, password), root))
    measurements = {
        "read 1 GiB by 1 MiB": (lambda it: it.read_whole(), True),
        "read 1 GiB by 64 MiB": (lambda it: it.read_into(), True),
        "1,000 files of 150 kB, one by one": (lambda it: it.read_small(1000), True),
        "1,000 files of 150 kB": (lambda it: it.read_many(1000), True),
        "10,000 files of 150 kB": (lambda it: it.read_many(10_000), False),
        "list 10,000 with details": (lambda it: it.list(), True),
        "write 1 GiB": (lambda it: it.write(), True),
    }
    for name, (run, has_peer) in measurements.items():
        if arguments.only and not any(each in name for each in arguments.only):
            continue
        measure(name, run, contenders if has_peer else contenders[:2], arguments.rounds)
    smbeam.close_all()
    if not arguments.keep:
        shutil.rmtree(directory)


def measure(name, run, contenders, rounds):
    times = {contender.name: [] for contender in contenders}
    cpu = {contender.name: [] for contender in contenders}
    for _ in range(rounds):
        for contender in contenders:
            start, before = time.perf_counter(), usage()
            run(contender)
            times[contender.name].append(time.perf_counter() - start)
            cpu[contender.name].append(usage() - before)
    ours = statistics.median(times["smbeam"])
    print(f"{name}:")
    for contender in contenders:
        median = statistics.median(times[contender.name])
        spread = f"{min(times[contender.name]):.2f}-{max(times[contender.name]):.2f}"
        processor = statistics.median(cpu[contender.name])
        ratio = "" if contender.name == "smbeam" else f"  smbeam is {median / ours:.2f} times"
        print(f"  {contender.name:12} {median:8.3f} s ({spread})  CPU {processor:.2f} s{ratio}")


if __name__ == "__main__":
    main()
