"""A session of smbprotocol with the operations that the field cases need.

Each case replays a fault that users of file servers reported. See `server` for the servers, and
`checks` for the verdicts.
"""

import os
import struct
import uuid

from smbprotocol.connection import Connection
from smbprotocol.exceptions import SMBException, SMBResponseException
from smbprotocol.open import (
    CreateDisposition,
    CreateOptions,
    FilePipePrinterAccessMask,
    ImpersonationLevel,
    Open,
    SMB2QueryDirectoryRequest,
    SMB2QueryDirectoryResponse,
    SMB2QueryInfoRequest,
    SMB2QueryInfoResponse,
    SMB2SetInfoRequest,
)
from smbprotocol.session import Session as Login
from smbprotocol.tree import TreeConnect

import server
from checks import (
    check,
    check_at_most,
    check_equal,
    check_one_of,
    finish,
    note,
    scaled,
    skip,
    wait_until,
)
from server import ALICE, BOB, DIRECTORY, HOST, TCP_PORT, Server, make_open_directory, run, url

# Access rights of an open. [MS-SMB2] 2.2.13.1
READ = FilePipePrinterAccessMask.GENERIC_READ
WRITE = FilePipePrinterAccessMask.GENERIC_WRITE
DELETE = FilePipePrinterAccessMask.DELETE
READ_ATTRIBUTES = FilePipePrinterAccessMask.FILE_READ_ATTRIBUTES
# What an open may do with a file. [MS-SMB2] 2.2.13
IS_DIRECTORY = CreateOptions.FILE_DIRECTORY_FILE
IS_FILE = CreateOptions.FILE_NON_DIRECTORY_FILE
OPEN = CreateDisposition.FILE_OPEN
CREATE = CreateDisposition.FILE_CREATE
OPEN_OR_CREATE = CreateDisposition.FILE_OPEN_IF
OVERWRITE_OR_CREATE = CreateDisposition.FILE_OVERWRITE_IF
SHARE_ALL = 7
# Information types. [MS-SMB2] 2.2.37
INFO_FILE = 1
INFO_FILE_SYSTEM = 2
# Classes of file information. [MS-FSCC] 2.4
FILE_STANDARD_INFORMATION = 5
FILE_INTERNAL_INFORMATION = 6
FILE_RENAME_INFORMATION = 10
FILE_LINK_INFORMATION = 11
FILE_DISPOSITION_INFORMATION = 13
FILE_ALLOCATION_INFORMATION = 19
FILE_END_OF_FILE_INFORMATION = 20
FILE_ID_BOTH_DIRECTORY_INFORMATION = 37
# Classes of file system information. [MS-FSCC] 2.5
FS_ATTRIBUTE_INFORMATION = 5
FS_FULL_SIZE_INFORMATION = 7
# Bytes of one READ or WRITE of a case.
CHUNK = 65536
# Exit codes of smbeam's commands: docs/cli.md.
NOT_FOUND = 5
NO_SPACE = 7

# Names of the statuses that the cases expect. [MS-ERREF] 2.3
STATUS_NAMES = {
    0x80000006: "NO_MORE_FILES",
    0xC000000D: "INVALID_PARAMETER",
    0xC000000F: "NO_SUCH_FILE",
    0xC0000022: "ACCESS_DENIED",
    0xC0000033: "OBJECT_NAME_INVALID",
    0xC0000034: "OBJECT_NAME_NOT_FOUND",
    0xC0000035: "OBJECT_NAME_COLLISION",
    0xC000003A: "OBJECT_PATH_NOT_FOUND",
    0xC0000043: "SHARING_VIOLATION",
    0xC0000056: "DELETE_PENDING",
    0xC000006D: "LOGON_FAILURE",
    0xC000007F: "DISK_FULL",
    0xC00000BB: "NOT_SUPPORTED",
    0xC00000CC: "BAD_NETWORK_NAME",
    0xC00000D4: "NOT_SAME_DEVICE",
    0xC0000101: "DIRECTORY_NOT_EMPTY",
    0xC0000106: "NAME_TOO_LONG",
    0xC0000121: "CANNOT_DELETE",
}


def status_of(operation):
    """The name of the status that an operation ends with; OK if it succeeds."""
    try:
        operation()
    except SMBResponseException as error:
        return STATUS_NAMES.get(error.status, f"0x{error.status:08x}")
    except SMBException as error:
        return f"{type(error).__name__}: {error}"
    return "OK"


class Session:
    """A login with a tree connect to one share. Paths have backslashes."""

    def __init__(self, user=ALICE, share="data", host=HOST):
        self.connection = Connection(uuid.uuid4(), host, TCP_PORT, require_signing=True)
        self.connection.connect(timeout=30)
        name, password = user
        self.login = Login(
            self.connection, name, password, require_encryption=False, auth_protocol="ntlm"
        )
        self.login.connect()
        self.tree = TreeConnect(self.login, rf"\\{host}\{share}")
        self.tree.connect()

    def disconnect(self):
        """Logs off and closes the connection."""
        self.connection.disconnect()

    def open(
        self, path, access=READ | WRITE | DELETE, disposition=OPEN, options=0, sharing=SHARE_ALL
    ):
        """Opens a file or directory."""
        handle = Open(self.tree, path)
        level = ImpersonationLevel.Impersonation
        handle.create(level, access, 0, sharing, disposition, options)
        return handle

    def write_file(self, path, data=b""):
        """Makes or overwrites a file."""
        handle = self.open(path, disposition=OVERWRITE_OR_CREATE, options=IS_FILE)
        offset = 0
        while offset < len(data):
            offset += handle.write(data[offset : offset + CHUNK], offset)
        handle.close()

    def read_file(self, path):
        """The content of a file."""
        handle = self.open(path, access=READ)
        try:
            end = handle.end_of_file
            pieces = [handle.read(at, min(CHUNK, end - at)) for at in range(0, end, CHUNK)]
            return b"".join(pieces)
        finally:
            handle.close()

    def make_directory(self, path):
        """Makes a directory, unless it exists."""
        access = READ | DELETE
        self.open(path, access, disposition=OPEN_OR_CREATE, options=IS_DIRECTORY).close()

    def remove(self, path, options=0):
        """Removes a file or an empty directory."""
        handle = self.open(path, access=DELETE, options=options)
        try:
            self.set_information(handle, FILE_DISPOSITION_INFORMATION, b"\1")
        finally:
            handle.close()

    def rename(self, old, new):
        """Renames a file or directory, without replacing another one."""
        handle = self.open(old, access=DELETE | READ_ATTRIBUTES)
        try:
            self.set_information(handle, FILE_RENAME_INFORMATION, new_name(new))
        finally:
            handle.close()

    def link(self, old, new):
        """Makes a hard link."""
        handle = self.open(old)
        try:
            self.set_information(handle, FILE_LINK_INFORMATION, new_name(new))
        finally:
            handle.close()

    def set_information(self, handle, information_class, buffer):
        """Sends SET_INFO for a file."""
        request = SMB2SetInfoRequest()
        request["info_type"] = INFO_FILE
        request["file_info_class"] = information_class
        request["file_id"] = handle.file_id
        request["buffer"] = buffer
        self._exchange(request)

    def query_information(self, handle, information_class, information_type=INFO_FILE):
        """Sends QUERY_INFO and returns the buffer of the response."""
        request = SMB2QueryInfoRequest()
        request["info_type"] = information_type
        request["file_info_class"] = information_class
        request["file_id"] = handle.file_id
        request["output_buffer_length"] = CHUNK
        response = SMB2QueryInfoResponse()
        response.unpack(self._exchange(request))
        return response["buffer"].get_value()

    def file_id(self, path, options=0):
        """The 64-bit file id that QUERY_INFO reports."""
        handle = self.open(path, access=READ_ATTRIBUTES, options=options)
        try:
            return struct.unpack("<Q", self.query_information(handle, FILE_INTERNAL_INFORMATION))[0]
        finally:
            handle.close()

    def space(self, path):
        """Bytes in all and free bytes of the file system that holds a directory."""
        handle = self.open(path, access=READ_ATTRIBUTES)
        try:
            found = self.query_information(handle, FS_FULL_SIZE_INFORMATION, INFO_FILE_SYSTEM)
        finally:
            handle.close()
        total, available, _, sectors, bytes_per_sector = struct.unpack("<QQQII", found)
        unit = sectors * bytes_per_sector
        return total * unit, available * unit

    def list(self, path="", pattern="*"):
        """The entries of a directory, without `.` and `..`."""
        handle = self.open(path, access=READ, options=IS_DIRECTORY)
        entries = []
        try:
            while True:
                entries += self._list_page(handle, pattern)
        except SMBResponseException as error:
            if STATUS_NAMES.get(error.status) not in ("NO_MORE_FILES", "NO_SUCH_FILE"):
                raise
        finally:
            handle.close()
        return [entry for entry in entries if entry.name not in (".", "..")]

    def names(self, path="", pattern="*"):
        """The sorted names of a directory."""
        return sorted(entry.name for entry in self.list(path, pattern))

    def _list_page(self, handle, pattern):
        request = SMB2QueryDirectoryRequest()
        request["file_information_class"] = FILE_ID_BOTH_DIRECTORY_INFORMATION
        request["file_id"] = handle.file_id
        request["output_buffer_length"] = CHUNK
        request["buffer"] = pattern.encode("utf-16-le")
        response = SMB2QueryDirectoryResponse()
        response.unpack(self._exchange(request))
        return list(entries_of(response["buffer"].get_value()))

    def _exchange(self, request):
        session, tree = self.login.session_id, self.tree.tree_connect_id
        sent = self.connection.send(request, session, tree)
        return self.connection.receive(sent)["data"].get_value()


class Entry:
    """An entry of a listing: name, length in bytes, file id."""

    def __init__(self, name, size, file_id):
        self.name = name
        self.size = size
        self.file_id = file_id


def entries_of(buffer):
    """The entries of FileIdBothDirectoryInformation. [MS-FSCC] 2.4.17"""
    start = 0
    while True:
        (distance,) = struct.unpack_from("<I", buffer, start)
        (size,) = struct.unpack_from("<Q", buffer, start + 40)
        (name_length,) = struct.unpack_from("<I", buffer, start + 60)
        (file_id,) = struct.unpack_from("<Q", buffer, start + 96)
        name = buffer[start + 104 : start + 104 + name_length]
        yield Entry(name.decode("utf-16-le", "surrogatepass"), size, file_id)
        if distance == 0:
            return
        start += distance


def new_name(name):
    """The buffer of a rename or link that replaces nothing. [MS-FSCC] 2.4.42.2"""
    encoded = name.encode("utf-16-le")
    buffer = struct.pack("<B7xQI", 0, 0, len(encoded)) + encoded
    return buffer.ljust(24, b"\0")


def write_local(path, data):
    """Writes a file of this machine."""
    with open(path, "wb") as file:
        file.write(data)


def read_local(path):
    """The content of a file of this machine."""
    with open(path, "rb") as file:
        return file.read()
