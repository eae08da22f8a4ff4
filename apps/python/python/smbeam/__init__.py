"""Files on SMB servers: Windows, Samba, ksmbd, smbeam, and every other one.

    import smbeam

    share = smbeam.connect("smb://alice@nas.example/data")
    with share.open("notes.txt") as file:
        print(file.read())
"""

from . import errors
from ._share import Share, close_all, connect, shares
from ._share import open_url as open  # noqa: A001
from ._smbeam import Entry, __version__
from .errors import SmbError

__all__ = [
    "Entry",
    "Share",
    "SmbError",
    "__version__",
    "close_all",
    "connect",
    "errors",
    "open",
    "shares",
]


def __getattr__(name):
    # asyncio takes most of the time of an import, and few programs use it.
    if name == "aio":
        import importlib

        return importlib.import_module(".aio", __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
