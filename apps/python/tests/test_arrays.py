"""Archives of NumPy and files of safetensors."""

import io
import json
import os
import struct

import numpy
import pytest

from smbeam import ahead, npz

ARRAYS = {
    "x": numpy.random.default_rng(1).integers(0, 255, (700, 300), dtype="u1"),
    "fortran": numpy.asfortranarray(numpy.random.default_rng(2).random((20, 30))),
    "empty": numpy.empty((0, 5), dtype="i4"),
    "one": numpy.array(7.5),
}


@pytest.mark.parametrize("save", [numpy.savez, numpy.savez_compressed])
def test_archives_of_numpy(share, local, save):
    save(local / "a.npz", **ARRAYS)
    content = (local / "a.npz").read_bytes()
    for loaded in (npz.load(share, "a.npz"), npz.loads(content)):
        assert sorted(loaded) == sorted(ARRAYS)
        for name, array in ARRAYS.items():
            assert loaded[name].dtype == array.dtype and (loaded[name] == array).all()
    assert list(npz.load(share, "a.npz", ["x"])) == ["x"]
    with pytest.raises(KeyError):
        npz.load(share, "a.npz", ["none"])


def test_single_arrays(share, local):
    for name, array in ARRAYS.items():
        numpy.save(local / f"{name}.npy", array)
        assert (npz.load(share, f"{name}.npy") == array).all()
        assert (npz.loads((local / f"{name}.npy").read_bytes()) == array).all()


def test_arrays_of_objects_and_broken_files_are_refused(share, local):
    numpy.savez(local / "o.npz", x=numpy.array([{}, []], dtype=object))
    with pytest.raises(ValueError):
        npz.load(share, "o.npz")
    text = io.BytesIO()
    numpy.savez(text, x=numpy.arange(1000))
    (local / "short.npz").write_bytes(text.getvalue()[:500])
    with pytest.raises(Exception, match="zip"):
        npz.load(share, "short.npz")
    whole = io.BytesIO()
    numpy.save(whole, numpy.arange(1000))
    (local / "short.npy").write_bytes(whole.getvalue()[:-8])
    with pytest.raises(ValueError):
        npz.load(share, "short.npy")


def test_contents_come_in_order(share, local):
    contents = [os.urandom(number * 400) for number in range(200)]
    for number, content in enumerate(contents):
        (local / f"f{number}").write_bytes(content)
    paths = [f"f{number}" for number in range(200)]
    assert list(ahead.contents(share, paths)) == contents
    assert list(ahead.contents(share, paths, batch=7, requests=3)) == contents
    found = list(ahead.contents(share, ["f1", "none", "f2"], on_error="return"))
    assert found[0] == contents[1] and isinstance(found[1], FileNotFoundError)
    with pytest.raises(FileNotFoundError):
        list(ahead.contents(share, ["none"]))
    # A caller that stops early leaves no request behind that harms the next one.
    for content in ahead.contents(share, paths):
        break
    assert share.read("f3") == contents[3]


def test_row_groups_of_parquet(share, local):
    pyarrow = pytest.importorskip("pyarrow")
    import pyarrow.parquet

    from smbeam import parquet

    table = pyarrow.table(
        {
            "a": list(range(50_000)),
            "b": [f"text {number % 100}" for number in range(50_000)],
            "c": [{"d": number, "e": number / 2} for number in range(50_000)],
        }
    )
    pyarrow.parquet.write_table(table, local / "t.parquet", row_group_size=9_000)
    groups = list(parquet.row_groups(share, "t.parquet"))
    assert len(groups) == 6
    assert pyarrow.concat_tables(groups).equals(table)
    groups = list(parquet.row_groups(share, "t.parquet", ["b"]))
    assert pyarrow.concat_tables(groups).equals(table.select(["b"]))


def test_headers_of_safetensors_are_checked(share, local):
    from smbeam import safetensors

    def write(header, data=b"", length=None):
        text = json.dumps(header).encode()
        length = len(text) if length is None else length
        (local / "t").write_bytes(struct.pack("<Q", length) + text + data)

    write({"a": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}}, b"\0" * 8)
    header, offset = safetensors.read_header(share, "t")
    assert list(header) == ["a"] and offset > 8
    for header, data, length in (
        ({"a": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}}, b"\0" * 7, None),
        ({"a": {"dtype": "F32", "shape": [2], "data_offsets": [-1, 8]}}, b"\0" * 8, None),
        ({"a": {"dtype": "X9", "shape": [2], "data_offsets": [0, 8]}}, b"\0" * 8, None),
        ({}, b"", 1 << 62),
    ):
        write(header, data, length)
        with pytest.raises(ValueError):
            safetensors.read_header(share, "t")
    (local / "t").write_bytes(b"123")
    with pytest.raises(ValueError):
        safetensors.read_header(share, "t")
