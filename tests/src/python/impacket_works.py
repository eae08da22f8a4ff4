"""Works with a share through impacket: PORT SHARE USER PASSWORD DIALECT."""

import hashlib
import io
import sys
import uuid

from impacket import smb3structs
from impacket.smbconnection import SessionError, SMBConnection

DIALECTS = {
    "2.0.2": smb3structs.SMB2_DIALECT_002,
    "2.1": smb3structs.SMB2_DIALECT_21,
    "3.0": smb3structs.SMB2_DIALECT_30,
    "3.1.1": smb3structs.SMB2_DIALECT_311,
}
SIZES = (0, 1, 65536, 65537, 1000003)


def content(size):
    return (hashlib.sha256(str(size).encode()).digest() * (size // 32 + 1))[:size]


def get(client, share, path):
    data = io.BytesIO()
    client.getFile(share, path, data.write)
    return data.getvalue()


def names(client, share, pattern):
    return sorted(entry.get_longname() for entry in client.listPath(share, pattern))


def refused(status, action):
    try:
        action()
    except SessionError as error:
        assert error.getErrorCode() == status, error
    else:
        raise AssertionError(f"not refused with {status:#x}")


def work(client, share):
    directory = "impacket " + uuid.uuid4().hex
    path = lambda name: directory + "/" + name
    client.createDirectory(share, directory)
    refused(0xC0000035, lambda: client.createDirectory(share, directory))
    for size in SIZES:
        client.putFile(share, path(f"f{size}"), io.BytesIO(content(size)).read)
        assert get(client, share, path(f"f{size}")) == content(size), size
    assert names(client, share, path("f6*")) == ["f65536", "f65537"]
    assert len(names(client, share, path("*"))) == len(SIZES) + 2
    # impacket always replaces.
    client.rename(share, path("f1"), path("f0"))
    assert get(client, share, path("f0")) == content(1)
    client.rename(share, path("f0"), path("caf\u00e9 \u65e5\u672c"))
    assert "caf\u00e9 \u65e5\u672c" in names(client, share, path("*"))
    refused(0xC0000101, lambda: client.deleteDirectory(share, directory))
    refused(0xC0000034, lambda: get(client, share, path("gone")))
    for name in names(client, share, path("*")):
        if name not in (".", ".."):
            client.deleteFile(share, path(name))
    client.deleteDirectory(share, directory)


def main(port, share, user, password, dialect):
    preferred = DIALECTS[dialect]
    connect = lambda: SMBConnection(
        "127.0.0.1", "127.0.0.1", sess_port=int(port), preferredDialect=preferred
    )
    refused(0xC000006D, lambda: connect().login(user, password + "?"))
    client = connect()
    client.login(user, password)
    assert client.getDialect() == preferred
    work(client, share)
    listed = {entry["shi1_netname"][:-1]: entry["shi1_type"] for entry in client.listShares()}
    assert listed.pop("IPC$") == 0x80000003, listed
    assert share in listed and set(listed.values()) == {0}, listed
    client.logoff()


main(*sys.argv[1:])
