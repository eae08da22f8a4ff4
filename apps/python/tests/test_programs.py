"""Programs that know nothing of SMB: they take a URL, and fsspec takes the class of the package."""

import numpy
import pytest

from served import PASSWORD, URL
from fsspec.utils import infer_storage_options
from smbeam.fsspec import SmbeamFileSystem, register

OPTIONS = infer_storage_options(URL)

register()


@pytest.fixture
def full(name):
    """The URL of the directory with the login."""
    login = f"{OPTIONS['username']}:{PASSWORD}@{OPTIONS['host']}:{OPTIONS['port']}"
    return f"smb://{login}{OPTIONS['path'].rstrip('/')}/{name}"


@pytest.fixture
def table():
    pandas = pytest.importorskip("pandas")
    numbers = numpy.arange(20_000)
    return pandas.DataFrame({"number": numbers, "square": numbers**2, "group": numbers % 4})


def test_pandas(full, table):
    pandas = pytest.importorskip("pandas")
    table.to_csv(f"{full}/t.csv", index=False)
    assert pandas.read_csv(f"{full}/t.csv").equals(table)
    table.to_parquet(f"{full}/t.parquet")
    assert pandas.read_parquet(f"{full}/t.parquet", columns=["square"]).equals(table[["square"]])
    table.to_json(f"{full}/t.json.gz")
    assert pandas.read_json(f"{full}/t.json.gz")["number"].sum() == table["number"].sum()


def test_datasets_of_pyarrow(full, table):
    pyarrow = pytest.importorskip("pyarrow")
    dataset = pytest.importorskip("pyarrow.dataset")
    from pyarrow.fs import FSSpecHandler, PyFileSystem
    import fsspec

    fs, path = fsspec.url_to_fs(f"{full}/parts", auto_mkdir=True)
    assert type(fs) is SmbeamFileSystem
    files = PyFileSystem(FSSpecHandler(fs))
    dataset.write_dataset(
        pyarrow.Table.from_pandas(table),
        path,
        format="parquet",
        partitioning=["group"],
        filesystem=files,
    )
    parts = dataset.dataset(path, format="parquet", partitioning=["group"], filesystem=files)
    found = parts.to_table(filter=dataset.field("group") == 3).to_pandas()
    assert sorted(found["number"]) == list(range(3, 20_000, 4))


def test_zarr_and_xarray(full):
    zarr = pytest.importorskip("zarr")
    xarray = pytest.importorskip("xarray")
    content = numpy.random.default_rng(3).random((300, 200))
    options = {"auto_mkdir": True}
    array = zarr.create_array(
        f"{full}/a.zarr", shape=(300, 200), chunks=(50, 50), dtype="f8", storage_options=options
    )
    array[:] = content
    again = zarr.open_array(f"{full}/a.zarr", mode="r", storage_options=options)
    assert (again[10:60, 3:77] == content[10:60, 3:77]).all()
    data = xarray.Dataset({"v": (("x", "y"), content)})
    data.to_zarr(f"{full}/x.zarr", storage_options=options, consolidated=False)
    loaded = xarray.open_zarr(f"{full}/x.zarr", storage_options=options, consolidated=False)
    assert float(loaded["v"].sum()) == pytest.approx(content.sum())


def test_dask(full, table):
    pytest.importorskip("dask")
    frames = pytest.importorskip("dask.dataframe")
    for part in range(4):
        table[table["group"] == part].to_csv(f"{full}/part-{part}.csv", index=False)
    found = frames.read_csv(f"{full}/part-*.csv")
    assert found["square"].sum().compute(scheduler="threads") == table["square"].sum()
    assert found["square"].max().compute(scheduler="processes") == table["square"].max()


def test_datasets_of_hugging_face(full, table, tmp_path):
    datasets = pytest.importorskip("datasets")
    table.to_parquet(f"{full}/train.parquet")
    # Between its steps the package keeps paths and drops hosts, so the options have the host.
    options = {name: OPTIONS[name] for name in ("host", "port", "username")}
    arguments = {
        "data_files": {"train": f"smb:///{full.partition('@')[2].partition('/')[2]}/train.parquet"},
        "storage_options": {**options, "password": PASSWORD},
    }
    loaded = datasets.load_dataset("parquet", **arguments, cache_dir=str(tmp_path))
    assert sum(loaded["train"]["square"]) == table["square"].sum()


def test_an_archive_is_a_file_system(full):
    """zipfile takes a file with a path for one of this machine."""
    import fsspec
    import zipfile

    with fsspec.open(f"{full}/a.zip", "wb") as file, zipfile.ZipFile(file, "w") as archive:
        archive.writestr("one", b"1")
    files = fsspec.filesystem("zip", fo=f"{full}/a.zip")
    assert files.cat("one") == b"1"
    assert fsspec.open(f"zip://one::{full}/a.zip", "rb").open().read() == b"1"
