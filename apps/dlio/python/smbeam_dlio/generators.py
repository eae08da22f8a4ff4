"""Data sets of DLIO on a share, by DLIO's own generators.

Newer generators make each file in memory, and pass it to `put_data` of a storage that is not local.
Those of DLIO 2.0.0 and of the round v2 pass the name of the file to NumPy or Pillow, which take
open files as well. For these the storage returns an open file of the share in place of the name.
"""

from dlio_benchmark.common.enumerations import FormatType
from dlio_benchmark.storage.storage_handler import DataStorage

#: Size of the buffer of a file in bytes.
BUFFER_SIZE = 4 << 20
#: Formats that NumPy and Pillow write to open files.
FORMATS = {FormatType.NPZ, FormatType.NPY, FormatType.JPEG, FormatType.PNG}


def over_smb(get_generator, format):
    """Returns the generator of DLIO for a format, with files on the share.

    Fails with ValueError for formats that DLIO writes by libraries with their own file access.
    """
    if format not in FORMATS:
        raise ValueError(f"dataset.format={format} cannot be generated over SMB")
    generator = get_generator(format)
    return generator if hasattr(DataStorage, "islocalfs") else OpenFileGenerator(generator)


class Output:
    """An open file for NumPy, which takes the descriptor of a file of the package `io`."""

    def __init__(self, file):
        self._file = file

    def __getattr__(self, name):
        return getattr(self._file, name)


class OpenFiles:
    """A storage that returns open files in place of names. One file is open at a time."""

    def __init__(self, storage):
        self._storage = storage
        self._file = None

    def __getattr__(self, name):
        return getattr(self._storage, name)

    def get_uri(self, id):
        self.close()
        path = self._storage.location.path(id)
        self._file = Output(self._storage.share.open(path, "wb", buffering=BUFFER_SIZE))
        return self._file

    def close(self):
        if self._file is not None:
            self._file.close()
            self._file = None


class OpenFileGenerator:
    """A generator of DLIO that gets open files."""

    def __init__(self, generator):
        self._generator = generator
        self._files = generator.storage = OpenFiles(generator.storage)

    def generate(self):
        """Generates the files of this rank."""
        try:
            self._generator.generate()
        finally:
            self._files.close()
