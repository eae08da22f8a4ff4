"""Epochs of a DataLoader over one share.

    python loader_epochs.py URL DIRECTORY METHOD [--workers 8] [--epochs 20] [--persistent]

Makes files in DIRECTORY, which URL names. METHOD starts the workers: fork, spawn or forkserver.
After each epoch the count of epochs is in the file ``epochs`` of the directory, and a line has the
memory of all processes in KiB. Fails if a file has wrong content, or if the memory of the last
tenth of the epochs exceeds that of the second tenth by more than a tenth and 8 MiB.
"""

import argparse
import os
import pathlib
import statistics
import zlib

import smbeam
from smbeam import datasets
from torch.utils.data import DataLoader

FILES = 240
TOLERANCE = 8 << 10


def content(number):
    """The content of a file: bytes that differ from file to file."""
    return bytes([number % 251]) * (number * 911 % 150_000 + 1)


def checksums(samples):
    return [zlib.crc32(sample.numpy()) for sample in samples]


def memory_of(pid):
    """KiB of memory of a process; pages that processes share count in part."""
    try:
        text = pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return 0
    return int(text.split("Pss:")[1].split()[0])


def descendants(pid):
    """The process and all processes below it."""
    yield pid
    try:
        children = pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except (FileNotFoundError, ProcessLookupError):
        return
    for child in children:
        yield from descendants(child)


def memory():
    """KiB of memory of this process and all below it, such as workers of a fork server."""
    return sum(map(memory_of, descendants(os.getpid())))


def check_growth(figures):
    tenth = len(figures) // 10
    if tenth < 2:
        return
    first = statistics.median(figures[tenth : 2 * tenth])
    last = statistics.median(figures[-tenth:])
    assert last <= first * 1.1 + TOLERANCE, f"memory grew from {first} to {last} KiB"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("url")
    parser.add_argument("directory", type=pathlib.Path)
    parser.add_argument("method")
    parser.add_argument("--workers", type=int, default=8)
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--persistent", action="store_true")
    arguments = parser.parse_args()
    names = [f"sample-{number:03}" for number in range(FILES)]
    for number, name in enumerate(names):
        (arguments.directory / name).write_bytes(content(number))
    wanted = sorted(zlib.crc32(content(number)) for number in range(FILES))
    share = smbeam.connect(arguments.url, password=os.environ["SMBEAM_TEST_PASSWORD"])
    # The parent uses its session, too.
    assert share.read(names[0]) == content(0)
    loader = DataLoader(
        datasets.FileDataset(share, names),
        8,
        shuffle=True,
        num_workers=arguments.workers,
        multiprocessing_context=arguments.method,
        persistent_workers=arguments.persistent,
        collate_fn=checksums,
        timeout=90,
    )
    figures = []
    for epoch in range(arguments.epochs):
        found = []
        for batch in loader:
            found += batch
            if len(found) == FILES // 2:
                figures.append(memory())
        assert sorted(found) == wanted, f"wrong content in epoch {epoch}"
        (arguments.directory / "epochs").write_text(str(epoch + 1))
        print(f"epoch {epoch}: {figures[-1]} KiB", flush=True)
    check_growth(figures)
    assert share.read(names[1]) == content(1)


if __name__ == "__main__":
    main()
