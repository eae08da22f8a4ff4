"""Shares for threads: every method blocks until the server has answered."""

import os

from . import _file, _operations, _smbeam


class _Now:
    """An awaitable that has its result."""

    __slots__ = ("_pending",)

    def __init__(self, pending):
        self._pending = pending

    def __await__(self):
        return self._pending.wait()
        yield  # pragma: no cover


def complete(coroutine):
    """Runs a coroutine that never suspends."""
    try:
        coroutine.send(None)
    except StopIteration as stop:
        return stop.value
    coroutine.close()
    raise RuntimeError("the coroutine suspended")


class _Steps(_operations.Operations):
    """The operations of several steps, with results instead of awaitables."""

    def _run(self, pending):
        return _Now(pending)


class Share(_operations.Operations):
    """A share of a server, or a directory in it, by URL.

    The process connects at the first operation. All objects with the same server, login and
    options use one session. Objects may be used by any number of threads, after a fork, and in
    child processes to which they are sent by pickle.
    """

    def __init__(self, url, *, user=None, password=None, domain=None, **options):
        super().__init__(url, user=user, password=password, domain=domain, **options)
        self._steps = _Steps.__new__(_Steps)
        self._steps.__dict__.update(self.__dict__)

    def _run(self, pending):
        return pending.wait()

    def __enter__(self):
        return self

    def __exit__(self, *error):
        return None

    def exists(self, path=""):
        """Returns whether a file or directory exists."""
        return complete(self._steps._exists(path))

    def is_dir(self, path=""):
        """Returns whether a path is a directory."""
        return complete(self._steps._is_kind(path, "is_dir"))

    def is_file(self, path):
        """Returns whether a path is a file."""
        return complete(self._steps._is_kind(path, "is_file"))

    def makedirs(self, path, *, exist_ok=False):
        """Creates a directory and the missing ones above it."""
        return complete(self._steps._makedirs(path, exist_ok))

    def write(self, path, data, *, atomic=False, create_new=False, sync=False):
        """Writes the whole content of a file.

        With ``atomic`` readers see the old content or the new one, and never a part. With
        ``sync`` the bytes are on stable storage when the function returns.
        """
        return complete(self._steps._write(path, data, atomic, create_new, sync))

    def remove_tree(self, path):
        """Removes a directory with all its content."""
        return complete(self._steps._remove_tree(path))

    def glob(self, pattern):
        """Returns the paths that match a pattern with ``*``, ``?``, ``[...]`` and ``**``."""
        return complete(self._steps._glob(pattern))

    def walk(self, path=""):
        """Yields the path, the directories and the files of each directory, as os.walk does."""
        for directory, entries in self.list_tree(path):
            directories = [e.name for e in entries if e.is_dir and not e.is_link]
            files = [e.name for e in entries if not e.is_dir or e.is_link]
            yield self._relative(directory), directories, files

    def read_into(self, path, buffer, offset=0):
        """Reads from a file into a buffer, an array or a tensor. Returns the count of bytes."""
        with self.open(path, "rb", buffering=0) as file:
            return file.readinto_at(buffer, offset)

    def read_many(self, paths, *, lengths=None, on_error="raise"):
        """Returns the contents of many files, several of them per message.

        ``lengths`` are the lengths in bytes, if they are known. With ``on_error="return"`` the
        list has an exception in place of each file that cannot be read.
        """
        return complete(self._steps._read_many(paths, lengths, on_error))

    def lengths(self, paths):
        """Returns the expected lengths of files in bytes, for ``read_many``.

        Directories with many of the files are listed; the others have a default.
        """
        return complete(self._steps._lengths([self._path(path) for path in paths]))

    def read_ranges(self, ranges, *, on_error="raise"):
        """Returns the bytes of ranges, each a path with a start and an end."""
        return complete(self._steps._read_ranges(ranges, on_error))

    def fill_ranges(self, ranges, buffers):
        """Fills buffers, arrays or tensors with ranges, each a path with a start and an end.

        Fails with EOFError if a file ends within its range.
        """
        complete(self._steps._fill_ranges(ranges, buffers))

    def open(
        self,
        path,
        mode="r",
        buffering=-1,
        encoding=None,
        errors=None,
        newline=None,
        *,
        atomic=False,
        write_through=False,
    ):
        """Opens a file, as the built-in function does.

        An ``atomic`` file takes the place of the old one when it is closed, and vanishes if the
        ``with`` block ends with an exception.
        """
        return _file.open_file(
            self,
            self._path(path),
            mode,
            buffering,
            encoding,
            errors,
            newline,
            atomic,
            write_through,
        )

    def download(self, path, local, *, progress=None):
        """Downloads a file to a path of this machine. Returns the count of bytes.

        ``progress`` is called with the count of bytes of each piece.
        """
        progress = progress or _nothing
        return self._raw.download(self._path(path), os.fspath(local), progress).wait()

    def upload(self, local, path, *, create_new=False, progress=None):
        """Uploads a file of this machine. Returns the count of bytes."""
        progress, local = progress or _nothing, os.fspath(local)
        return self._raw.upload(local, self._path(path), create_new, progress).wait()

    def watch(self, path="", *, recursive=False):
        """Yields changes in a directory: pairs of an action and a path relative to it.

        Actions are ``created``, ``removed``, ``modified``, ``renamed_from``, ``renamed_to`` and
        ``overflow``, after which the directory must be listed again.
        """
        watch = self._raw.watch(self._path(path), recursive).wait()
        while True:
            yield from watch.next().wait()

    def close(self):
        """Does nothing: sessions belong to the process. ``smbeam.close_all`` ends them."""


def _nothing(_count):
    return None


def shares(url, *, user=None, password=None, domain=None, **options):
    """Returns the names of the shares of a server, such as ``smb://alice@nas``."""
    login, texts = (user, password, domain), _operations.texts(options)
    return _smbeam.list_shares(str(url), login, texts).wait()


def connect(url, *, user=None, password=None, domain=None, **options):
    """Connects to the share of a URL such as ``smb://alice@nas/data``, and returns it."""
    share = Share(url, user=user, password=password, domain=domain, **options)
    share.info()
    return share


def open_url(url, mode="r", *arguments, user=None, password=None, domain=None, **keywords):
    """Opens the file of a URL, as the built-in function does a path."""
    file = Share(url, user=user, password=password, domain=domain)
    return file.open("", mode, *arguments, **keywords)


def close_all():
    """Logs off from all servers. Objects that are used later connect again."""
    _smbeam.close_all().wait()
