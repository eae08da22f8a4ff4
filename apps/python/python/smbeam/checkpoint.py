"""Checkpoints of PyTorch: ``torch.save`` and ``torch.load``, and Distributed Checkpoint.

    from torch.distributed import checkpoint
    from smbeam.checkpoint import Reader, Writer

    checkpoint.save(state, storage_writer=Writer("smb://alice@nas/runs/step-100"))
    checkpoint.load(state, storage_reader=Reader("smb://alice@nas/runs/step-100"))

A checkpoint is written to a directory beside its own, and takes its name when all processes have
written their parts. A save that is interrupted leaves an older checkpoint of the same name whole.
"""

import os
from contextlib import contextmanager

import torch
from torch.distributed.checkpoint.filesystem import (
    FileSystemBase,
    FileSystemReader,
    FileSystemWriter,
)

from . import _file, _paths
from ._share import Share

__all__ = ["Reader", "Writer", "load", "save"]

#: Sizes of the buffers of files in bytes.
WRITE_BUFFER, READ_BUFFER = 4 << 20, 1 << 20
#: The end of the name of a directory that is being written.
UNFINISHED = ".unfinished"
#: The end of the name of a directory that is being replaced.
REPLACED = ".replaced"
#: The file that makes a checkpoint complete; it is written last.
METADATA = ".metadata"


def save(obj, share, path, *, sync=True, **arguments):
    """Saves an object by ``torch.save``, streamed into a file that appears when it is whole.

    With ``sync`` the bytes are on stable storage when the function returns.
    """
    with share.open(path, "wb", atomic=True, buffering=WRITE_BUFFER) as file:
        torch.save(obj, file, **arguments)
        if sync:
            file.sync()


def load(share, path, **arguments):
    """Loads an object by ``torch.load``, streamed from the server."""
    with share.open(path, "rb", buffering=READ_BUFFER) as file:
        return torch.load(file, **arguments)


class _Synced(_file.BufferedWriter):
    """A file that is on stable storage when it is closed. Some versions of PyTorch close it."""

    def close(self):
        if not self.closed:
            self.sync()
        super().close()


class _Files(FileSystemBase):
    """The directory of a checkpoint for the classes of PyTorch. Paths are within the share."""

    def __init__(self, share):
        self.share = share

    @contextmanager
    def create_stream(self, path, mode):
        path = os.fspath(path)
        if "w" in mode:
            file = _Synced(self.share.open(path, mode, buffering=0), WRITE_BUFFER)
        else:
            file = self.share.open(path, mode, buffering=READ_BUFFER)
        with file:
            yield file

    def concat_path(self, path, suffix):
        return _paths.join(os.fspath(path), suffix)

    def rename(self, path, new_path):
        self.share.rename(os.fspath(path), os.fspath(new_path), replace=True)

    def init_path(self, path):
        return os.fspath(path)

    def mkdir(self, path):
        self.share.makedirs(os.fspath(path), exist_ok=True)

    @classmethod
    def validate_checkpoint_id(cls, checkpoint_id):
        return str(checkpoint_id).startswith("smb://")

    def exists(self, path):
        return self.share.exists(os.fspath(path))

    def rm_file(self, path):
        self.share.remove(os.fspath(path))

    def ls(self, path):
        return [_paths.join(os.fspath(path), e.name) for e in self.share.list(os.fspath(path))]


def _split(url, arguments):
    """The share of the directory above a URL, and the name of the checkpoint."""
    parent, _, name = str(url).rstrip("/").rpartition("/")
    return Share(parent, **arguments), name


class Writer(FileSystemWriter):
    """Writes a checkpoint of several processes to a share.

    ``arguments`` are those of ``Share``; ``threads`` is the count of files that each process writes
    at the same time.
    """

    def __init__(self, url, *, threads=2, single_file_per_rank=True, overwrite=True, **arguments):
        share, name = _split(url, arguments)
        super().__init__(
            name + UNFINISHED,
            single_file_per_rank=single_file_per_rank,
            sync_files=False,
            thread_count=threads,
            overwrite=overwrite,
        )
        self.fs = _Files(share)
        self._use(share, name)

    def _use(self, share, name):
        self._share, self._name = share, name
        self.fs.share = share
        self.path = name + UNFINISHED

    def reset(self, checkpoint_id=None):
        super().reset(None)
        if checkpoint_id is not None:
            description = self._share._description
            arguments = {
                "user": description.user,
                "password": description.password,
                "domain": description.domain,
            }
            self._use(*_split(checkpoint_id, {**arguments, **description.options}))

    @classmethod
    def validate_checkpoint_id(cls, checkpoint_id):
        return _Files.validate_checkpoint_id(checkpoint_id)

    def prepare_local_plan(self, plan):
        # The coordinator makes the directory, after it has removed an unfinished one.
        return plan

    def prepare_global_plan(self, plans):
        if self._share.exists(self.path):
            self._share.remove_tree(self.path)
        self._share.makedirs(self.path, exist_ok=True)
        return super().prepare_global_plan(plans)

    def finish(self, metadata, results):
        super().finish(metadata, results)
        replaced = self._name + REPLACED
        if self._share.exists(self._name):
            if self._share.exists(replaced):
                self._share.remove_tree(replaced)
            self._share.rename(self._name, replaced)
        self._share.rename(self.path, self._name)
        if self._share.exists(replaced):
            self._share.remove_tree(replaced)


class Reader(FileSystemReader):
    """Reads a checkpoint from a share, by any count of processes."""

    def __init__(self, url, **arguments):
        share, name = _split(url, arguments)
        directory = _complete(share, name)
        super().__init__(directory)
        self.fs, self.path = _Files(share), directory

    @classmethod
    def validate_checkpoint_id(cls, checkpoint_id):
        return _Files.validate_checkpoint_id(checkpoint_id)


def _complete(share, name):
    """The directory of the checkpoint. After a crash between two renames it is the replaced one."""
    for directory in (name, name + REPLACED):
        if share.exists(f"{directory}/{METADATA}"):
            return directory
    return name
