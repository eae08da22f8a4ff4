"""A server for tests: one that runs already. The environment has its URL, the password, and the path
of the shared directory on this machine."""

import os
import pathlib
import uuid

import pytest

URL = os.environ["SMBEAM_TEST_URL"]
PASSWORD = os.environ["SMBEAM_TEST_PASSWORD"]
DIRECTORY = pathlib.Path(os.environ["SMBEAM_TEST_DIRECTORY"])
#: Whether the tests have their full sizes.
IS_FULL = os.environ.get("SMBEAM_TEST_SCALE") == "full"


@pytest.fixture
def name():
    """The name of a new directory of the share."""
    name = f"t-{uuid.uuid4().hex[:8]}"
    directory = DIRECTORY / name
    directory.mkdir()
    directory.chmod(0o777)
    return name


@pytest.fixture
def local(name):
    """The directory as this machine sees it."""
    return DIRECTORY / name


@pytest.fixture
def url(name):
    """The URL of the directory."""
    return f"{URL}/{name}"
