"""The test suites that come with fsspec, and tests of the rest."""

import os
import pickle

import fsspec
import pytest
from fsspec.tests.abstract import AbstractFixtures
from fsspec.tests.abstract.copy import AbstractCopyTests
from fsspec.tests.abstract.get import AbstractGetTests
from fsspec.tests.abstract.open import AbstractOpenTests
from fsspec.tests.abstract.pipe import AbstractPipeTests
from fsspec.tests.abstract.put import AbstractPutTests
from fsspec.utils import infer_storage_options

from served import DIRECTORY, PASSWORD, URL
from smbeam.fsspec import SmbeamFileSystem, register

OPTIONS = infer_storage_options(URL)
SHARE = OPTIONS["path"].strip("/")


@pytest.fixture(autouse=True, scope="module")
def registered():
    register()


def make():
    return SmbeamFileSystem(
        OPTIONS["host"],
        port=OPTIONS["port"],
        username=OPTIONS["username"],
        password=PASSWORD,
        auto_mkdir=True,
    )


class SmbeamFixtures(AbstractFixtures):
    @pytest.fixture(scope="class")
    def fs(self):
        return make()

    @pytest.fixture
    def fs_path(self):
        import uuid

        directory = DIRECTORY / f"a-{uuid.uuid4().hex[:8]}"
        directory.mkdir()
        directory.chmod(0o777)
        return f"/{SHARE}/{directory.name}"


class TestCopy(SmbeamFixtures, AbstractCopyTests):
    pass


class TestGet(SmbeamFixtures, AbstractGetTests):
    pass


class TestPut(SmbeamFixtures, AbstractPutTests):
    pass


class TestOpen(SmbeamFixtures, AbstractOpenTests):
    pass


class TestPipe(SmbeamFixtures, AbstractPipeTests):
    pass


@pytest.fixture
def fs():
    return make()


@pytest.fixture
def root(name):
    return f"/{SHARE}/{name}"


def full_url(root):
    login = f"{OPTIONS['username']}:{PASSWORD}"
    return f"smb://{login}@{OPTIONS['host']}:{OPTIONS['port']}{root}"


def test_a_url_has_the_class_and_the_login(root, local):
    (local / "a b.txt").write_text("x")
    with fsspec.open(f"{full_url(root)}/a b.txt", "r") as file:
        assert file.read() == "x"
    fs, path = fsspec.url_to_fs(f"{full_url(root)}/a b.txt")
    assert type(fs) is SmbeamFileSystem
    assert path == f"{root}/a b.txt"
    assert fs.info(path)["size"] == 1
    assert PASSWORD not in fs.unstrip_protocol(path)


def test_listings_have_details(fs, root, local):
    (local / "d").mkdir()
    (local / "f").write_bytes(b"123")
    assert fs.ls(root, detail=False) == [f"{root}/d", f"{root}/f"]
    details = {each["name"]: each for each in fs.ls(root)}
    assert details[f"{root}/f"]["size"] == 3
    assert details[f"{root}/d"]["type"] == "directory"
    assert fs.ls(f"{root}/f", detail=False) == [f"{root}/f"]
    with pytest.raises(FileNotFoundError):
        fs.ls(f"{root}/none")
    assert f"/{SHARE}" in fs.ls("/", detail=False)
    assert fs.isdir("/") and fs.exists(f"/{SHARE}")


def test_trees_are_listed_once(fs, root, local):
    for path in ("a/b/c/f1", "a/f22", "f333"):
        (local / path).parent.mkdir(parents=True, exist_ok=True)
        (local / path).write_text(path)
    names = [f"{root}/a/b/c/f1", f"{root}/a/f22", f"{root}/f333"]
    assert fs.find(root) == names
    assert fs.find(root, maxdepth=1) == names[2:]
    assert f"{root}/a/b" in fs.find(root, withdirs=True)
    assert fs.du(root) == sum(map(len, ("a/b/c/f1", "a/f22", "f333")))
    assert fs.find(f"{root}/f333") == names[2:]
    assert fs.find(f"{root}/none") == []
    assert sorted(fs.glob(f"{root}/**/f*")) == names
    fs.rm(f"{root}/a", recursive=True)
    assert os.listdir(local) == ["f333"]


def test_contents(fs, root, local):
    content = os.urandom(100_000)
    fs.pipe({f"{root}/a": content, f"{root}/b": b"bb"})
    assert fs.cat([f"{root}/a", f"{root}/b"]) == {f"{root}/a": content, f"{root}/b": b"bb"}
    assert fs.cat_file(f"{root}/a", 10, 20) == content[10:20]
    assert fs.cat_file(f"{root}/a", -10) == content[-10:]
    assert fs.cat_file(f"{root}/a", 5, -5) == content[5:-5]
    ranges = fs.cat_ranges([f"{root}/a", f"{root}/b", f"{root}/a"], [0, 0, -4], [5, 1, None])
    assert ranges == [content[:5], b"b", content[-4:]]
    failed = fs.cat_ranges([f"{root}/none"], [0], [5])
    assert isinstance(failed[0], FileNotFoundError)
    omitted = fs.cat([f"{root}/a", f"{root}/none"], on_error="omit")
    assert list(omitted) == [f"{root}/a"]
    assert fs.head(f"{root}/a", 3) == content[:3]
    assert fs.tail(f"{root}/a", 3) == content[-3:]


def test_a_transaction_is_whole_or_nothing(fs, root, local):
    with fs.transaction:
        with fs.open(f"{root}/a", "wb") as file:
            file.write(b"1")
        assert not (local / "a").exists()
    assert (local / "a").read_bytes() == b"1"
    with pytest.raises(RuntimeError):
        with fs.transaction:
            with fs.open(f"{root}/a", "wb") as file:
                file.write(b"2")
            raise RuntimeError
    assert (local / "a").read_bytes() == b"1"
    assert os.listdir(local) == ["a"]


@pytest.mark.parametrize("cache_type", ["readahead", "bytes", "blockcache", "all", "none"])
def test_block_caches(fs, root, local, cache_type):
    content = os.urandom(300_000)
    (local / "f").write_bytes(content)
    with fs.open(f"{root}/f", "rb", cache_type=cache_type, block_size=10_000) as file:
        file.seek(123_456)
        assert file.read(1000) == content[123_456:124_456]
        file.seek(0)
        assert file.read() == content


def test_files_have_what_users_of_fsspec_expect(fs, root, local):
    (local / "f").write_bytes(b"12345")
    with fs.open(f"{root}/f") as file:
        assert (file.size, file.path, file.fs) == (5, f"{root}/f", fs)
        assert file.read(2) == b"12"
        copy = pickle.loads(pickle.dumps(file))
        assert copy.read() == b"345"
    assert pickle.loads(pickle.dumps(fs)).cat_file(f"{root}/f") == b"12345"


def test_callbacks_count_the_bytes(fs, root, local, tmp_path):
    from fsspec.callbacks import Callback

    content = os.urandom(5_000_000)
    (local / "f").write_bytes(content)
    callback = Callback()
    fs.get_file(f"{root}/f", str(tmp_path / "f"), callback=callback)
    assert (callback.value, callback.size) == (5_000_000, 5_000_000)
    callback = Callback()
    fs.put_file(str(tmp_path / "f"), f"{root}/g", callback=callback)
    assert callback.value == 5_000_000
    assert (local / "g").read_bytes() == content
