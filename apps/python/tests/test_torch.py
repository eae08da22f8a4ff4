"""Datasets for PyTorch, checkpoints, and tensors of safetensors."""

import json
import os
import struct
import tarfile

import numpy
import pytest

torch = pytest.importorskip("torch")

from torch.utils.data import DataLoader

from smbeam import datasets, safetensors

METHODS = ["fork", "spawn", "forkserver"]


@pytest.fixture
def files(local):
    contents = {f"f{number:03}": os.urandom(500 + number * 37) for number in range(120)}
    for path, content in contents.items():
        (local / path).write_bytes(content)
    return contents


def as_is(samples):
    return samples


def lengths(content):
    return len(content)


@pytest.mark.parametrize("method", METHODS)
def test_workers_read_files(share, files, method):
    dataset = datasets.FileDataset(share, list(files))
    assert bytes(dataset[3].numpy()) == files["f003"]
    loader = DataLoader(
        dataset, 16, num_workers=3, multiprocessing_context=method, collate_fn=as_is
    )
    for _ in range(2):
        found = [bytes(sample.numpy()) for batch in loader for sample in batch]
        assert found == list(files.values())


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("workers", [0, 3])
def test_each_file_of_a_stream_arrives_once(share, files, method, workers):
    dataset = datasets.FileStream(share, list(files), lengths, shuffle=True, in_flight=16)
    context = method if workers else None
    loader = DataLoader(
        dataset, None, num_workers=workers, multiprocessing_context=context
    )
    orders = []
    for epoch in range(2):
        dataset.set_epoch(epoch)
        orders.append([int(length) for length in loader])
        assert sorted(orders[-1]) == sorted(map(len, files.values()))
    assert orders[0] != orders[1]


def test_ranks_have_different_files(share, files):
    parts = [
        list(datasets.FileStream(share, list(files), lengths, rank=rank, world_size=4))
        for rank in range(4)
    ]
    assert sorted(sum(parts, [])) == sorted(map(len, files.values()))


def test_arrays(share, local):
    for number in range(6):
        numpy.savez(local / f"a{number}.npz", x=numpy.full((50, 40), number, dtype="u1"))
    dataset = datasets.NpzDataset(share, [f"a{number}.npz" for number in range(6)])
    batches = list(DataLoader(dataset, 3, num_workers=2))
    assert [batch.shape for batch in batches] == [(3, 50, 40)] * 2
    assert [int(batch[0, 0, 0]) for batch in batches] == [0, 3]


def test_archives_of_webdataset(share, local):
    for shard in range(2):
        with tarfile.open(local / f"s{shard}.tar", "w") as archive:
            for number in range(10):
                for extension in ("jpg", "cls"):
                    name = f"d/{shard}{number:02}.{extension}"
                    path = local / "content"
                    path.write_bytes(f"{name}!".encode() * 1000)
                    archive.add(path, name)
    dataset = datasets.TarStream(share, ["s0.tar", "s1.tar"])
    samples = list(DataLoader(dataset, None, num_workers=2))
    assert len(samples) == 20
    sample = next(each for each in samples if each["__key__"] == "d/103")
    assert sample["jpg"] == b"d/103.jpg!" * 1000 and sample["cls"] == b"d/103.cls!" * 1000


def test_row_groups(share, local):
    pytest.importorskip("pyarrow")
    import pyarrow
    import pyarrow.parquet

    table = pyarrow.table({"a": list(range(1000)), "b": list(range(1000))})
    pyarrow.parquet.write_table(table, local / "t.parquet", row_group_size=100)
    dataset = datasets.ParquetStream(share, ["t.parquet"], ["a"], transform=len)
    assert list(dataset) == [100] * 10


def test_a_file_as_a_tensor(share, local):
    content = os.urandom(5_000_000)
    (local / "f").write_bytes(content)
    assert bytes(datasets.read_tensor(share, "f").numpy()) == content


def test_tensors_of_safetensors(share, local):
    tensors = {
        "a": torch.arange(100_000, dtype=torch.float32).reshape(100, 1000),
        "b": torch.full((7,), 2.5).to(torch.bfloat16),
        "c": torch.empty((0, 3), dtype=torch.int64),
        "d": torch.tensor(True),
    }
    names = {torch.float32: "F32", torch.bfloat16: "BF16", torch.int64: "I64", torch.bool: "BOOL"}
    header, data = {}, b""
    for name, tensor in tensors.items():
        flat = tensor.reshape(-1)
        part = bytes(flat.view(torch.uint8).numpy()) if flat.numel() else b""
        header[name] = {
            "dtype": names[tensor.dtype],
            "shape": list(tensor.shape),
            "data_offsets": [len(data), len(data) + len(part)],
        }
        data += part
    text = json.dumps(header).encode()
    (local / "m.safetensors").write_bytes(struct.pack("<Q", len(text)) + text + data)
    loaded = safetensors.load_file(share, "m.safetensors")
    assert list(loaded) == list(tensors)
    for name, tensor in tensors.items():
        assert loaded[name].dtype == tensor.dtype and torch.equal(loaded[name], tensor)
    assert list(safetensors.load_file(share, "m.safetensors", ["b"])) == ["b"]


def test_objects_are_saved_and_loaded(share, local):
    checkpoint = pytest.importorskip("smbeam.checkpoint")
    state = {"w": torch.rand(300, 400), "step": 7}
    checkpoint.save(state, share, "s.pt")
    assert sorted(os.listdir(local)) == ["s.pt"]
    loaded = checkpoint.load(share, "s.pt")
    assert loaded["step"] == 7 and torch.equal(loaded["w"], state["w"])
    assert torch.equal(torch.load(local / "s.pt")["w"], state["w"])


def test_a_distributed_checkpoint_of_one_process(share, local, url, password):
    checkpoint = pytest.importorskip("smbeam.checkpoint")
    from torch.distributed import checkpoint as dcp

    for step in range(2):
        state = {"w": torch.full((300, 400), float(step)), "b": torch.arange(10)}
        dcp.save(state, storage_writer=checkpoint.Writer(f"{url}/step", password=password))
        target = {"w": torch.zeros(300, 400), "b": torch.zeros(10, dtype=torch.int64)}
        dcp.load(target, storage_reader=checkpoint.Reader(f"{url}/step", password=password))
        assert torch.equal(target["w"], state["w"]) and torch.equal(target["b"], state["b"])
        assert os.listdir(local) == ["step"]
