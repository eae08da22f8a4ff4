"""Files: objects of the package io over files of a share."""

import io
import os

from . import _memory, _paths

#: Size of the buffer of files in bytes.
BUFFER_SIZE = 256 << 10


class RawFile(io.RawIOBase):
    """An unbuffered file of a share. ``open`` wraps it as the built-in function does."""

    def __init__(self, share, raw, path, mode, atomic=None):
        self._share = share
        self._raw = raw
        self._path = path
        self._mode = mode
        self._target = atomic
        self.name = path

    @property
    def mode(self):
        """The mode of the file, such as ``"rb"``."""
        return self._mode + "b"

    def readable(self):
        return "r" in self._mode or "+" in self._mode

    def writable(self):
        return self._mode != "r"

    def seekable(self):
        return True

    def _check(self):
        if self.closed:
            raise ValueError("I/O operation on closed file")

    def _check_readable(self):
        self._check()
        if not self.readable():
            raise io.UnsupportedOperation("not readable")

    def readinto(self, buffer):
        """Reads into a buffer, an array or a tensor. Returns the count of bytes."""
        self._check_readable()
        return self._raw.readinto(_memory.view(buffer)).wait()

    def readinto_at(self, buffer, offset):
        """Reads from ``offset`` into a buffer, an array or a tensor; the position stays."""
        self._check_readable()
        return self._raw.readinto_at(offset, _memory.view(buffer)).wait()

    def read(self, size=-1):
        self._check_readable()
        if size is None or size < 0:
            return self.readall()
        left = self.size() - self._raw.position
        return self._raw.read(max(0, min(size, left))).wait() if left > 0 else b""

    def readall(self):
        self._check_readable()
        left = self.size() - self._raw.position
        return self._raw.read(left).wait() if left > 0 else b""

    def write(self, data):
        self._check()
        if not self.writable():
            raise io.UnsupportedOperation("not writable")
        return self._raw.write(_memory.view(data)).wait()

    def size(self):
        """Returns the length of the file in bytes.

        That of a file which is open for reading only is the one at the open, until the position
        reaches it: another program may have written more since.
        """
        self._check()
        return self._raw.size().wait()

    def tell(self):
        self._check()
        return self._raw.position

    def seek(self, offset, whence=os.SEEK_SET):
        self._check()
        if whence == os.SEEK_CUR:
            offset += self._raw.position
        elif whence == os.SEEK_END:
            offset += self.size()
        elif whence != os.SEEK_SET:
            raise ValueError(f"invalid whence: {whence}")
        if offset < 0:
            raise OSError(22, "negative seek position")
        self._raw.seek(offset).wait()
        return offset

    def truncate(self, size=None):
        self._check()
        if not self.writable():
            raise io.UnsupportedOperation("not writable")
        size = self._raw.position if size is None else size
        self._raw.truncate(size).wait()
        return size

    def flush(self):
        """Waits until the server has all written bytes."""
        if not self.closed and self.writable():
            self._raw.flush(False).wait()

    def sync(self):
        """Waits until all written bytes are on stable storage."""
        self._check()
        self._raw.flush(True).wait()

    def discard(self):
        """Closes a file of an atomic write, and removes what was written."""
        if self.closed:
            return
        super().close()
        self._raw.close().wait()
        if self._target:
            self._share._raw.remove(self._path).wait()

    def close(self):
        if self.closed:
            return
        # The base class calls `flush`, which reports errors of earlier writes.
        try:
            super().close()
        finally:
            self._raw.close().wait()
        if self._target:
            self._share._raw.rename(self._path, self._target, True).wait()

    def __reduce__(self):
        if self.writable():
            raise TypeError("a file that is open for writing cannot be pickled")
        self._check()
        return (_reopen, (self._share, self._path, self._raw.position, 0))

    def __repr__(self):
        return f"<smbeam.RawFile {self._path!r} mode={self.mode!r}>"


class _Buffered(io.BufferedIOBase):
    """A file with a buffer. The methods are those of a class of the package io.

    It is no subclass of that class: NumPy before 1.25 would take it for a file with a descriptor
    (``numpy.compat.isfileobj``), and fail.
    """

    #: The class of the package io.
    _KIND = None
    #: The methods that are those of the object of that class.
    _METHODS = ("flush", "seek", "tell", "truncate", "readable", "writable", "seekable", "fileno")

    def __init__(self, raw, buffer_size):
        self._buffer = buffer = self._KIND(raw, buffer_size)
        for name in self._METHODS:
            # An attribute of the object, so that a call is a call of the buffer.
            setattr(self, name, getattr(buffer, name))

    @property
    def raw(self):
        """The unbuffered file."""
        return self._buffer.raw

    @property
    def closed(self):
        """Whether the file is closed."""
        return self._buffer.closed

    @property
    def mode(self):
        """The mode of the file, such as ``"rb"``."""
        return self._buffer.mode

    @property
    def name(self):
        """The path of the file."""
        return self._buffer.name

    def detach(self):
        """Writes the content of the buffer, and returns the unbuffered file."""
        return self._buffer.detach()

    def close(self):
        """Writes the content of the buffer, and closes the file."""
        self._buffer.close()

    def size(self):
        """Returns the length of the file in bytes."""
        if self.writable():
            self.flush()
        return self.raw.size()

    def sync(self):
        """Waits until all written bytes are on stable storage."""
        self.flush()
        self.raw.sync()

    def readinto(self, buffer):
        """Reads into a buffer, an array or a tensor. Returns the count of bytes."""
        return self._buffer.readinto(_memory.view(buffer))

    def readinto_at(self, buffer, offset):
        """Reads from ``offset`` into a buffer, an array or a tensor; the position stays."""
        if self.writable():
            self.flush()
        return self.raw.readinto_at(buffer, offset)

    def __reduce_ex__(self, protocol):
        # From Python 3.13 on, the classes of io have a method of this name that refuses.
        return self.__reduce__()

    def __reduce__(self):
        raise TypeError("a file that is open for writing cannot be pickled")

    def __exit__(self, kind, value, trace):
        if kind is not None and self.raw._target:
            raw = self.detach()
            raw.discard()
            return
        super().__exit__(kind, value, trace)

    def __repr__(self):
        return f"<smbeam.{type(self).__name__} {self.name!r}>"


_READS = ("read", "read1", "readline", "readlines", "readinto1", "peek")
_WRITES = ("write", "writelines")


class BufferedReader(_Buffered):
    """A file of a share that is open for reading."""

    _KIND = io.BufferedReader
    _METHODS = _Buffered._METHODS + _READS

    def __reduce__(self):
        return (_reopen, (self.raw._share, self.raw._path, self.tell(), 1))


class BufferedWriter(_Buffered):
    """A file of a share that is open for writing."""

    _KIND = io.BufferedWriter
    _METHODS = _Buffered._METHODS + _WRITES


class BufferedRandom(_Buffered):
    """A file of a share that is open for reading and writing."""

    _KIND = io.BufferedRandom
    _METHODS = _Buffered._METHODS + _READS + _WRITES


def _reopen(share, path, position, is_buffered):
    file = open_file(share, path, "rb", buffering=-1 if is_buffered else 0)
    file.seek(position)
    return file


def split_mode(mode):
    """Splits a mode of the built-in function open into the part for files, and whether it is
    binary."""
    characters = set(mode)
    kinds = characters & set("rwax")
    if len(characters) != len(mode) or len(kinds) != 1 or characters - set("rwax+bt"):
        raise ValueError(f"invalid mode: {mode!r}")
    if {"b", "t"} <= characters:
        raise ValueError("can't have text and binary mode at once")
    return kinds.pop() + ("+" if "+" in characters else ""), "b" in characters


def part_name(path):
    """Returns a name for the unfinished file of an atomic write, in the same directory."""
    name = f".{path.rpartition('/')[2]}.{os.urandom(6).hex()}.part"
    return _paths.join(_paths.parent(path), name)


def check_text_arguments(is_binary, encoding, errors, newline):
    """Fails if a binary file has arguments for text."""
    if is_binary and (encoding is not None or errors is not None or newline is not None):
        raise ValueError("binary mode doesn't take an encoding, errors or newline argument")


def open_file(
    share,
    path,
    mode="r",
    buffering=-1,
    encoding=None,
    errors=None,
    newline=None,
    atomic=False,
    write_through=False,
):
    """Opens a file of a share; ``path`` is relative to its root."""
    kind, is_binary = split_mode(mode)
    check_text_arguments(is_binary, encoding, errors, newline)
    if atomic and kind not in ("w", "w+"):
        raise ValueError("atomic files have the mode 'w'")
    actual = part_name(path) if atomic else path
    raw = share._raw.open(actual, kind, write_through).wait()
    raw = RawFile(share, raw, actual, kind, atomic=path if atomic else None)
    if buffering == 0:
        if not is_binary:
            raise ValueError("can't have unbuffered text I/O")
        return raw
    size = BUFFER_SIZE if buffering in (-1, 1) else buffering
    if "+" in kind:
        buffered = BufferedRandom(raw, size)
    elif kind == "r":
        buffered = BufferedReader(raw, size)
    else:
        buffered = BufferedWriter(raw, size)
    if is_binary:
        return buffered
    text = io.TextIOWrapper(buffered, encoding, errors, newline, buffering == 1)
    text.mode = mode
    return text
