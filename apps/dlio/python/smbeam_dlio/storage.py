"""The storage type ``smb`` of DLIO."""

import io
import posixpath

from dlio_benchmark.common.enumerations import MetadataType, NamespaceType
from dlio_benchmark.storage.storage_handler import DataStorage, Namespace
from dlio_benchmark.utils.config import ConfigArguments

from . import location


class SmbStorage(DataStorage):
    """Directories and files of a share, for the data sets and checkpoints of DLIO.

    ``namespace`` is `storage.storage_root` or the directory of the checkpoints.
    """

    def __init__(self, namespace, framework=None):
        super().__init__(framework)
        root = ConfigArguments.get_instance().storage_root
        self.location = location.below(root, namespace)
        self.namespace = Namespace(self.location.url, NamespaceType.HIERARCHICAL)

    @property
    def share(self):
        return self.location.share

    def get_uri(self, id):
        """Returns the name of a file: relative to the namespace, with ``/`` at its start."""
        return self.location.name(self.location.path(id))

    def create_namespace(self, exist_ok=False):
        return self.create_node("", exist_ok)

    def get_namespace(self):
        return self.namespace.name

    def create_node(self, id, exist_ok=False):
        if path := self.location.path(id):
            self.share.makedirs(path, exist_ok=exist_ok)
        return True

    def get_node(self, id=""):
        try:
            entry = self.share.stat(self.location.path(id))
        except FileNotFoundError:
            return None
        return MetadataType.DIRECTORY if entry.is_dir else MetadataType.FILE

    def walk_node(self, id, use_pattern=False):
        """Returns the names in a directory, or names of files that match a pattern.

        A pattern matches its extension in lower and in upper case.
        """
        path = self.location.path(id)
        if not use_pattern:
            return [entry.name for entry in self.share.list(path)]
        stem, extension = posixpath.splitext(path)
        found = set(self.share.glob(path)) | set(self.share.glob(stem + extension.upper()))
        return [self.location.name(path) for path in sorted(found)]

    def delete_node(self, id):
        self.share.remove_tree(self.location.path(id))
        return True

    def put_data(self, id, data, offset=None, length=None):
        if isinstance(data, str):
            data = data.encode()
        elif isinstance(data, io.BytesIO):
            data = data.getbuffer()
        self.share.write(self.location.path(id), data)

    def get_data(self, id, data, offset=None, length=None):
        content = self.share.read(self.location.path(id))
        end = None if length is None else (offset or 0) + length
        return content[offset or 0 : end]

    def isfile(self, id):
        return self.get_node(id) == MetadataType.FILE

    def islocalfs(self):
        return False

    def get_basename(self, id):
        return posixpath.basename(id)
