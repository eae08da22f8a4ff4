"""Works with a share through libsmb2, by ctypes: PORT SHARE USER PASSWORD VERSION PROTECTION."""

import ctypes
import errno
import hashlib
import os
import select
import sys
import time

# Constants of the library's headers.
VERSIONS = {
    "any": 0, "2.0.2": 0x202, "2.1": 0x210, "3.0": 0x300, "3.0.2": 0x302, "3.1.1": 0x311,
}
NTLMSSP = 1
SIGNING_ENABLED = 1
SHARE_INFO_1 = 1
FILE, DIRECTORY = 0, 1
SIZES = (0, 1, 65536, 65537, 1000003)
PART = 65536
LIMIT_S = 60

library = ctypes.CDLL("libsmb2.so.6")
done = ctypes.CFUNCTYPE(
    None, ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p
)
for function in ("init_context", "open", "opendir", "readdir"):
    getattr(library, f"smb2_{function}").restype = ctypes.c_void_p
library.smb2_get_error.restype = ctypes.c_char_p


class Stat(ctypes.Structure):
    _fields_ = [("type", ctypes.c_uint32), ("links", ctypes.c_uint32)] + [
        (name, ctypes.c_uint64)
        for name in (
            "file_id", "size", "accessed", "accessed_ns", "written", "written_ns",
            "changed", "changed_ns", "created", "created_ns",
        )
    ]


class Entry(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("stat", Stat)]


class Text(ctypes.Structure):
    _fields_ = [
        ("max_count", ctypes.c_uint32), ("offset", ctypes.c_uint32),
        ("actual_count", ctypes.c_uint32), ("utf16", ctypes.c_void_p), ("utf8", ctypes.c_char_p),
    ]


class ListedShare(ctypes.Structure):
    _fields_ = [("name", Text), ("type", ctypes.c_uint32), ("remark", Text)]


class ShareArray(ctypes.Structure):
    _fields_ = [("max_count", ctypes.c_uint32), ("shares", ctypes.POINTER(ListedShare))]


class ShareContainer(ctypes.Structure):
    _fields_ = [("count", ctypes.c_uint32), ("array", ctypes.POINTER(ShareArray))]


class ShareUnion(ctypes.Structure):
    _fields_ = [("level", ctypes.c_uint32), ("level_1", ShareContainer)]


class ShareEnum(ctypes.Structure):
    _fields_ = [("level", ctypes.c_uint32), ("union", ShareUnion)]


class ShareList(ctypes.Structure):
    _fields_ = [("status", ctypes.c_uint32), ("enum", ShareEnum)]


def content(size):
    return (hashlib.sha256(str(size).encode()).digest() * (size // 32 + 1))[:size]


class Share:
    def __init__(self, port, share, user, password, version, protection):
        self.context = ctypes.c_void_p(library.smb2_init_context())
        self.call("set_authentication", NTLMSSP)
        self.call("set_user", user.encode())
        self.call("set_password", password.encode())
        self.call("set_version", VERSIONS[version])
        self.call("set_security_mode", SIGNING_ENABLED)
        self.call("set_sign", int(protection == "sign"))
        self.call("set_seal", int(protection == "encrypt"))
        self.call("set_timeout", LIMIT_S)
        place = f"127.0.0.1:{port}".encode()
        self.do("connect_share", place, share.encode(), user.encode())

    def call(self, name, *arguments):
        return getattr(library, f"smb2_{name}")(self.context, *arguments)

    def do(self, name, *arguments):
        result = self.call(name, *arguments)
        assert result >= 0, f"{name}{arguments}: {result}: {library.smb2_get_error(self.context)}"
        return result

    def refused(self, code, name, *arguments):
        result = self.call(name, *arguments)
        assert result == -code, f"{name}{arguments}: {result}, not {-code}"

    def open(self, path, flags):
        file = ctypes.c_void_p(self.call("open", path.encode(), flags))
        assert file.value, f"open {path}: {library.smb2_get_error(self.context)}"
        return file

    def names(self, path):
        directory = ctypes.c_void_p(self.call("opendir", path.encode()))
        assert directory.value, f"opendir {path}: {library.smb2_get_error(self.context)}"
        found = {}
        while entry := self.call("readdir", directory):
            entry = ctypes.cast(entry, ctypes.POINTER(Entry)).contents
            found[entry.name.decode()] = (entry.stat.type, entry.stat.size)
        self.call("closedir", directory)
        assert found.pop(".")[0] == DIRECTORY and found.pop("..")[0] == DIRECTORY
        return found

    def put(self, path, data):
        file = self.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL)
        for at in range(0, len(data), PART):
            part = data[at : at + PART]
            count = self.do("pwrite", file, part, len(part), ctypes.c_uint64(at))
            assert count == len(part), f"{count} of {len(part)} bytes were written"
        self.do("fsync", file)
        self.do("close", file)

    def get(self, path, size):
        """Reads a file with all requests in flight at once, as many as there are credits for."""
        file = self.open(path, os.O_RDONLY)
        target = ctypes.create_string_buffer(size + PART)
        parts = {at: None for at in range(0, size + 1, PART)}

        def answer(_context, status, _data, at):
            parts[at or 0] = status

        answer = done(answer)
        for at in parts:
            place = ctypes.byref(target, at)
            self.do("pread_async", file, place, PART, ctypes.c_uint64(at), answer,
                    ctypes.c_void_p(at))
        self.wait(lambda: None not in parts.values())
        self.do("close", file)
        for at, count in parts.items():
            assert count == min(PART, size - at), f"{count} bytes at {at} of {size}"
        return target.raw[:size]

    def shares(self):
        listed = []

        def answer(_context, status, data, _private):
            listed.append(status)
            if data:
                level_1 = ctypes.cast(data, ctypes.POINTER(ShareList)).contents.enum.union.level_1
                shares = level_1.array.contents.shares
                listed.extend(shares[at].name.utf8.decode() for at in range(level_1.count))

        answer = done(answer)
        self.do("share_enum_async", SHARE_INFO_1, answer, None)
        self.wait(lambda: listed)
        assert listed[0] == 0, f"shares: {listed[0]}"
        return listed[1:]

    def wait(self, is_over):
        end = time.monotonic() + LIMIT_S
        while not is_over():
            assert time.monotonic() < end, "no answer"
            poll = select.poll()
            poll.register(self.call("get_fd"), self.call("which_events"))
            for _, events in poll.poll(1000):
                self.do("service", events)

    def stat(self, path):
        stat = Stat()
        self.do("stat", path.encode(), ctypes.byref(stat))
        return stat

    def close(self):
        self.do("disconnect_share")
        self.call("destroy_context")


def work(share):
    share.do("mkdir", b"directory")
    share.refused(errno.EEXIST, "mkdir", b"directory")
    for size in SIZES:
        share.put(f"directory/{size}", content(size))
        assert share.get(f"directory/{size}", size) == content(size), f"{size} bytes differ"
        assert share.stat(f"directory/{size}").size == size
    assert share.names("directory") == {str(size): (FILE, size) for size in SIZES}
    assert share.stat("directory").type == DIRECTORY
    share.do("truncate", b"directory/1000003", ctypes.c_uint64(PART + 1))
    assert share.get("directory/1000003", PART + 1) == content(1000003)[: PART + 1]
    share.do("rename", b"directory/1", "directory/caf\u00e9 \u65e5\u672c".encode())
    assert "caf\u00e9 \u65e5\u672c" in share.names("directory")
    share.refused(errno.ENOENT, "unlink", b"directory/1")
    # It deletes on close, and ignores the status of that.
    share.call("rmdir", b"directory")
    assert "directory" in share.names(""), "a directory with files was deleted"
    share.refused(errno.EINVAL, "readlink", b"directory/0", ctypes.create_string_buffer(64), 64)
    share.do("statvfs", b"", ctypes.create_string_buffer(256))
    for name in share.names("directory"):
        share.do("unlink", f"directory/{name}".encode())
    share.do("rmdir", b"directory")
    assert "directory" not in share.names("")


def main(port, share, user, password, version, protection):
    opened = Share(port, share, user, password, version, protection)
    work(opened)
    opened.close()
    pipes = Share(port, "IPC$", user, password, version, protection)
    assert {"IPC$", share} <= set(pipes.shares()), "the share is not listed"
    pipes.close()


main(*sys.argv[1:])
