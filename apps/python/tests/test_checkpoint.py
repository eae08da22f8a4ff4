"""Distributed checkpoints of several processes."""

import os
import pathlib
import signal
import subprocess
import sys
import time

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("torch.distributed.tensor")

from served import IS_FULL

PROGRAM = pathlib.Path(__file__).with_name("checkpoint_rank.py")
LIMIT = 120


def start(ranks, action, url, value, tmp_path):
    """Starts the processes of an action."""
    store = tmp_path / f"store-{time.monotonic_ns()}"
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    return [
        subprocess.Popen(
            [sys.executable, PROGRAM, str(rank), str(ranks), store, action, url, str(value)],
            env=environment,
        )
        for rank in range(ranks)
    ]


def run(*arguments):
    processes = start(*arguments)
    try:
        codes = [process.wait(LIMIT) for process in processes]
    finally:
        for process in processes:
            process.kill()
    assert codes == [0] * len(processes)


@pytest.mark.parametrize("action", ["save", "async_save"] if IS_FULL else ["save"])
def test_other_counts_of_ranks_load_a_checkpoint(url, local, tmp_path, action):
    run(4, action, f"{url}/step", 1, tmp_path)
    assert os.listdir(local) == ["step"]
    run(4, "load", f"{url}/step", 1, tmp_path)
    run(3, "load", f"{url}/step", 1, tmp_path)


@pytest.mark.parametrize("files", [1, 3, 6] if IS_FULL else [3])
def test_a_killed_save_leaves_the_old_checkpoint_whole(url, local, tmp_path, files):
    run(4, "save", f"{url}/step", 1, tmp_path)
    processes = start(4, "save", f"{url}/step", 2, tmp_path)
    unfinished = local / "step.unfinished"
    end = time.monotonic() + LIMIT
    while len(list(unfinished.glob("*"))) < files and time.monotonic() < end:
        time.sleep(0.001)
    assert all(process.poll() is None for process in processes), "the save was too fast"
    for process in processes:
        process.send_signal(signal.SIGKILL)
    for process in processes:
        process.wait()
    assert unfinished.exists()
    run(4, "load", f"{url}/step", 1, tmp_path)
    # The next save replaces both.
    run(4, "save", f"{url}/step", 3, tmp_path)
    assert os.listdir(local) == ["step"]
    run(4, "load", f"{url}/step", 3, tmp_path)
