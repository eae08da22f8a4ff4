"""Works with a share through pysmb: PORT SHARE USER PASSWORD TRANSPORT."""

import hashlib
import io
import sys

from smb.smb_structs import OperationFailure
from smb.SMBConnection import SMBConnection

SIZES = (0, 1, 65536, 1000003)


def content(size):
    return (hashlib.sha256(str(size).encode()).digest() * (size // 32 + 1))[:size]


def names(connection, share, directory):
    listed = connection.listPath(share, directory)
    return sorted(file.filename for file in listed if file.filename not in (".", ".."))


def fails(action, *arguments):
    try:
        action(*arguments)
    except OperationFailure:
        return
    raise AssertionError(f"{action.__name__}{arguments} works")


def read(connection, share, path, *part):
    target = io.BytesIO()
    connection.retrieveFileFromOffset(share, path, target, *part)
    return target.getvalue()


def main(port, share, user, password, transport):
    connection = SMBConnection(
        user, password, "client", "*SMBSERVER", use_ntlm_v2=True, is_direct_tcp=transport == "tcp"
    )
    assert connection.connect("127.0.0.1", int(port)), "no login"
    assert connection.isUsingSMB2, "it speaks SMB1"
    assert connection.echo(b"heard") == b"heard"
    assert share in [one.name for one in connection.listShares()], "the share is not listed"
    connection.createDirectory(share, "directory")
    for size in SIZES:
        path = f"directory/{size}"
        stored = connection.storeFile(share, path, io.BytesIO(content(size)))
        assert stored == size, f"{stored} of {size} bytes were stored"
        assert read(connection, share, path) == content(size), f"{path} differs"
        assert connection.getAttributes(share, path).file_size == size
    assert names(connection, share, "/directory") == sorted(str(size) for size in SIZES)
    assert read(connection, share, "directory/1000003", 65530, 20) == content(1000003)[65530:65550]
    connection.storeFileFromOffset(share, "directory/65536", io.BytesIO(b"changed"), 100)
    changed = content(65536)[:100] + b"changed" + content(65536)[107:]
    assert read(connection, share, "directory/65536") == changed, "a part was written elsewhere"
    connection.rename(share, "directory/1", "directory/renamed \u00e4")
    assert "renamed \u00e4" in names(connection, share, "/directory")
    assert connection.getSecurity(share, "directory/0").owner is not None
    fails(connection.getAttributes, share, "directory/1")
    fails(connection.createDirectory, share, "directory")
    fails(connection.deleteDirectory, share, "directory")
    connection.deleteFiles(share, "directory/*")
    connection.deleteDirectory(share, "directory")
    assert "directory" not in names(connection, share, "/")
    connection.close()


main(*sys.argv[1:])
