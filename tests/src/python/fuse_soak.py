"""Uses two mounts of a share for some time, and prints the memory of their processes.

Arguments: two mounts of one share, the directory that is shared, a duration in seconds, and the
numbers of the processes. It prints a line with the resident bytes of each process after a quarter
of the time, and another one at the end.
"""

import fcntl
import os
import random
import shutil
import sys
import time

ONE, TWO, SHARED = sys.argv[1:4]
SECONDS = float(sys.argv[4])
PROCESSES = sys.argv[5:]
RANDOM = random.Random(7)
FILES = 40


def resident(process):
    with open(f"/proc/{process}/status", encoding="ascii") as file:
        line = next(line for line in file if line.startswith("RssAnon:"))
    return int(line.split()[1]) << 10


def print_memory():
    print(*(resident(process) for process in PROCESSES), flush=True)


def read(path):
    with open(path, "rb") as file:
        return file.read()


def fill(directory, data):
    """Makes the files on one mount, with all that belongs to a file."""
    os.mkdir(f"{ONE}/{directory}")
    for number, bytes_of_file in enumerate(data):
        path = f"{ONE}/{directory}/{number}"
        with open(path, "wb") as file:
            file.write(bytes_of_file)
        os.chmod(path, 0o640)
        os.setxattr(path, "user.number", str(number).encode())
        os.utime(path, (number, number))
    os.symlink("0", f"{ONE}/{directory}/link")
    os.link(f"{ONE}/{directory}/1", f"{ONE}/{directory}/second")


def check(directory, data):
    """Reads the files on the other mount and on the disk of the server."""
    names = {str(number) for number in range(len(data))} | {"link", "second"}
    assert set(os.listdir(f"{TWO}/{directory}")) == names
    for number, bytes_of_file in enumerate(data):
        path = f"{TWO}/{directory}/{number}"
        assert read(path) == bytes_of_file == read(f"{SHARED}/{directory}/{number}"), path
        assert int(os.stat(path).st_mtime) == number, path
        assert os.getxattr(path, "user.number") == str(number).encode(), path
    assert read(f"{TWO}/{directory}/link") == data[0]


def change(directory, data):
    """Changes the files on both mounts, with locks."""
    for number in range(0, len(data), 2):
        mount = RANDOM.choice((ONE, TWO))
        with open(f"{mount}/{directory}/{number}", "r+b") as file:
            fcntl.lockf(file, fcntl.LOCK_EX)
            file.truncate(len(data[number]) // 2)
            file.seek(0, os.SEEK_END)
            file.write(b"changed")
            file.flush()
            os.utime(file.fileno(), (number, number))
        data[number] = data[number][: len(data[number]) // 2] + b"changed"
    for number in range(1, len(data), 2):
        mount = RANDOM.choice((ONE, TWO))
        os.rename(f"{mount}/{directory}/{number}", f"{mount}/{directory}/moved")
        os.rename(f"{mount}/{directory}/moved", f"{mount}/{directory}/{number}")


def turn(number):
    directory = f"d{number}"
    sizes = [RANDOM.choice((0, 100, 5000, 70_000, 300_000)) for _ in range(FILES)]
    data = [RANDOM.randbytes(size) for size in sizes]
    fill(directory, data)
    check(directory, data)
    change(directory, data)
    check(directory, data)
    shutil.rmtree(f"{RANDOM.choice((ONE, TWO))}/{directory}")


def main():
    start, number, is_warm = time.monotonic(), 0, False
    while (passed := time.monotonic() - start) < SECONDS:
        turn(number)
        number += 1
        if not is_warm and passed >= SECONDS / 4:
            is_warm = True
            print_memory()
    if not is_warm:
        print_memory()
    print_memory()


main()
