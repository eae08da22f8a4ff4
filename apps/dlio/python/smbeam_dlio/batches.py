"""Whole batches in DLIO's data set for PyTorch.

The loader of PyTorch 2.0 and later calls `__getitems__` of a data set with the numbers of a batch.
DLIO's data set has no such method. This module adds it for readers that can read files together.
"""

from dlio_benchmark.data_loader.torch_data_loader import TorchDataset


def install():
    """Adds the method to the data set of DLIO in this process."""
    TorchDataset.__getitems__ = read_batch


def read_batch(dataset, indices):
    """Returns the samples with these numbers."""
    read_ahead = getattr(dataset.reader, "read_ahead", None)
    if read_ahead is not None:
        read_ahead(indices)
    return [dataset[index] for index in indices]
