"""Operations on a share, written once for threads and for event loops.

``_run`` of a subclass takes an operation and returns its result (threads) or an awaitable for it
(event loops). Functions of several steps are coroutines; for threads they never suspend.
"""

import errno

from . import _file, _glob, _memory, _paths, errors
from ._smbeam import share as _raw_share

#: Number of files in one directory from which a listing of it is cheaper than unknown lengths.
LIST_FROM = 32
#: Length in bytes that a file of many is expected to have if nothing is known about it.
GUESS = 64 << 10
#: Largest length that a read of a file asks for in its first message.
EXPECTED_MAX = 1 << 20


class Description:
    """The arguments that describe a share: its URL, the login and the options."""

    def __init__(self, url, user, password, domain, options):
        self.url = str(url)
        self.user = user
        self.password = password
        self.domain = domain
        self.options = options

    def connect(self):
        """Returns the share as an object of the compiled module."""
        return _raw_share(self.url, (self.user, self.password, self.domain), texts(self.options))

    def state(self):
        """Returns the arguments for a pickle. The password is in it only for a child process that
        the package multiprocessing starts, as with its own secret. Others find the password as
        every program does: in the environment or in the file of credentials."""
        password = self.password if _is_for_child() else None
        return (self.url, self.user, password, self.domain, self.options)


def texts(options):
    """Returns options by name as pairs of texts. Lists have commas in between."""
    return [(name, _text(value)) for name, value in options.items() if value is not None]


def _text(value):
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, (list, tuple)):
        return ",".join(map(str, value))
    return str(value)


def _is_for_child():
    from multiprocessing import context

    return context.get_spawning_popen() is not None


class Operations:
    """What ``Share`` and ``AsyncShare`` have in common."""

    def __init__(self, url, *, user=None, password=None, domain=None, **options):
        self._description = Description(url, user, password, domain, options)
        self._raw, self._base = self._description.connect()

    @property
    def url(self):
        """The URL of the share or of the directory in it."""
        return self._description.url

    def _path(self, path):
        return _paths.join(self._base, path)

    def _relative(self, path):
        if not self._base:
            return path
        return path[len(self._base) + 1 :]

    def __repr__(self):
        from ._smbeam import without_password

        return f"<smbeam.{type(self).__name__} {without_password(self.url)}>"

    def __reduce__(self):
        state = self._description.state()
        return (_rebuild, (type(self), state, self._raw.was_connected))

    # One message each.

    def stat(self, path="", *, follow=True):
        """Returns the ``Entry`` of a file or directory."""
        return self._run(self._raw.stat(self._path(path), follow))

    def list(self, path="", pattern="*"):
        """Returns the entries of a directory, with metadata, in one pass."""
        return self._run(self._raw.list(self._path(path), pattern))

    def list_tree(self, path="", depth=None):
        """Returns pairs of a directory and its entries, for the directory and those below it."""
        return self._run(self._raw.list_tree(self._path(path), depth))

    def read(self, path, *, expected=EXPECTED_MAX):
        """Returns the content of a file. ``expected`` is its length in bytes, if it is known."""
        expected = min(expected, EXPECTED_MAX)
        return self._run(self._raw.read(self._path(path), expected))

    def mkdir(self, path):
        """Creates a directory."""
        return self._run(self._raw.mkdir(self._path(path), False))

    def rmdir(self, path):
        """Removes an empty directory."""
        return self._run(self._raw.rmdir(self._path(path)))

    def remove(self, path):
        """Removes a file."""
        return self._run(self._raw.remove(self._path(path)))

    def rename(self, path, target, *, replace=False):
        """Renames a file or directory; with ``replace`` it takes the place of another file."""
        return self._run(self._raw.rename(self._path(path), self._path(target), replace))

    def copy(self, path, target, *, share=None):
        """Copies a file on the server, to this or another share. Returns the count of bytes."""
        other = share or self
        return self._run(self._raw.copy(self._path(path), other._raw, other._path(target)))

    def set_times(self, path, *, accessed=None, modified=None):
        """Sets times in seconds since 1970; None keeps a time."""
        return self._run(self._raw.set_times(self._path(path), accessed, modified))

    def streams(self, path):
        """Returns the names of the alternate data streams with their lengths in bytes."""
        return self._run(self._raw.streams(self._path(path)))

    def read_stream(self, path, stream):
        """Returns the content of an alternate data stream."""
        return self._run(self._raw.read_stream(self._path(path), stream))

    def write_stream(self, path, stream, data):
        """Writes the content of an alternate data stream."""
        return self._run(self._raw.write_stream(self._path(path), stream, data))

    def remove_stream(self, path, stream):
        """Removes an alternate data stream."""
        return self._run(self._raw.remove_stream(self._path(path), stream))

    def xattrs(self, path):
        """Returns the extended attributes: names with values as bytes."""
        return self._run(self._raw.attributes(self._path(path)))

    def set_xattr(self, path, name, value):
        """Sets an extended attribute."""
        return self._run(self._raw.set_attribute(self._path(path), name, bytes(value)))

    def remove_xattr(self, path, name):
        """Removes an extended attribute."""
        return self._run(self._raw.set_attribute(self._path(path), name, b""))

    def acl(self, path=""):
        """Returns owner, group and access control list as SDDL."""
        return self._run(self._raw.security(self._path(path)))

    def set_acl(self, path, sddl):
        """Replaces the access control list, given as SDDL."""
        return self._run(self._raw.set_security(self._path(path), sddl))

    def volume(self, path=""):
        """Returns the size, the available and the free space of the volume in bytes."""
        return self._run(self._raw.volume(self._path(path)))

    def symlink(self, target, path, *, is_directory=False):
        """Creates the symbolic link ``path`` with a target relative to its directory.

        Windows has another kind of link for a target that is a directory.
        """
        return self._run(self._raw.symlink(target, self._path(path), is_directory))

    def readlink(self, path):
        """Returns the target of a symbolic link."""
        return self._run(self._raw.read_link(self._path(path)))

    def info(self):
        """Connects, and returns what was negotiated: dialect, protection, channels."""
        return self._run(self._raw.connect())

    # Several steps.

    async def _exists(self, path):
        try:
            await self._run(self._raw.stat(self._path(path), True))
        except (errors.NotFoundError, errors.NotDirectoryError):
            return False
        return True

    async def _is_kind(self, path, kind):
        try:
            entry = await self._run(self._raw.stat(self._path(path), True))
        except (errors.NotFoundError, errors.NotDirectoryError):
            return False
        return getattr(entry, kind)

    async def _makedirs(self, path, exist_ok):
        path = self._path(path)
        if not path:
            if exist_ok:
                return
            raise errors.make(
                "already_exists", errno.EEXIST, "the root of the share exists", path, None, None
            )
        if exist_ok:
            await self._run(self._raw.mkdir(path, True))
            return
        parent = _paths.parent(path)
        if parent:
            await self._run(self._raw.mkdir(parent, True))
        await self._run(self._raw.mkdir(path, False))

    async def _write(self, path, data, atomic, create_new, sync):
        path, data = self._path(path), _memory.view(data)
        if not atomic:
            await self._run(self._raw.write(path, data, create_new, sync))
            return
        part = _file.part_name(path)
        try:
            await self._run(self._raw.write(part, data, True, sync))
            await self._run(self._raw.rename(part, path, not create_new))
        except BaseException:
            await self._forget(part)
            raise

    async def _forget(self, path):
        try:
            await self._run(self._raw.remove(path))
        except OSError:
            pass

    async def _remove_tree(self, path):
        path = self._path(path)
        tree = await self._run(self._raw.list_tree(path, None))
        files = [e.path for _, entries in tree for e in entries if not e.is_dir]
        links = [e.path for _, entries in tree for e in entries if e.is_dir and e.is_link]
        await self._run(self._raw.remove_many(files))
        for link in links:
            await self._run(self._raw.rmdir(link))
        for directory, _ in reversed(tree):
            if directory != "":
                await self._run(self._raw.rmdir(directory))

    async def _glob(self, pattern):
        pattern = _paths.clean(pattern)
        if not _glob.has_magic(pattern):
            return [pattern] if await self._exists(pattern) else []
        start, rest = _glob.fixed_part(pattern)
        matches = _glob.compile_pattern(rest).match
        base = self._path(start)
        try:
            tree = await self._run(self._raw.list_tree(base, _glob.depth_of(rest)))
        except (errors.NotFoundError, errors.NotDirectoryError):
            return []
        cut = len(base) + 1 if base else 0
        found = [e.path for _, entries in tree for e in entries if matches(e.path[cut:])]
        return sorted(self._relative(path) for path in found)

    async def _lengths(self, paths):
        """The expected lengths of files. Directories with many of them are listed."""
        by_parent = {}
        for path in paths:
            by_parent.setdefault(_paths.parent(path), []).append(path)
        lengths = {}
        for parent, members in by_parent.items():
            if len(members) < LIST_FROM:
                continue
            try:
                entries = await self._run(self._raw.list(parent, "*"))
            except OSError:
                continue
            lengths.update((entry.path, entry.size) for entry in entries)
        return [min(lengths.get(path, GUESS), EXPECTED_MAX) for path in paths]

    async def _read_many(self, paths, lengths, on_error):
        paths = [self._path(path) for path in paths]
        if lengths is None:
            lengths = [None] * len(paths)
        else:
            lengths = [min(length, EXPECTED_MAX) for length in lengths]
        results = await self._run(self._raw.read_many(list(zip(paths, lengths))))
        return _checked(results, on_error)

    async def _read_ranges(self, ranges, on_error):
        buffers = [bytearray(max(0, end - start)) for _, start, end in ranges]
        counts = _checked(await self._counts(ranges, buffers), on_error)
        return [
            count if isinstance(count, Exception) else bytes(memoryview(buffer)[:count])
            for count, buffer in zip(counts, buffers)
        ]

    async def _fill_ranges(self, ranges, buffers):
        views = [memoryview(_memory.view(buffer)).cast("B") for buffer in buffers]
        for (path, start, end), view in zip(ranges, views):
            if len(view) != end - start:
                raise ValueError(f"{path}: the buffer has {len(view)} bytes, not {end - start}")
        counts = _checked(await self._counts(ranges, views), "raise")
        for (path, start, end), count in zip(ranges, counts):
            if count < end - start:
                raise EOFError(f"{path} ends at {start + count}, before {end}")

    async def _counts(self, ranges, buffers):
        if len(ranges) != len(buffers):
            raise ValueError("ranges and buffers have different lengths")
        requests = [
            (self._path(path), start, buffer)
            for (path, start, _), buffer in zip(ranges, buffers)
        ]
        return await self._run(self._raw.read_ranges(requests))


def _checked(results, on_error):
    if on_error not in ("raise", "return"):
        raise ValueError(f"on_error is 'raise' or 'return', not {on_error!r}")
    if on_error == "raise":
        for result in results:
            if isinstance(result, Exception):
                raise result
    return results


def _rebuild(cls, state, was_connected):
    url, user, password, domain, options = state
    share = cls(url, user=user, password=password, domain=domain, **options)
    if was_connected:
        share._raw.set_connected()
    return share

