"""Runs the workloads of DLIO on files of SMB servers, without a mount.

    python -m smbeam_dlio workload=unet3d_h100 \\
        ++workload.storage.storage_type=smb ++workload.storage.storage_root=smb://alice@nas/data

``install`` adds the classes of this package to DLIO in the running process. No file of DLIO is
changed.
"""

__all__ = ["__version__", "install"]

__version__ = "0.1.0"


def install():
    """Adds the storage type ``smb``, its readers, generators and checkpoints to DLIO.

    Repeated calls do nothing.
    """
    from . import plugin

    plugin.install()
