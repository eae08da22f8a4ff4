"""Checkpoints of DLIO for PyTorch on a share."""

import torch
from dlio_benchmark.checkpointing.pytorch_checkpointing import PyTorchCheckpointing

from . import location

#: Size of the buffers of files in bytes, for writes and for reads.
WRITE_BUFFER, READ_BUFFER = 4 << 20, 1 << 20


class SmbPyTorchCheckpointing(PyTorchCheckpointing):
    """Writes and reads the state by `torch.save` and `torch.load`, streamed over SMB.

    The memory beside the tensors is at most that of the largest tensor.
    """

    _instance = None

    @staticmethod
    def get_instance():
        if SmbPyTorchCheckpointing._instance is None:
            SmbPyTorchCheckpointing._instance = SmbPyTorchCheckpointing()
        return SmbPyTorchCheckpointing._instance

    def _file(self, suffix):
        """The share and the path of a file."""
        directory = location.below(self.args.storage_root, self.args.checkpoint_folder)
        return directory.share, directory.path(f"{suffix}.{self.ext}")

    def _is_synchronized(self, fsync):
        """Whether the setting `checkpoint.fsync` is true.

        DLIO of the rounds v2 and v3 stores it in an attribute that its own class does not read, and
        passes False. DLIO 2.0.0 has no such setting.
        """
        return fsync or bool(getattr(self.args, "checkpoint_sync", False))

    def save_state(self, suffix, state, fsync=False):
        """Writes a file. With ``fsync`` its bytes are on stable storage at the end."""
        share, path = self._file(suffix)
        with share.open(path, "wb", buffering=WRITE_BUFFER) as file:
            torch.save(state, file)
            if self._is_synchronized(fsync):
                file.sync()

    def load_state(self, suffix, state, **_keywords):
        """Reads a file. The tensors are dropped, as DLIO does it."""
        share, path = self._file(suffix)
        with share.open(path, "rb", buffering=READ_BUFFER) as file:
            loaded = torch.load(file)
        if not loaded:
            raise ValueError(f"the checkpoint {path} is empty")
