"""Works with a share through smbprotocol: PORT SHARE USER PASSWORD DIALECT PROTECTION."""

import contextlib
import hashlib
import sys
import uuid

import smbclient
from smbprotocol.connection import Connection, Dialects
from smbprotocol.exceptions import SMBResponseException
from smbprotocol.file_info import (
    FileDispositionInformation,
    FileInformationClass,
    FileRenameInformation,
)
from smbprotocol.open import (
    CreateDisposition,
    CreateOptions,
    DirectoryAccessMask,
    FileAttributes,
    FilePipePrinterAccessMask,
    ImpersonationLevel,
    Open,
    ShareAccess,
    SMB2SetInfoRequest,
)
from smbprotocol.session import Session
from smbprotocol.tree import TreeConnect

DIALECTS = {
    "2.0.2": Dialects.SMB_2_0_2,
    "2.1": Dialects.SMB_2_1_0,
    "3.0": Dialects.SMB_3_0_0,
    "3.0.2": Dialects.SMB_3_0_2,
    "3.1.1": Dialects.SMB_3_1_1,
}
ACCESS = (
    FilePipePrinterAccessMask.GENERIC_READ
    | FilePipePrinterAccessMask.GENERIC_WRITE
    | FilePipePrinterAccessMask.DELETE
)
ANY_SHARING = (
    ShareAccess.FILE_SHARE_READ | ShareAccess.FILE_SHARE_WRITE | ShareAccess.FILE_SHARE_DELETE
)
SIZES = (0, 1, 65536, 65537, 1000003)
# A size that every dialect carries in one message.
CHUNK = 65536
# A remote procedure call: bind to srvsvc in NDR. C706 12.6.4.3
BIND = bytes.fromhex(
    "05000b03100000004800000001000000b810b810000000000100000000000100"
    "c84f324b7016d30112785a47bf6ee18803000000"
    "045d888aeb1cc9119fe808002b10486002000000"
)
BIND_ACK = 12


def content(size):
    return (hashlib.sha256(str(size).encode()).digest() * (size // 32 + 1))[:size]


@contextlib.contextmanager
def opened(tree, name, disposition, options=CreateOptions.FILE_NON_DIRECTORY_FILE, access=ACCESS):
    handle = Open(tree, name)
    normal = FileAttributes.FILE_ATTRIBUTE_NORMAL
    level = ImpersonationLevel.Impersonation
    handle.create(level, access, normal, ANY_SHARING, disposition, options)
    try:
        yield handle
    finally:
        handle.close()


def set_information(handle, information):
    request = SMB2SetInfoRequest()
    request["info_type"] = 1
    request["file_info_class"] = information.INFO_CLASS
    request["file_id"] = handle.file_id
    request["buffer"] = information
    connection = handle.connection
    session, tree = handle.tree_connect.session, handle.tree_connect
    sent = connection.send(request, session.session_id, tree.tree_connect_id)
    connection.receive(sent)


def put(tree, name, data):
    with opened(tree, name, CreateDisposition.FILE_OVERWRITE_IF) as handle:
        for start in range(0, len(data), CHUNK):
            handle.write(data[start : start + CHUNK], start)
        handle.flush()


def get(tree, name):
    data = b""
    with opened(tree, name, CreateDisposition.FILE_OPEN) as handle:
        while len(data) < handle.end_of_file:
            data += handle.read(len(data), min(CHUNK, handle.end_of_file - len(data)))
    return data


def rename(tree, old, new, replaces):
    information = FileRenameInformation()
    information["replace_if_exists"] = replaces
    information["file_name"] = new
    with opened(tree, old, CreateDisposition.FILE_OPEN) as handle:
        set_information(handle, information)


def delete(tree, name, options=CreateOptions.FILE_NON_DIRECTORY_FILE):
    information = FileDispositionInformation()
    information["delete_pending"] = True
    with opened(tree, name, CreateDisposition.FILE_OPEN, options) as handle:
        set_information(handle, information)


def names(tree, directory, pattern):
    options = CreateOptions.FILE_DIRECTORY_FILE
    access = DirectoryAccessMask.FILE_LIST_DIRECTORY
    kind = FileInformationClass.FILE_NAMES_INFORMATION
    found = []
    with opened(tree, directory, CreateDisposition.FILE_OPEN, options, access) as handle:
        with contextlib.suppress(SMBResponseException):
            while True:
                for entry in handle.query_directory(pattern, kind):
                    found.append(entry["file_name"].get_value().decode("utf-16-le"))
    return sorted(found)


def work(tree):
    top = "smbprotocol " + uuid.uuid4().hex
    directory = CreateOptions.FILE_DIRECTORY_FILE
    with opened(tree, top, CreateDisposition.FILE_CREATE, directory):
        pass
    path = lambda name: top + "\\" + name
    for size in SIZES:
        put(tree, path(f"f{size}"), content(size))
        assert get(tree, path(f"f{size}")) == content(size), size
    assert names(tree, top, "f6*") == ["f65536", "f65537"]
    assert len(names(tree, top, "*")) == len(SIZES) + 2
    try:
        rename(tree, path("f1"), path("f0"), False)
        raise AssertionError("a rename replaced a file unasked")
    except SMBResponseException as error:
        assert error.status == 0xC0000035, error
    rename(tree, path("f1"), path("f0"), True)
    assert get(tree, path("f0")) == content(1)
    rename(tree, path("f0"), path("caf\u00e9 \u65e5\u672c"), False)
    assert "caf\u00e9 \u65e5\u672c" in names(tree, top, "*")
    for name in names(tree, top, "*"):
        if name not in (".", ".."):
            delete(tree, path(name))
    delete(tree, top, directory)


def pipes(session):
    tree = TreeConnect(session, r"\\127.0.0.1\IPC$")
    tree.connect()
    with opened(tree, "srvsvc", CreateDisposition.FILE_OPEN) as pipe:
        assert pipe.write(BIND, 0) == len(BIND)
        answer = pipe.read(0, 4280)
    assert answer[2] == BIND_ACK and answer[-24:-20] == bytes(4), answer.hex()


def copy_on_the_server(port, share, other, user, password, encrypts):
    options = {"username": user, "password": password, "port": int(port), "encrypt": encrypts}
    name = uuid.uuid4().hex
    places = [rf"\\127.0.0.1\{place}\{name}" for place in (share, other)]
    try:
        for size in SIZES + (18000007,):
            with smbclient.open_file(places[0], mode="wb", **options) as file:
                file.write(content(size))
            # It does not copy by itself where the server refuses.
            smbclient.copyfile(places[0], places[0] + ".copy", **options)
            smbclient.copyfile(places[0], places[1], **options)
            smbclient.copyfile(places[1], places[0] + ".back", **options)
            for copied in (places[0] + ".copy", places[1], places[0] + ".back"):
                with smbclient.open_file(copied, mode="rb", **options) as file:
                    assert file.read() == content(size), (copied, size)
        for path in (places[0], places[0] + ".copy", places[0] + ".back", places[1]):
            smbclient.remove(path, **options)
    finally:
        smbclient.reset_connection_cache()


def main(port, share, user, password, dialect, protection):
    signs, encrypts = protection != "none", protection == "encrypt"
    connection = Connection(uuid.uuid4(), "127.0.0.1", int(port), require_signing=signs)
    connection.connect(DIALECTS[dialect])
    try:
        session = Session(connection, user, password, require_encryption=encrypts)
        session.connect()
        tree = TreeConnect(session, rf"\\127.0.0.1\{share}")
        tree.connect()
        work(tree)
        pipes(session)
    finally:
        connection.disconnect(True)
    if dialect == "3.1.1":
        copy_on_the_server(port, share, "other", user, password, encrypts)


main(*sys.argv[1:])
