"""Shares for event loops of asyncio: every method returns an awaitable."""

import asyncio
import weakref

from . import _file, _memory, _operations, _smbeam

__all__ = ["AsyncFile", "AsyncShare", "connect"]

#: The operations of each event loop.
_loops = weakref.WeakKeyDictionary()


def _operations_of(loop):
    operations = _loops.get(loop)
    if operations is None:
        operations = _smbeam.EventLoop()
        loop.add_reader(operations.fileno(), operations.run)
        _loops[loop] = operations
    return operations


async def _awaited(pending):
    loop = asyncio.get_running_loop()
    operations = _operations_of(loop)
    future = loop.create_future()
    key = operations.start(pending, future)
    try:
        return await future
    except asyncio.CancelledError:
        if key is not None:
            operations.cancel(key)
        raise


class AsyncFile:
    """A file of a share that is read and written by an event loop."""

    def __init__(self, share, raw, path, atomic):
        self._share = share
        self._raw = raw
        self._path = path
        self._target = atomic
        self.name = path

    async def read(self, size=-1):
        """Returns up to ``size`` bytes from the position on, by default all."""
        left = await self.size() - self._raw.position
        size = left if size is None or size < 0 else min(size, left)
        return await _awaited(self._raw.read(size)) if size > 0 else b""

    async def readinto(self, buffer):
        """Reads into a buffer, an array or a tensor. Returns the count of bytes."""
        return await _awaited(self._raw.readinto(_memory.view(buffer)))

    async def read_at(self, offset, size):
        """Returns up to ``size`` bytes from ``offset`` on; the position stays."""
        return await _awaited(self._raw.read_at(offset, size))

    async def readinto_at(self, buffer, offset):
        """Reads from ``offset`` into a buffer; the position stays."""
        return await _awaited(self._raw.readinto_at(offset, _memory.view(buffer)))

    async def write(self, data):
        """Writes all bytes at the position, and returns their count."""
        return await _awaited(self._raw.write(_memory.view(data)))

    async def size(self):
        """Returns the length of the file in bytes."""
        return await _awaited(self._raw.size())

    async def seek(self, offset):
        """Sets the position, in bytes from the start."""
        await _awaited(self._raw.seek(offset))
        return offset

    def tell(self):
        """Returns the position."""
        return self._raw.position

    async def truncate(self, size):
        """Sets the length of the file in bytes."""
        await _awaited(self._raw.truncate(size))

    async def flush(self):
        """Waits until the server has all written bytes."""
        await _awaited(self._raw.flush(False))

    async def sync(self):
        """Waits until all written bytes are on stable storage."""
        await _awaited(self._raw.flush(True))

    async def close(self):
        """Closes the file. A file of an atomic write takes the place of the old one."""
        await _awaited(self._raw.close())
        target, self._target = self._target, None
        if target:
            await _awaited(self._share._raw.rename(self._path, target, True))

    async def __aenter__(self):
        return self

    async def __aexit__(self, kind, value, trace):
        if kind is not None and self._target:
            self._target = None
            await _awaited(self._raw.close())
            await self._share._forget(self._path)
            return
        await self.close()

    async def chunks(self, size=1 << 20):
        """Yields the bytes from the position on, ``size`` at a time."""
        while chunk := await self.read(size):
            yield chunk


class AsyncShare(_operations.Operations):
    """A share of a server, or a directory in it, by URL: see ``smbeam.Share``."""

    def _run(self, pending):
        return _awaited(pending)

    async def __aenter__(self):
        return self

    async def __aexit__(self, *error):
        return None

    async def exists(self, path=""):
        """Returns whether a file or directory exists."""
        return await self._exists(path)

    async def is_dir(self, path=""):
        """Returns whether a path is a directory."""
        return await self._is_kind(path, "is_dir")

    async def is_file(self, path):
        """Returns whether a path is a file."""
        return await self._is_kind(path, "is_file")

    async def makedirs(self, path, *, exist_ok=False):
        """Creates a directory and the missing ones above it."""
        await self._makedirs(path, exist_ok)

    async def write(self, path, data, *, atomic=False, create_new=False, sync=False):
        """Writes the whole content of a file: see ``smbeam.Share.write``."""
        await self._write(path, data, atomic, create_new, sync)

    async def remove_tree(self, path):
        """Removes a directory with all its content."""
        await self._remove_tree(path)

    async def glob(self, pattern):
        """Returns the paths that match a pattern with ``*``, ``?``, ``[...]`` and ``**``."""
        return await self._glob(pattern)

    async def walk(self, path=""):
        """Yields the path, the directories and the files of each directory."""
        for directory, entries in await self.list_tree(path):
            directories = [e.name for e in entries if e.is_dir and not e.is_link]
            files = [e.name for e in entries if not e.is_dir or e.is_link]
            yield self._relative(directory), directories, files

    async def read_into(self, path, buffer, offset=0):
        """Reads from a file into a buffer, an array or a tensor. Returns the count of bytes."""
        async with await self.open(path) as file:
            return await file.readinto_at(buffer, offset)

    async def read_many(self, paths, *, lengths=None, on_error="raise"):
        """Returns the contents of many files: see ``smbeam.Share.read_many``."""
        return await self._read_many(paths, lengths, on_error)

    async def read_ranges(self, ranges, *, on_error="raise"):
        """Returns the bytes of ranges: see ``smbeam.Share.read_ranges``."""
        return await self._read_ranges(ranges, on_error)

    async def fill_ranges(self, ranges, buffers):
        """Fills buffers with ranges: see ``smbeam.Share.fill_ranges``."""
        await self._fill_ranges(ranges, buffers)

    async def open(self, path, mode="rb", *, atomic=False, write_through=False):
        """Opens a binary file."""
        kind, is_binary = _file.split_mode(mode if "b" in mode else mode + "b")
        path = self._path(path)
        if atomic and kind not in ("w", "w+"):
            raise ValueError("atomic files have the mode 'w'")
        actual = _file.part_name(path) if atomic else path
        raw = await _awaited(self._raw.open(actual, kind, write_through))
        return AsyncFile(self, raw, actual, path if atomic else None)

    async def watch(self, path="", *, recursive=False):
        """Yields changes in a directory: see ``smbeam.Share.watch``."""
        watch = await _awaited(self._raw.watch(self._path(path), recursive))
        while True:
            for change in await _awaited(watch.next()):
                yield change


async def connect(url, *, user=None, password=None, domain=None, **options):
    """Connects to the share of a URL such as ``smb://alice@nas/data``, and returns it."""
    share = AsyncShare(url, user=user, password=password, domain=domain, **options)
    await share.info()
    return share
