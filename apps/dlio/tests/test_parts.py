"""The parts of the package, without a workload."""

import io
import zipfile

import pytest

for module in ("dlio_benchmark", "torch", "mpi4py"):
    pytest.importorskip(module)

import numpy  # noqa: E402
import smbeam  # noqa: E402
from smbeam_dlio import install, npz  # noqa: E402
from smbeam_dlio.location import Location, below  # noqa: E402

install()


def test_names_and_paths():
    root = Location("smb://alice@nas/share/runs/1/")
    assert root.path() == "runs/1"
    assert root.path("unet3d/train/") == "runs/1/unet3d/train"
    assert root.path("/unet3d/a.npz") == "runs/1/unet3d/a.npz"
    assert root.path("smb://alice@nas/share/runs/1/a") == "runs/1/a"
    assert root.name("runs/1/unet3d/a.npz") == "/unet3d/a.npz"
    assert below(root.url, "./checkpoints/").path("a.pt") == "runs/1/checkpoints/a.pt"
    assert Location("smb://alice@nas/share").path("a") == "a"


@pytest.mark.parametrize("url", ["./", "/mnt/nas", "smb://nas", "s3://bucket/a"])
def test_other_roots_are_refused(url):
    with pytest.raises(ValueError, match="expected smb://"):
        Location(url)


def test_paths_of_other_shares_are_refused():
    with pytest.raises(ValueError, match="not below"):
        Location("smb://nas/share/run").path("smb://nas/share/runs")


def archive():
    """The bytes of an npz file, and its array."""
    file, array = io.BytesIO(), numpy.arange(1000, dtype="u1").reshape(10, 100)
    numpy.savez(file, x=array, y=[0])
    return bytearray(file.getvalue()), array


def test_checksums_are_verified():
    content, array = archive()
    assert (npz.load(bytes(content), "x", verify=True) == array).all()
    content[500] ^= 1
    assert npz.load(bytes(content), "x", verify=False).shape == array.shape
    with pytest.raises(zipfile.BadZipFile, match="checksum"):
        npz.load(bytes(content), "x", verify=True)


def test_a_batch_is_read_together(url, local, monkeypatch):
    from smbeam_dlio import batches, readers

    for number in range(4):
        (local / f"{number}.npz").write_bytes(archive()[0])
    calls = []
    read_many = smbeam.Share.read_many
    monkeypatch.setattr(
        smbeam.Share, "read_many", lambda *a, **k: calls.append(a[1]) or read_many(*a, **k)
    )
    monkeypatch.setattr(smbeam.Share, "read", lambda *_a, **_k: pytest.fail("a single read"))
    dataset = Dataset(readers.SmbNpzReader.__new__(readers.SmbNpzReader), url)
    assert batches.read_batch(dataset, [0, 2, 3]) == [(10, 100)] * 3
    assert [len(paths) for paths in calls] == [3]


class Dataset:
    """A data set of four files, in place of DLIO's."""

    class Arguments:
        record_length, num_samples_per_file = 1000, 1

    def __init__(self, reader, url):
        self.reader = reader
        reader._args, reader._location, reader._ahead = self.Arguments, Location(url), {}
        reader.global_index_map = {number: (f"/{number}.npz", 0) for number in range(4)}

    def __getitem__(self, index):
        return self.reader.open(self.reader.global_index_map[index][0]).shape
