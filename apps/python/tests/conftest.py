"""Shares of the server for the tests."""

import pytest

import smbeam
from served import PASSWORD, local, name, url  # noqa: F401


@pytest.fixture
def share(url):  # noqa: F811
    """The directory as a share."""
    return smbeam.Share(url, password=PASSWORD)


@pytest.fixture
def password():
    return PASSWORD
