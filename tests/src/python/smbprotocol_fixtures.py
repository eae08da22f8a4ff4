"""What the tests of smbprotocol want from whoever runs them: a server, and folders on it."""

import os
import uuid

import pytest
import smbclient
import smbclient.shutil

SERVER, USER, PASSWORD = (os.environ[name] for name in ("SERVER", "SMB_USER", "SMB_PASSWORD"))
PORT = 445
PLAIN = rf"\\{SERVER}\share"
SEALED = rf"\\{SERVER}\share-encrypted"


@pytest.fixture(scope="module")
def smb_real():
    return USER, PASSWORD, SERVER, PORT, PLAIN, SEALED


# The position of the share in `smb_real` is a part of the names of tests.
@pytest.fixture(params=[4, 5])
def smb_share(request, smb_real):
    folder = smb_real[request.param] + f"\\{uuid.uuid4()} \u00e4 \U0001f600"
    if request.param == 5:
        folder = folder.replace("\\", "/")
    smbclient.mkdir(folder, username=USER, password=PASSWORD, port=PORT)
    yield folder
    smbclient.shutil.rmtree(folder, username=USER, password=PASSWORD, port=PORT)


@pytest.fixture()
def smb_dfs_share():
    pytest.skip("there is no DFS")
