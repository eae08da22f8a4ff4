"""Workloads of DLIO over a running server."""

import pytest

numpy = pytest.importorskip("numpy")
torch = pytest.importorskip("torch")
pytest.importorskip("dlio_benchmark")

EPOCHS = 2


def small(**settings):
    """Settings of a small training: 24 files of about 0.5 MB. DLIO 2.0.0 has other names."""
    names = {
        "dataset.data_folder": "unet3d",
        "dataset.num_files_train": 24,
        "dataset.record_length": 500_000,
        "dataset.record_length_bytes": 500_000,
        "dataset.record_length_stdev": 100_000,
        "dataset.record_length_bytes_stdev": 100_000,
        "dataset.record_length_resize": 4096,
        "dataset.record_length_bytes_resize": 4096,
        "reader.batch_size": 3,
        "reader.read_threads": 2,
        "train.epochs": EPOCHS,
        "train.computation_time": 0.01,
        "workflow.generate_data": True,
        "workflow.checkpoint": False,
        "checkpoint.model_size": 1000,
    }
    return {**names, **settings}


@pytest.mark.parametrize("context", ["fork", "spawn"])
def test_unet3d_trains(dlio, local, context):
    metrics = dlio("unet3d_h100", small(**{"reader.multiprocessing_context": context}))
    assert len(metrics["train_au_percentage"]) == EPOCHS
    assert metrics["train_throughput_mean_samples_per_second"] > 0
    files = sorted((local / "unet3d/train").iterdir())
    assert files[0].name == "img_00_of_24.npz" and len(files) == 24


def test_generated_files_are_those_of_dlio(dlio, local):
    dlio("unet3d_h100", small(**{"workflow.train": False}))
    random = numpy.random.RandomState(10)
    stdev = 100_000 / 2 / 500_000**0.5
    sizes = [max(int(size), 1) for size in random.normal(int(500_000**0.5), stdev, 48)]
    for number in range(24):
        loaded = numpy.load(local / f"unet3d/train/img_{number:02}_of_24.npz")
        assert loaded["x"].shape == (sizes[2 * number], sizes[2 * number + 1], 1)


def test_ranks_train_together(dlio):
    metrics = dlio("unet3d_h100", small(), ranks=2)
    assert len(metrics["train_au_percentage"]) == EPOCHS


def test_files_are_found_in_subdirectories(dlio, local):
    dlio("unet3d_h100", small(**{"dataset.num_subfolders_train": 4}))
    assert len(list((local / "unet3d/train").glob("*/*.npz"))) == 24


@pytest.mark.parametrize("format", ["jpeg", "png", "npy"])
def test_other_formats_train(dlio, local, format):
    metrics = dlio("unet3d_h100", small(**{"dataset.format": format}))
    assert len(metrics["train_au_percentage"]) == EPOCHS
    assert len(list((local / "unet3d/train").glob(f"*.{format}"))) == 24


def test_a_training_saves_checkpoints(dlio, local):
    model = {"checkpoint.model_size": 1_000_000, "model.model_size_bytes": 1_000_000}
    settings = {"workflow.checkpoint": True, "checkpoint.checkpoint_after_epoch": 1, **model}
    dlio("unet3d_h100", small(**settings))
    models = list((local / "checkpoints/unet3d").glob("**/model*.pt"))
    assert models and torch.load(models[0])["a"].numel() == 1_000_000


def test_checkpoints_are_written_and_read(dlio, local):
    from dlio_benchmark.checkpointing.pytorch_checkpointing import PyTorchCheckpointing

    if not hasattr(PyTorchCheckpointing, "load_checkpoint"):
        pytest.skip("this version of DLIO does not read checkpoints")
    settings = {
        "model.num_layers": 2,
        "model.transformer.hidden_size": 256,
        "model.transformer.ffn_hidden_size": 512,
        "model.parallelism.data": 8,
        "checkpoint.checkpoint_folder": "checkpoints/llama",
        "checkpoint.mode": "subset",
        "checkpoint.num_checkpoints_write": 2,
        "checkpoint.num_checkpoints_read": 2,
        "checkpoint.time_between_checkpoints": 0.01,
        "checkpoint.fsync": True,
    }
    metrics = dlio("llama_8b_zero3", settings, ranks=2)
    assert metrics["save_checkpoint_io_mean_GB_per_second"] > 0
    assert metrics["load_checkpoint_io_mean_GB_per_second"] > 0
    assert len(list((local / "checkpoints/llama").glob("*/*optim_states.pt"))) == 4
