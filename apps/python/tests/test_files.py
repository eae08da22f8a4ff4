import io
import os
import pickle

import numpy
import pytest

import smbeam

MIB = 1 << 20


def test_text_is_as_with_the_built_in_function(share, local):
    with share.open("a.txt", "w", encoding="utf-8", newline="") as file:
        file.write("Grüße\nzwei\n")
    assert (local / "a.txt").read_text(encoding="utf-8") == "Grüße\nzwei\n"
    with share.open("a.txt", encoding="utf-8") as file:
        assert file.readlines() == ["Grüße\n", "zwei\n"]
    with share.open("a.txt", "a", encoding="utf-8") as file:
        file.write("drei\n")
    assert share.read("a.txt").decode() == "Grüße\nzwei\ndrei\n"


@pytest.mark.parametrize("buffering", [-1, 0, 4096])
@pytest.mark.parametrize("size", [0, 1, 4095, 4096, 3 * MIB + 17, 9 * MIB])
def test_any_length_of_reads_returns_the_bytes(share, local, buffering, size):
    content = os.urandom(size)
    (local / "f").write_bytes(content)
    for step in (1000, 4096, 300_000, MIB, 5 * MIB, -1):
        if size // abs(step) > 2000:
            continue
        with share.open("f", "rb", buffering=buffering) as file:
            pieces = []
            while piece := file.read(step):
                pieces.append(piece)
            assert b"".join(pieces) == content
            assert file.tell() == size


def test_random_reads_and_sequences_mix(share, local):
    content = os.urandom(12 * MIB)
    (local / "f").write_bytes(content)
    random = numpy.random.default_rng(7)
    with share.open("f", "rb", buffering=0) as file:
        for _ in range(200):
            if random.random() < 0.3:
                file.seek(int(random.integers(0, len(content))))
            at, size = file.tell(), int(random.integers(1, 2 * MIB))
            assert file.read(size) == content[at : at + size]


def test_a_file_can_be_updated(share, local):
    (local / "f").write_bytes(b"0123456789")
    with share.open("f", "r+b") as file:
        file.seek(3)
        file.write(b"abc")
        file.seek(0)
        assert file.read() == b"012abc6789"
        file.truncate(5)
    assert (local / "f").read_bytes() == b"012ab"
    with share.open("f", "w+b") as file:
        file.write(b"new")
        assert file.seek(0) == 0
        assert file.read() == b"new"


@pytest.mark.parametrize("step", [1, 1000, MIB, 5 * MIB, 11 * MIB])
def test_any_length_of_writes_stores_the_bytes(share, local, step):
    content = os.urandom(11 * MIB if step >= 1000 else 5000)
    with share.open("f", "wb") as file:
        for start in range(0, len(content), step):
            file.write(content[start : start + step])
        assert file.tell() == len(content)
    assert (local / "f").read_bytes() == content


def test_modes_are_checked(share, local):
    (local / "f").write_bytes(b"x")
    for mode in ("", "rw", "q", "rbt", "r++"):
        with pytest.raises(ValueError):
            share.open("f", mode)
    with pytest.raises(FileExistsError):
        share.open("f", "xb")
    with pytest.raises(FileNotFoundError):
        share.open("none", "rb")
    with share.open("f", "rb") as file, pytest.raises(io.UnsupportedOperation):
        file.write(b"y")
    with share.open("f", "ab") as file, pytest.raises(io.UnsupportedOperation):
        file.read()
    with share.open("f", "rb") as file:
        with pytest.raises(io.UnsupportedOperation):
            file.fileno()
    with pytest.raises(ValueError):
        file.read()


def test_buffers_are_filled_in_place(share, local):
    content = numpy.random.default_rng(1).random((700, 1000))
    (local / "f").write_bytes(content.tobytes())
    array = numpy.empty_like(content)
    assert share.read_into("f", array) == content.nbytes
    assert (array == content).all()
    part = bytearray(100)
    with share.open("f", "rb") as file:
        assert file.readinto(memoryview(part)[10:60]) == 50
        assert bytes(part[10:60]) == content.tobytes()[:50]
        assert file.readinto_at(part, 8000) == 100
        assert file.tell() == 50
    part.extend(b"the memory is free again")
    with pytest.raises((BufferError, ValueError)):
        share.read_into("f", array[:, ::2])
    with pytest.raises((BufferError, TypeError)):
        share.read_into("f", b"read-only")


def test_an_atomic_file_is_whole_or_the_old_one(share, local):
    (local / "f").write_bytes(b"old")
    with share.open("f", "wb", atomic=True) as file:
        file.write(b"new")
        file.flush()
        assert (local / "f").read_bytes() == b"old"
    assert (local / "f").read_bytes() == b"new"
    with pytest.raises(RuntimeError):
        with share.open("f", "wb", atomic=True) as file:
            file.write(b"broken")
            raise RuntimeError
    assert os.listdir(local) == ["f"]
    assert (local / "f").read_bytes() == b"new"


def test_a_file_for_reading_survives_a_pickle(share, local):
    (local / "f").write_bytes(b"0123456789")
    with share.open("f", "rb") as file:
        file.seek(4)
        share_with_password = file.raw._share
        assert share_with_password is share
    with share.open("f", "wb") as file, pytest.raises(TypeError):
        pickle.dumps(file)


def test_a_file_by_url(url, local, password):
    (local / "with space.txt").write_text("x")
    with smbeam.open(f"{url}/with%20space.txt", password=password) as file:
        assert file.read() == "x"


def test_a_file_has_no_descriptor_for_numpy(share, name):
    """NumPy before 1.25 takes objects of these classes for files with a descriptor."""
    array = numpy.arange(1000)
    with share.open(f"{name}.npy", "wb") as file:
        numpy.save(file, array)
        assert not isinstance(file, (io.FileIO, io.BufferedReader, io.BufferedWriter))
    with share.open(f"{name}.npy", "rb") as file:
        assert (numpy.load(file) == array).all()
        assert not isinstance(file, (io.FileIO, io.BufferedReader, io.BufferedWriter))
        assert isinstance(file, io.BufferedIOBase)


@pytest.mark.parametrize("buffering", [-1, 0])
def test_a_reader_at_the_end_sees_what_is_appended(share, local, buffering):
    (local / "f").write_bytes(b"one\n")
    with share.open("f", "rb", buffering=buffering) as file:
        assert file.read() == b"one\n" and file.read() == b""
        with open(local / "f", "ab") as more:
            more.write(b"two\nthree\n")
        assert file.read() == b"two\nthree\n"
        with open(local / "f", "ab") as more:
            more.write(b"four\n")
        assert file.readline() == b"four\n"
        assert file.seek(0, os.SEEK_END) == 19 and file.size() == 19
