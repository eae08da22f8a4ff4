"""Names of DLIO as paths of a share.

DLIO makes absolute paths of the names of files (`os.path.abspath`), which would damage URLs. So
names of files begin with `/`, and are relative to `storage.storage_root`, which is a URL.
"""

import os
import posixpath

import smbeam

#: The variable with options of `smbeam.Share`: `name=value`, with spaces in between.
OPTIONS = "SMBEAM_DLIO_OPTIONS"
SCHEME = "smb://"

_shares = {}


class Location:
    """A directory of a share, by URL. It need not exist."""

    def __init__(self, url):
        self.url = str(url).rstrip("/")
        host, _, path = self.url[len(SCHEME) :].partition("/")
        share, _, self._base = path.partition("/")
        if not self.url.startswith(SCHEME) or not share:
            raise ValueError(f"storage.storage_root is {url}: expected smb://user@host/share/path")
        self.share = _share(f"{SCHEME}{host}/{share}")

    def path(self, name=""):
        """Returns the path in the share of a name: a URL below this one, or a relative path."""
        name = str(name)
        if name.startswith(SCHEME):
            if not f"{name}/".startswith(f"{self.url}/"):
                raise ValueError(f"{name} is not below {self.url}")
            name = name[len(self.url) :]
        return posixpath.normpath(f"/{self._base}/{name}").lstrip("/")

    def name(self, path):
        """Returns the name of DLIO for a path of the share."""
        return "/" + posixpath.relpath(f"/{path}", f"/{self._base}")


def below(root, name):
    """Returns the location of a directory: a URL, or a path relative to the root."""
    name = str(name)
    if name.startswith(SCHEME):
        return Location(name)
    return Location(f"{str(root).rstrip('/')}/{posixpath.normpath(name).lstrip('/')}")


def _share(url):
    if url not in _shares:
        pairs = os.environ.get(OPTIONS, "").split()
        _shares[url] = smbeam.Share(url, **dict(pair.split("=", 1) for pair in pairs))
    return _shares[url]
