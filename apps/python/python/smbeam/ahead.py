"""Contents of many files in order, requested ahead of the caller."""

from collections import deque

from . import _operations

#: Number of files per request.
BATCH = 64
#: Number of requests ahead of the caller.
REQUESTS = 2
#: Limit of the bytes per request.
BYTES = 64 << 20


def contents(share, paths, *, lengths=None, batch=BATCH, requests=REQUESTS, on_error="raise"):
    """Yields the contents of files, in the order of ``paths``.

    ``lengths`` are their lengths in bytes, if they are known. Up to ``batch`` files per request and
    ``requests`` requests are in flight while the caller works. With ``on_error="return"`` an
    exception takes the place of the content of a file that cannot be read.
    """
    if batch < 1 or requests < 1:
        raise ValueError("batch and requests are at least 1")
    paths = list(paths)
    full = [share._path(path) for path in paths]
    if lengths is None:
        lengths = share.lengths(paths)
    asked = [min(length, _operations.EXPECTED_MAX) for length in lengths]
    running = deque()
    groups = _groups(list(zip(full, asked)), lengths, batch)
    while True:
        while len(running) < requests:
            group = next(groups, None)
            if group is None:
                break
            running.append(share._raw.read_many(group).start())
        if not running:
            return
        yield from _operations._checked(running.popleft().wait(), on_error)


def _groups(files, lengths, batch):
    """Groups of files with limited counts and bytes."""
    group, size = [], 0
    for file, length in zip(files, lengths):
        if group and (len(group) == batch or size + length > BYTES):
            yield group
            group, size = [], 0
        group.append(file)
        size += length
    if group:
        yield group
