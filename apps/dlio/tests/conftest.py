"""Workloads on the server for the tests. Each runs as a command of its own, with stand-ins for
modules that are not installed."""

import json
import pathlib
import shutil
import subprocess
import sys
import uuid

import pytest
from smbeam_dlio import stand_ins

# The fixtures of the tests of the package smbeam.
sys.path.append(str(pathlib.Path(__file__).parents[2] / "python/tests"))

from served import PASSWORD, local, name, url  # noqa: E402, F401

stand_ins.install()

#: Time limit of a workload in seconds.
TIME_MAX = 120


@pytest.fixture(autouse=True)
def password(monkeypatch):
    """The password, where the package looks for it."""
    monkeypatch.setenv("SMBEAM_PASSWORD", PASSWORD)


@pytest.fixture
def dlio(url, tmp_path):  # noqa: F811
    """Runs a workload: DLIO's name of it, and settings by name. Returns the metrics of DLIO."""

    def run(workload, settings, ranks=1):
        storage = {"storage.storage_type": "smb", "storage.storage_root": url}
        texts = [f"++workload.{key}={value}" for key, value in {**storage, **settings}.items()]
        output = tmp_path / uuid.uuid4().hex
        command = [sys.executable, "-m", "smbeam_dlio", "--stand-ins", f"workload={workload}"]
        command = _of_ranks(ranks) + command + texts + [f"hydra.run.dir={output}"]
        done = subprocess.run(
            command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            timeout=TIME_MAX, text=True,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout[-4000:]
        summary = output / "summary.json"
        return json.loads(summary.read_text())["metric"] if summary.exists() else None

    return run


def _of_ranks(count):
    """The command that starts a program with this count of ranks."""
    if count == 1:
        return []
    if shutil.which("mpirun") is None:
        pytest.skip("mpirun is not installed")
    return ["mpirun", "--allow-run-as-root", "--oversubscribe", "-n", str(count)]
