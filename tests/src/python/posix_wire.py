"""The SMB3 POSIX extensions on the wire, sent by Samba's client library:
posix_wire.py ADDRESS USER PASSWORD SHARE.

Prints lines `agree NAME VALUE`, in which servers should agree; numbers of inodes, devices and free
blocks, times and owners are not part of the values. Prints `status NAME STATUS` for requests that
are malformed. After each of them the session must still work, or the NEGOTIATE must have failed.
"""

import sys

from samba import NTSTATUSError, credentials, ntstatus, param
from samba.dcerpc import security, smb3posix
from samba.ndr import ndr_unpack
from samba.samba3 import libsmb_samba_internal as libsmb
from samba.samba3 import param as s3param

ADDRESS, USER, PASSWORD, SHARE = sys.argv[1:]
POSIX = libsmb.SMB2_CREATE_TAG_POSIX
GUID = bytes.fromhex("93ad25509cb411e7b42383de968bcd7c")
STATUSES = {
    value & 0xFFFFFFFF: name for name, value in vars(ntstatus).items() if isinstance(value, int)
}
ALL = security.SEC_FILE_ALL | security.SEC_STD_ALL
READ_AND_WRITE = security.SEC_RIGHTS_FILE_READ | security.SEC_RIGHTS_FILE_WRITE
# Times, and what each file system has for itself.
OF_ONE_SERVER = {"btime", "atime", "mtime", "ctime", "allocaction_size", "allocation_size", "dev"}
OF_ONE_SERVER |= {"ino", "device", "inode"}


def connect(**options):
    parameters = s3param.get_context()
    parameters.load("/dev/null")
    parameters.set("client signing", "required")
    login = credentials.Credentials()
    login.guess(parameters)
    login.set_username(USER)
    login.set_password(PASSWORD)
    return libsmb.Conn(ADDRESS, SHARE, parameters, login, **options)


def agree(name, value):
    print("agree", name, value, flush=True)


def refused(name, call, connection=None):
    try:
        call()
        status = "SUCCESS"
    except NTSTATUSError as error:
        status = STATUSES.get(error.args[0] & 0xFFFFFFFF, hex(error.args[0]))
    print("status", name, status, flush=True)
    if connection is not None:
        connection.list("", mask="*")


def with_mode(mode):
    return [(POSIX, mode.to_bytes(4, "little"))]


def create(connection, name, mode, **options):
    options.setdefault("DesiredAccess", ALL)
    options.setdefault("CreateDisposition", libsmb.FILE_OPEN_IF)
    return connection.create_ex(name, CreateContexts=with_mode(mode), **options)


def opened(connection, name):
    connection.close(create(connection, name, 0o644)[0])


def shown(data):
    """The parts of the create context in which servers agree."""
    info = ndr_unpack(smb3posix.smb3_posix_cc_info, data)
    return f"links={info.nlinks} tag={info.reparse_tag:#x} mode={info.posix_mode:o} " \
        f"length={len(data) - info.owner.num_auths * 4 - info.group.num_auths * 4}"


def negotiate():
    agree("negotiated", connect(posix=True).have_posix())
    agree("not-asked", connect().have_posix())
    agree("long", connect(negotiate_contexts=[(0x100, bytes(16) + GUID)]).have_posix())
    agree("another-guid", connect(negotiate_contexts=[(0x100, bytes(16))]).have_posix())
    for length in (0, 5, 15, 17):
        context = [(0x100, (GUID + GUID)[:length])]
        refused(f"negotiate-{length}-bytes", lambda: connect(negotiate_contexts=context))


def contexts(connection):
    directory = libsmb.FILE_DIRECTORY_FILE
    for name, mode, options in (
        ("file", 0o640, 0),
        ("directory", 0o750, directory),
        ("sticky", 0o1777, directory),
        ("set-user-id", 0o4711, 0),
        ("nothing", 0o000, 0),
        ("type-of-a-file", 0o100640, 0),
        ("extra-bits", 0x7FFFF000 | 0o640, 0),
    ):
        handle, _, answers = create(connection, name, mode, CreateOptions=options)
        agree(f"create-{name}", f"{shown(dict(answers)[POSIX])} contexts={len(answers)}")
        connection.close(handle)
    for length in (0, 1, 3, 5, 8, 40):
        asked = [(POSIX, b"\0" * length)]
        refused(
            f"context-{length}-bytes",
            lambda: connection.create_ex("new", CreateContexts=asked),
            connection,
        )
    for name, path in (
        ("slash", "file/below"),
        ("slash-at-the-end", "directory/"),
        ("dot", "."),
        ("dot-dot", ".."),
        ("dots-between", "directory\\..\\file"),
        ("empty-component", "directory\\\\file"),
        ("long", "x" * 256),
    ):
        refused(f"name-{name}", lambda: opened(connection, path), connection)


def fields(info):
    """The fields that two servers have in common, in order."""
    found = sorted((key, value) for key, value in info.items() if key not in OF_ONE_SERVER)
    return " ".join(f"{key}={value:#x}" for key, value in found if isinstance(value, int))


def information(connection):
    handle = create(connection, "file", 0o640, DesiredAccess=READ_AND_WRITE)[0]
    connection.write(handle, b"data", 0)
    info = connection.qfileinfo(handle, libsmb.FSCC_FILE_POSIX_INFORMATION)
    agree("file-information", fields(info))
    connection.close(handle)
    plain = connection.create_ex("file")[0]
    refused(
        "file-information-of-another-open",
        lambda: connection.qfileinfo(plain, libsmb.FSCC_FILE_POSIX_INFORMATION),
        connection,
    )
    connection.close(plain)


def listing(connection):
    entries = connection.list("", info_level=libsmb.SMB2_FIND_POSIX_INFORMATION)
    for entry in sorted(entries, key=lambda entry: entry["name"]):
        # smbd cannot read the DOS attributes of a file without permissions.
        if entry["name"] not in ("..", "nothing"):
            is_file = entry["name"] == "file"
            agree(
                f"listed-{entry['name']}",
                f"size={entry['size'] if is_file else '-'} attributes={entry['attrib']:#x} "
                f"links={entry['nlink']} tag={entry['reparse_tag']:#x} perms={entry['perms']:o}",
            )


def file_system(connection):
    info = connection.get_posix_fs_info()
    for name, value in sorted(info.items()):
        is_size = name in ("block_size", "bsize", "optimal_transfer_size")
        agree(f"file-system-{name}", value if is_size else value > 0)
    refused("file-system-of-another-connection", connect().get_posix_fs_info)


def main():
    negotiate()
    connection = connect(posix=True)
    contexts(connection)
    information(connection)
    listing(connection)
    file_system(connection)
    print("finished", flush=True)


main()
