"""Row groups of Parquet files: the bytes of the wanted columns in one request."""

import io

import pyarrow.parquet

#: Columns that are closer than this, in bytes, are read as one range.
GAP = 64 << 10


def row_groups(share, path, columns=None):
    """Yields the row groups of a file as tables of pyarrow.

    While the caller works on a row group, the bytes of the next one are on their way.
    """
    with share.open(path, "rb") as file:
        metadata = pyarrow.parquet.read_metadata(file)
        ranges = [_ranges(metadata, group, columns) for group in range(metadata.num_row_groups)]
        waiting = [_Request(share, path, ranges[0])] if ranges else []
        for group in range(metadata.num_row_groups):
            request = waiting.pop()
            if group + 1 < len(ranges):
                waiting.append(_Request(share, path, ranges[group + 1]))
            source = _Parts(file.size(), request.parts())
            parquet = pyarrow.parquet.ParquetFile(source, metadata=metadata)
            yield parquet.read_row_group(group, columns=columns)


def _ranges(metadata, group, columns):
    """The ranges of the columns of a row group, in order, with small gaps closed."""
    row_group = metadata.row_group(group)
    found = []
    for number in range(row_group.num_columns):
        column = row_group.column(number)
        if columns is not None and column.path_in_schema.split(".")[0] not in columns:
            continue
        start = column.data_page_offset
        if column.has_dictionary_page and column.dictionary_page_offset:
            start = min(start, column.dictionary_page_offset)
        found.append((start, start + column.total_compressed_size))
    merged = []
    for start, end in sorted(found):
        if merged and start - merged[-1][1] <= GAP:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged


class _Request:
    """Ranges that are on their way."""

    def __init__(self, share, path, ranges):
        self._ranges = ranges
        self._buffers = [bytearray(end - start) for start, end in ranges]
        full = share._path(path)
        requests = [(full, start, each) for (start, _), each in zip(ranges, self._buffers)]
        self._pending = share._raw.read_ranges(requests).start()

    def parts(self):
        for (start, end), count in zip(self._ranges, self._pending.wait()):
            if isinstance(count, Exception):
                raise count
            if count < end - start:
                raise EOFError(f"the file ends at {start + count}, before {end}")
        return list(zip((start for start, _ in self._ranges), self._buffers))


class _Parts(io.RawIOBase):
    """A file of which some parts are in memory."""

    def __init__(self, size, parts):
        self._size = size
        self._parts = parts
        self._position = 0

    def readable(self):
        return True

    def seekable(self):
        return True

    def tell(self):
        return self._position

    def seek(self, offset, whence=io.SEEK_SET):
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._size}
        self._position = base[whence] + offset
        return self._position

    def read(self, size=-1):
        size = self._size - self._position if size is None or size < 0 else size
        for start, part in self._parts:
            inside = self._position - start
            if 0 <= inside and inside + size <= len(part):
                self._position += size
                return memoryview(part)[inside : inside + size]
        raise ValueError(f"bytes {self._position} to {self._position + size} are not in memory")

    def readinto(self, buffer):
        part = self.read(len(buffer))
        buffer[: len(part)] = part
        return len(part)
