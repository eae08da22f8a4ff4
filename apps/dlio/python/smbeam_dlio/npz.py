"""Arrays from the bytes of npz and npy files, with the checksums that NumPy verifies."""

import io
import struct
import zipfile
import zlib

from smbeam import npz

#: The lengths of the name and of the extra field in the local header of an entry, and the end of
#: that header. APPNOTE.TXT 4.3.7
_LENGTHS, _LENGTHS_AT, _HEADER_END = struct.Struct("<2H"), 26, 30


def load(content, name, *, verify):
    """Returns an array of an npz file. It shares the memory of ``content``.

    Fails with zipfile.BadZipFile if its checksum is wrong and ``verify`` is true.
    """
    if verify:
        verify_entry(content, f"{name}.npy")
    return npz.loads(content, [name])[name]


def verify_entry(content, name):
    """Verifies the checksum of an uncompressed entry. NumPy verifies compressed ones."""
    entry = zipfile.ZipFile(io.BytesIO(content)).getinfo(name)
    if entry.compress_type != zipfile.ZIP_STORED:
        return
    start = entry.header_offset
    start += _HEADER_END + sum(_LENGTHS.unpack_from(content, start + _LENGTHS_AT))
    if zlib.crc32(memoryview(content)[start : start + entry.file_size]) != entry.CRC:
        raise zipfile.BadZipFile(f"{name}: wrong checksum")
