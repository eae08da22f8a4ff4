"""Readers of DLIO for files of a share: whole files, decoded as DLIO's own readers do it."""

import io

import numpy
from dlio_benchmark.common.enumerations import FormatType
from dlio_benchmark.reader.reader_handler import FormatReader
from PIL import Image
from smbeam import npz as unverified

from . import location, npz

#: Files of up to this length in bytes are read together with the others of their batch.
TOGETHER_MAX = 4 << 20


class WholeFileReader(FormatReader):
    """Reads a file at once. Subclasses decode its bytes."""

    def __init__(self, dataset_type, thread_index, epoch):
        super().__init__(dataset_type, thread_index)
        self._location = location.Location(self._args.storage_root)
        self._ahead = {}

    def decode(self, content):
        """Returns the array of a file; the last axis of an array of NumPy counts the samples."""
        raise NotImplementedError

    def read_ahead(self, indices):
        """Reads the files of the samples with these numbers, several per message."""
        length = self._args.record_length * self._args.num_samples_per_file
        if length > TOGETHER_MAX:
            return
        names = list(dict.fromkeys(self.global_index_map[index][0] for index in indices))
        paths = [self._location.path(name) for name in names]
        lengths = [int(length)] * len(paths)
        contents = self._location.share.read_many(paths, lengths=lengths)
        self._ahead = dict(zip(names, contents))

    def open(self, filename):
        content = self._ahead.pop(filename, None)
        if content is None:
            content = self._location.share.read(self._location.path(filename))
        return self.decode(content)

    def close(self, filename):
        return None

    def get_sample(self, filename, sample_index):
        return self.open_file_map[filename][..., sample_index]

    def next(self):
        yield from super().next()

    def read_index(self, image_idx, step):
        return super().read_index(image_idx, step)

    def finalize(self):
        return None

    def is_index_based(self):
        return True

    def is_iterator_based(self):
        return True


class SmbNpzReader(WholeFileReader):
    """Archives of NumPy.

    Their checksums are verified, except with `reader.odirect`, where DLIO does not verify either.
    """

    def decode(self, content):
        return npz.load(content, "x", verify=not getattr(self._args, "odirect", False))


class SmbNpyReader(WholeFileReader):
    """Arrays of NumPy. They have no checksums."""

    def decode(self, content):
        return unverified.loads(content)


class SmbImageReader(WholeFileReader):
    """Images in the formats JPEG and PNG, one sample each."""

    def decode(self, content):
        return numpy.asarray(Image.open(io.BytesIO(content)))

    def get_sample(self, filename, sample_index):
        return self.open_file_map[filename]


#: The reader of each format.
CLASSES = {
    FormatType.NPZ: SmbNpzReader,
    FormatType.NPY: SmbNpyReader,
    FormatType.JPEG: SmbImageReader,
    FormatType.PNG: SmbImageReader,
}


def reader_class(format):
    """Returns the class for a format of DLIO.

    Fails with ValueError for formats that DLIO reads by libraries with their own file access:
    TFRecord, HDF5, CSV and indexed binary files.
    """
    if format not in CLASSES:
        known = ", ".join(str(name) for name in CLASSES)
        raise ValueError(f"dataset.format={format} is not supported over SMB: use one of {known}")
    return CLASSES[format]
