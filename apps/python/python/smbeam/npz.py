"""Archives of NumPy (npz and npy) without the checksum.

``numpy.load`` computes the CRC-32 of every byte and copies twice, which limits one process to about
2 GB/s. Here the bytes go from the network into the array. The transport has its own protection:
messages can be signed or encrypted.
"""

import io
import struct
import zipfile

import numpy

#: Length of the local header of an entry without its name and extra field. APPNOTE.TXT 4.3.7
_LOCAL = struct.Struct("<4s5H3I2H")


def load(share, path, names=None):
    """Returns the arrays of a file: a dictionary for npz, an array for npy.

    ``names`` selects arrays of an npz file.
    """
    with share.open(path, "rb") as file:
        if file.peek(6)[:6] == b"\x93NUMPY":
            return _array(file, 0, None)
        archive = zipfile.ZipFile(file)
        entries = {entry.filename.removesuffix(".npy"): entry for entry in archive.infolist()}
        if names is None:
            names = list(entries)
        missing = [name for name in names if name not in entries]
        if missing:
            raise KeyError(f"{path} has no array {missing[0]!r}: it has {', '.join(entries)}")
        return {name: _entry(archive, file, entries[name]) for name in names}


def loads(content, names=None):
    """As ``load``, from the bytes of a file. The arrays share the memory of the bytes."""
    if content[:6] == b"\x93NUMPY":
        return _view(content, 0)
    archive = zipfile.ZipFile(io.BytesIO(content))
    entries = {entry.filename.removesuffix(".npy"): entry for entry in archive.infolist()}
    found = {}
    for name in entries if names is None else names:
        entry = entries[name]
        if entry.compress_type == zipfile.ZIP_STORED:
            start = _start(content[entry.header_offset :][: _LOCAL.size], entry)
            found[name] = _view(content, start)
        else:
            found[name] = numpy.lib.format.read_array(io.BytesIO(archive.read(entry)))
    return found


def _entry(archive, file, entry):
    if entry.compress_type != zipfile.ZIP_STORED:
        return numpy.lib.format.read_array(io.BytesIO(archive.read(entry)))
    file.seek(entry.header_offset)
    start = _start(file.read(_LOCAL.size), entry)
    return _array(file, start, start + entry.file_size)


def _start(header, entry):
    """The offset of the data of an entry."""
    fields = _LOCAL.unpack(header)
    if fields[0] != b"PK\x03\x04":
        raise zipfile.BadZipFile(f"{entry.filename}: no header at offset {entry.header_offset}")
    return entry.header_offset + _LOCAL.size + fields[-2] + fields[-1]


def _read_header(text):
    version = numpy.lib.format.read_magic(text)
    if version == (1, 0):
        return numpy.lib.format.read_array_header_1_0(text)
    return numpy.lib.format.read_array_header_2_0(text)


def _array(file, start, end):
    file.seek(start)
    shape, fortran, dtype = _read_header(file)
    if dtype.hasobject:
        raise ValueError("an array of objects is not loaded, because it can run programs")
    offset = file.tell()
    array = numpy.empty(shape, dtype, order="F" if fortran else "C")
    if end is not None and offset + array.nbytes > end:
        raise ValueError(f"the array has {array.nbytes} bytes, its entry only {end - offset}")
    # The transposed view of an array in the order of Fortran is in the order of C.
    memory = array.T if fortran else array
    if array.nbytes and file.readinto_at(memory.reshape(-1).view("u1"), offset) != array.nbytes:
        raise ValueError(f"the file ends within the array at offset {offset}")
    return array


def _view(content, start):
    text = io.BytesIO(content)
    text.seek(start)
    shape, fortran, dtype = _read_header(text)
    if dtype.hasobject:
        raise ValueError("an array of objects is not loaded, because it can run programs")
    count = int(numpy.prod(shape, dtype=object))
    flat = numpy.frombuffer(content, dtype, count, text.tell())
    return flat.reshape(shape, order="F" if fortran else "C")
