"""Exceptions: subclasses of OSError with errno, and with the NT status of the server."""

import errno as _errno


class SmbError(OSError):
    """An operation failed.

    ``errno``, ``strerror`` and ``filename`` are those of OSError. ``status`` is the NT status of
    the server as an integer, and ``status_name`` its name such as ``"ACCESS_DENIED"``; both are
    None if the error does not come from the server.
    """

    status = None
    status_name = None

    def __str__(self):
        # The message of the client names the operation, the object and the reason. Programs make
        # errors of a message alone, too: PyTorch does for errors of its workers.
        return super().__str__() if self.strerror is None else str(self.strerror)

    def __reduce__(self):
        arguments = (type(self), self.errno, self.strerror, self.filename)
        return (_restore, (*arguments, self.status, self.status_name))


class NotFoundError(SmbError, FileNotFoundError):
    """The file, directory or share does not exist."""


class ExistsError(SmbError, FileExistsError):
    """A file or directory of this name exists."""


class AccessError(SmbError, PermissionError):
    """The user lacks the permission, or the share is read-only."""


class LoginError(SmbError, PermissionError):
    """The server refuses the login, or it does not prove its identity."""


class BusyError(SmbError, BlockingIOError):
    """Another open of the file, or a byte-range lock, is in conflict."""


class NotEmptyError(SmbError):
    """The directory still has entries."""


class IsDirectoryError(SmbError, IsADirectoryError):
    """The path is a directory."""


class NotDirectoryError(SmbError, NotADirectoryError):
    """The path is not a directory."""


class UnreachableError(SmbError, ConnectionError):
    """No connection to the server: it is not found, or not reachable."""


class LostError(SmbError, ConnectionError):
    """The connection was lost and could not be restored within the time limit."""


class TimeoutError(SmbError, TimeoutError):  # noqa: A001
    """The server did not respond within the time limit."""


_CLASSES = {
    "not_found": NotFoundError,
    "already_exists": ExistsError,
    "permission_denied": AccessError,
    "login_failed": LoginError,
    "untrusted": LoginError,
    "busy": BusyError,
    "directory_not_empty": NotEmptyError,
    "unreachable": UnreachableError,
    "connection_lost": LostError,
    "timed_out": TimeoutError,
}


def _restore(kind, number, message, path, status, status_name):
    error = kind(number, message, path)
    error.status = status
    error.status_name = status_name
    return error


def make(kind, number, message, path, status, status_name):
    """Makes the exception for an error of the client."""
    if number == _errno.EISDIR:
        cls = IsDirectoryError
    elif number == _errno.ENOTDIR:
        cls = NotDirectoryError
    else:
        cls = _CLASSES.get(kind, SmbError)
    return _restore(cls, number, message, path, status, status_name)
