"""Datasets for the DataLoader of PyTorch that request many files ahead in each worker.

Datasets go to worker processes of every start method: fork, forkserver and spawn. Each worker has
its own session.
"""

import os
import random
import tarfile

import torch
from torch.utils.data import Dataset, IterableDataset, get_worker_info

from . import ahead, npz

__all__ = ["FileDataset", "FileStream", "NpzDataset", "ParquetStream", "TarStream", "read_tensor"]


def bytes_to_tensor(content):
    """Returns the bytes as a tensor of uint8, for a decoder such as that of torchvision."""
    if not content:
        return torch.empty(0, dtype=torch.uint8)
    return torch.frombuffer(bytearray(content), dtype=torch.uint8)


def read_tensor(share, path, *, pin_memory=None):
    """Returns the bytes of a file as a tensor of uint8, without a copy.

    The memory is pinned if CUDA is present, or as ``pin_memory`` says.
    """
    pin = torch.cuda.is_available() if pin_memory is None else pin_memory
    with share.open(path, "rb", buffering=0) as file:
        tensor = torch.empty(file.size(), dtype=torch.uint8, pin_memory=pin)
        if tensor.numel() and file.readinto_at(tensor, 0) != tensor.numel():
            raise EOFError(f"{path} became shorter")
    return tensor


class FileDataset(Dataset):
    """Files of a share, each by its number.

    The DataLoader asks for whole batches, which are read together. ``transform`` makes a sample of
    the bytes of a file; the default makes a tensor of uint8. ``lengths`` are the lengths of the
    files in bytes, if they are known.
    """

    def __init__(self, share, paths, transform=bytes_to_tensor, *, lengths=None):
        self.share = share
        self.paths = list(paths)
        self.transform = transform
        self.lengths = None if lengths is None else list(lengths)

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, index):
        return self.__getitems__([index])[0]

    def __getitems__(self, indices):
        if self.lengths is None:
            # Once for the dataset: each batch would list the directories again.
            self.lengths = self.share.lengths(self.paths)
        paths = [self.paths[index] for index in indices]
        lengths = [self.lengths[index] for index in indices]
        return [self.transform(each) for each in self.share.read_many(paths, lengths=lengths)]


class NpzDataset(Dataset):
    """Arrays of npz files, each by the number of its file. The checksum of npz is not computed.

    ``key`` is the name of the array.
    """

    def __init__(self, share, paths, key="x", transform=torch.from_numpy):
        self.share = share
        self.paths = list(paths)
        self.key = key
        self.transform = transform

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, index):
        loaded = npz.load(self.share, self.paths[index], [self.key])
        return self.transform(loaded[self.key])


class _Stream(IterableDataset):
    """Files in an order that depends on a seed and an epoch, a part of them for each worker."""

    def __init__(self, share, paths, *, shuffle=False, seed=0, rank=None, world_size=None):
        self.share = share
        self.paths = list(paths)
        self.shuffle = shuffle
        self.seed = seed
        self.epoch = 0
        self.rank, self.world_size = _place(rank, world_size)

    def set_epoch(self, epoch):
        """Sets the number of the epoch, which changes the order of shuffled files."""
        self.epoch = epoch

    def _own(self):
        """The numbers of the files of this worker."""
        numbers = list(range(len(self.paths)))
        if self.shuffle:
            random.Random(f"{self.seed} {self.epoch}").shuffle(numbers)
        worker = get_worker_info()
        workers, number = (worker.num_workers, worker.id) if worker else (1, 0)
        part = self.rank * workers + number
        return numbers[part :: self.world_size * workers]


def _place(rank, world_size):
    """Rank and count of the processes of a training."""
    if rank is not None and world_size is not None:
        return rank, world_size
    distributed = torch.distributed
    if distributed.is_available() and distributed.is_initialized():
        return distributed.get_rank(), distributed.get_world_size()
    return int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))


class FileStream(_Stream):
    """Files of a share in sequence, read ahead of the training."""

    def __init__(
        self, share, paths, transform=bytes_to_tensor, *, lengths=None, in_flight=64, **order
    ):
        super().__init__(share, paths, **order)
        self.transform = transform
        self.lengths = None if lengths is None else list(lengths)
        self.in_flight = in_flight

    def __iter__(self):
        numbers = self._own()
        paths = [self.paths[number] for number in numbers]
        lengths = self.lengths and [self.lengths[number] for number in numbers]
        batch = max(1, self.in_flight // ahead.REQUESTS)
        for content in ahead.contents(self.share, paths, lengths=lengths, batch=batch):
            yield self.transform(content)


class TarStream(_Stream):
    """Samples of archives in the form of WebDataset: files with one name and several extensions.

    A sample is a dictionary with ``__key__``, ``__url__`` and the bytes of each extension.
    """

    def __init__(self, share, paths, transform=None, **order):
        super().__init__(share, paths, **order)
        self.transform = transform

    def __iter__(self):
        for number in self._own():
            for sample in self._samples(self.paths[number]):
                yield self.transform(sample) if self.transform else sample

    def _samples(self, path):
        sample = {}
        with self.share.open(path, "rb", buffering=1 << 20) as file:
            archive = tarfile.open(fileobj=file, mode="r|", bufsize=1 << 20)
            for member in archive:
                if not member.isfile():
                    continue
                directory, _, name = member.name.rpartition("/")
                stem, _, extension = name.partition(".")
                key = f"{directory}/{stem}" if directory else stem
                if sample and sample["__key__"] != key:
                    yield sample
                    sample = {}
                if not sample:
                    sample = {"__key__": key, "__url__": path}
                sample[extension] = archive.extractfile(member).read()
        if sample:
            yield sample


class ParquetStream(_Stream):
    """Row groups of Parquet files as tables of pyarrow. Each row group is one request."""

    def __init__(self, share, paths, columns=None, transform=None, **order):
        super().__init__(share, paths, **order)
        self.columns = columns
        self.transform = transform

    def __iter__(self):
        from . import parquet

        for number in self._own():
            for table in parquet.row_groups(self.share, self.paths[number], self.columns):
                yield self.transform(table) if self.transform else table
