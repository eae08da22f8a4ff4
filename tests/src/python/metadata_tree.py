"""Writes or reads a tree with the metadata of Windows: write|read PORT SHARE USER PASSWORD NAME.

`write` makes the directory NAME; both print every item of it as JSON, one object per line: sizes,
attributes, creation times, named streams, extended attributes and targets of links.
"""

import hashlib
import json
import sys

import smbclient
from smbclient import _io, _os

MODE, PORT, SHARE, USER, PASSWORD, NAME = sys.argv[1:7]
ROOT = rf"\\127.0.0.1\{SHARE}"
READONLY, HIDDEN, SYSTEM, ARCHIVE = 0x1, 0x2, 0x4, 0x20
REPARSE_POINT = 0x400
# 2001-02-03, and some units of 100 ns.
CREATED = 126256320001234567


def path(*names):
    return "\\".join((ROOT, NAME) + names)


def put(name, data=b""):
    with smbclient.open_file(name, mode="wb", share_access="rwd") as file:
        file.write(data)


def write():
    smbclient.mkdir(path())
    smbclient.mkdir(path("Ordner \u00fc"))
    for name, size in (("plain.bin", 100_000), ("empty", 0), ("Ordner \u00fc\\inner.txt", 17)):
        put(path(name), bytes(range(256)) * (size // 256) + bytes(size % 256))
    # A stream of a download, of a Mac, with a long name, empty, and of a directory.
    put(path("plain.bin:Zone.Identifier"), b"[ZoneTransfer]\r\nZoneId=3\r\n")
    put(path("plain.bin:AFP_AfpInfo"), b"AFP\0" + bytes(56))
    put(path("plain.bin:" + "n" * 200), b"1")
    put(path("empty:leer"))
    put(path("empty:large"), bytes(3_000))
    put(path("Ordner \u00fc:of a directory"), b"2")
    smbclient.setxattr(path("plain.bin"), b"USER.ONE", b"value\0with zero")
    smbclient.setxattr(path("Ordner \u00fc"), b"TWO", b"2")
    for name, attributes in (
        ("empty", HIDDEN | ARCHIVE),
        ("plain.bin", READONLY | SYSTEM),
        ("Ordner \u00fc", HIDDEN),
    ):
        set_basic(path(name), attributes)
    smbclient.symlink("plain.bin", path("link"))
    smbclient.symlink("nowhere\\at all", path("dangling"))


def set_basic(name, attributes):
    _os._set_basic_information(name, creation_time=CREATED, file_attributes=attributes)


def read():
    items = [path()]
    for directory, directories, files in smbclient.walk(path()):
        items.extend("\\".join((directory, name)) for name in directories + files)
    for item in sorted(items):
        print(json.dumps(describe(item), sort_keys=True))


def describe(item):
    stat = smbclient.lstat(item)
    is_link = bool(stat.st_file_attributes & REPARSE_POINT)
    described = {
        "path": item[len(path()) :],
        "attributes": hex(stat.st_file_attributes),
        "created": stat.st_birthtime_ns if hasattr(stat, "st_birthtime_ns") else stat.st_ctime_ns,
        "written": stat.st_mtime_ns,
    }
    if is_link:
        described["target"] = smbclient.readlink(item)
        return described
    described["streams"] = sorted(
        (stream.name, stream.size, digest(item, stream.name)) for stream in streams(item)
    )
    described["attributes_extended"] = sorted(
        (name.decode(), smbclient.getxattr(item, name).hex()) for name in smbclient.listxattr(item)
    )
    return described


def streams(item):
    return list(smbclient.liststreams(item))


def digest(item, stream):
    name = item if stream == "::$DATA" else item + stream
    with smbclient.open_file(name, mode="rb", share_access="rwd") as file:
        return hashlib.sha256(file.read()).hexdigest()


smbclient.ClientConfig(username=USER, password=PASSWORD)
# Every function of smbclient opens files through this one, and most of them know no port.
_connect = _io.get_smb_tree
_io.get_smb_tree = lambda name, **options: _connect(name, **{**options, "port": int(PORT)})

if MODE == "write":
    write()
read()
