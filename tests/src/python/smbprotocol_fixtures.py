"""The fixtures that the tests of smbprotocol need: a server, and directories on it."""

import os
import uuid

import pytest
import smbclient
import smbclient.shutil

SERVER, USER, PASSWORD = (os.environ[name] for name in ("SERVER", "SMB_USER", "SMB_PASSWORD"))
PORT = 445
PLAIN = rf"\\{SERVER}\share"
ENCRYPTED = rf"\\{SERVER}\share-encrypted"


@pytest.fixture(scope="module")
def smb_real():
    return USER, PASSWORD, SERVER, PORT, PLAIN, ENCRYPTED


# The position of the share in `smb_real` is a part of the names of tests.
@pytest.fixture(params=[4, 5])
def smb_share(request, smb_real):
    directory = smb_real[request.param] + f"\\{uuid.uuid4()} \u00e4 \U0001f600"
    if request.param == 5:
        directory = directory.replace("\\", "/")
    smbclient.mkdir(directory, username=USER, password=PASSWORD, port=PORT)
    yield directory
    smbclient.shutil.rmtree(directory, username=USER, password=PASSWORD, port=PORT)


@pytest.fixture()
def smb_dfs_share():
    pytest.skip("there is no DFS")
