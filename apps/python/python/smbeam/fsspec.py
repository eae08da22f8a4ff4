"""The file system of fsspec for ``smb://`` and ``smbeam://`` URLs.

The package registers it, so that ``pandas.read_parquet("smb://alice@nas/data/a.parquet")`` and every
other user of fsspec takes it in place of the class that comes with fsspec. It accepts the arguments
of that class. Paths begin with the name of the share: ``/share/directory/file``.
"""

import datetime
import errno
import os
import stat as _stat
from urllib.parse import quote, unquote

from fsspec import AbstractFileSystem
from fsspec.callbacks import DEFAULT_CALLBACK
from fsspec.spec import AbstractBufferedFile
from fsspec.utils import infer_storage_options, isfilelike, stringify_path

from . import _file, _paths, errors
from ._share import Share, shares

#: Options of the class that comes with fsspec which have no meaning here: the client tries again
#: by itself, and files do not exclude other opens.
_IGNORED = (
    "timeout",
    "share_access",
    "register_session_retries",
    "register_session_retry_wait",
    "register_session_retry_factor",
    "temppath",
)


class SmbeamFileSystem(AbstractFileSystem):
    """Files on an SMB server.

    ``host``, ``port``, ``username`` and ``password`` describe the server and the login. Without a
    name or password they come from the environment, the file of credentials or the named remotes,
    as for the command ``smbeam``. ``encrypt`` encrypts all messages. With ``auto_mkdir`` writing a
    file creates the directories above it. Further arguments are options of the connection, such as
    ``channels=4``.
    """

    protocol = ("smb", "smbeam")
    root_marker = "/"

    def __init__(
        self,
        host,
        port=None,
        username=None,
        password=None,
        encrypt=None,
        auto_mkdir=False,
        domain=None,
        **options,
    ):
        known = {"use_listings_cache", "listings_expiry_time", "max_paths"}
        known |= {"skip_instance_cache", "asynchronous", "loop", "batch_size"}
        super().__init__(**{name: options.pop(name) for name in known & options.keys()})
        for name in _IGNORED:
            options.pop(name, None)
        self.host = host
        self.port = port
        self.username = username
        self.password = password
        self.auto_mkdir = auto_mkdir
        self._domain = domain
        self._options = {**options, **({"encrypt": True} if encrypt else {})}
        self._shares = {}

    @property
    def fsid(self):
        """A text that is equal for two instances with the same files."""
        return f"smb://{self.host}:{self.port or 445}"

    @classmethod
    def _strip_protocol(cls, path):
        if isinstance(path, list):
            return [cls._strip_protocol(each) for each in path]
        path = stringify_path(path)
        if "://" in path:
            scheme, _, rest = path.partition("://")
            if scheme in cls.protocol:
                path = "/" + unquote(rest.partition("/")[2])
        return "/" + _paths.clean(path) if path.strip("/") else "/"

    @staticmethod
    def _get_kwargs_from_urls(path):
        options = infer_storage_options(path)
        return {
            name: options[name]
            for name in ("host", "port", "username", "password")
            if options.get(name) is not None
        }

    def unstrip_protocol(self, name):
        """Returns the URL of a path, without the login."""
        port = f":{self.port}" if self.port else ""
        return f"smb://{self.host}{port}{quote(self._strip_protocol(name))}"

    # The connection.

    def _login(self):
        domain, user = self._domain, self.username
        if user and ";" in user and domain is None:
            domain, _, user = user.partition(";")
        return {"user": user, "password": self.password, "domain": domain}

    def _server_url(self):
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"smb://{host}:{self.port}" if self.port else f"smb://{host}"

    def _split(self, path):
        """The share of a path, and the rest of the path."""
        name, _, rest = self._strip_protocol(path)[1:].partition("/")
        if not name:
            message = "the path has no share: write /share/path"
            raise errors.make("invalid_input", errno.EINVAL, message, path, None, None)
        share = self._shares.get(name)
        if share is None:
            url = f"{self._server_url()}/{quote(name, safe='')}"
            share = Share(url, **self._login(), **self._options)
            self._shares[name] = share
        return share, rest

    def _by_share(self, paths):
        """The paths of each share with their positions: ``(share, positions, rests)``."""
        groups = {}
        for position, path in enumerate(paths):
            share, rest = self._split(path)
            group = groups.setdefault(id(share), (share, [], []))
            group[1].append(position)
            group[2].append(rest)
        return list(groups.values())

    # Metadata.

    def _entry(self, share_name, entry):
        kind = "directory" if entry.is_dir else "link" if entry.is_link else "file"
        mode = entry.mode
        if mode is None:
            mode = 0o777 if entry.is_dir else 0o666
        type_bits = _stat.S_IFDIR if entry.is_dir else _stat.S_IFREG
        path = f"/{share_name}/{entry.path}" if entry.path else f"/{share_name}"
        return {
            "name": path,
            "size": 0 if entry.is_dir else entry.size,
            "type": kind,
            "created": entry.created,
            "mtime": entry.modified,
            "time": entry.accessed,
            "mode": mode | type_bits,
            "uid": entry.uid or 0,
            "gid": entry.gid or 0,
            "ino": entry.file_id,
            "islink": entry.is_link,
            "attributes": entry.attributes,
        }

    def info(self, path, **kwargs):
        path = self._strip_protocol(path)
        if path == "/":
            return {"name": "/", "size": 0, "type": "directory"}
        share, rest = self._split(path)
        return self._entry(self._share_name(path), share.stat(rest))

    @staticmethod
    def _share_name(path):
        return path[1:].partition("/")[0]

    def ls(self, path, detail=True, **kwargs):
        path = self._strip_protocol(path)
        if path == "/":
            names = shares(self._server_url(), **self._login(), **self._options)
            found = [{"name": f"/{name}", "size": 0, "type": "directory"} for name in names]
        else:
            share, rest = self._split(path)
            name = self._share_name(path)
            try:
                found = [self._entry(name, entry) for entry in share.list(rest)]
            except errors.NotDirectoryError:
                found = [self.info(path)]
        return found if detail else sorted(each["name"] for each in found)

    def find(self, path, maxdepth=None, withdirs=False, detail=False, **kwargs):
        path = self._strip_protocol(path)
        if maxdepth is not None and maxdepth < 1:
            raise ValueError("maxdepth must be at least 1")
        if path == "/":
            return super().find(path, maxdepth, withdirs, detail, **kwargs)
        share, rest = self._split(path)
        name = self._share_name(path)
        try:
            tree = share.list_tree(rest, maxdepth)
        except errors.NotDirectoryError:
            found = {path: self.info(path)}
            return found if detail else list(found)
        except errors.NotFoundError:
            return {} if detail else []
        found = {}
        if withdirs and path != "/" + name:
            found[path] = self.info(path)
        for _, entries in tree:
            for entry in entries:
                if withdirs or not entry.is_dir:
                    each = self._entry(name, entry)
                    found[each["name"]] = each
        names = sorted(found)
        return {each: found[each] for each in names} if detail else names

    def du(self, path, total=True, maxdepth=None, withdirs=False, **kwargs):
        found = self.find(path, maxdepth, withdirs, detail=True)
        sizes = {name: info["size"] for name, info in found.items()}
        return sum(sizes.values()) if total else sizes

    def exists(self, path, **kwargs):
        path = self._strip_protocol(path)
        if path == "/":
            return True
        share, rest = self._split(path)
        return share.exists(rest)

    def created(self, path):
        return self._time(self.info(path)["created"])

    def modified(self, path):
        return self._time(self.info(path)["mtime"])

    @staticmethod
    def _time(seconds):
        return datetime.datetime.fromtimestamp(seconds, tz=datetime.timezone.utc)

    def ukey(self, path):
        """A text that changes with the file."""
        info = self.info(path)
        return f"{self.fsid}{info['name']}:{info['size']}:{info.get('mtime')}"

    # Changes.

    def mkdir(self, path, create_parents=True, **kwargs):
        share, rest = self._split(path)
        if create_parents:
            share.makedirs(rest)
        elif rest:
            share.mkdir(rest)

    def makedirs(self, path, exist_ok=False):
        share, rest = self._split(path)
        share.makedirs(rest, exist_ok=exist_ok or not rest)

    def rmdir(self, path):
        share, rest = self._split(path)
        share.rmdir(rest)

    def rm_file(self, path):
        share, rest = self._split(path)
        share.remove(rest)

    def _rm(self, path):
        share, rest = self._split(path)
        try:
            share.remove(rest)
        except errors.IsDirectoryError:
            share.rmdir(rest)

    def rm(self, path, recursive=False, maxdepth=None):
        paths = path if isinstance(path, (list, tuple)) else [path]
        if recursive and maxdepth is None:
            for each in self.expand_path(paths):
                share, rest = self._split(each)
                try:
                    share.remove_tree(rest)
                except errors.NotDirectoryError:
                    share.remove(rest)
            return
        super().rm(path, recursive=recursive, maxdepth=maxdepth)

    def cp_file(self, path1, path2, **kwargs):
        source, from_path = self._split(path1)
        target, to_path = self._split(path2)
        if self.auto_mkdir:
            self.makedirs(self._parent(path2), exist_ok=True)
        entry = source.stat(from_path)
        if entry.is_dir:
            target.makedirs(to_path, exist_ok=True)
        else:
            source.copy(from_path, to_path, share=target)

    def mv_file(self, path1, path2, **kwargs):
        """Renames a file; within a share this moves no data."""
        source, from_path = self._split(path1)
        target, to_path = self._split(path2)
        if source is target:
            source.rename(from_path, to_path, replace=True)
        else:
            source.copy(from_path, to_path, share=target)
            source.remove(from_path)

    def mv(self, path1, path2, recursive=False, maxdepth=None, **kwargs):
        if isinstance(path1, str) and isinstance(path2, str) and not recursive:
            from_path, to_path = self._strip_protocol(path1), self._strip_protocol(path2)
            if not path2.endswith("/") and self.isfile(from_path) and not self.isdir(to_path):
                self.mv_file(from_path, to_path)
                return
        super().mv(path1, path2, recursive=recursive, maxdepth=maxdepth, **kwargs)

    def touch(self, path, truncate=True, **kwargs):
        share, rest = self._split(path)
        if self.auto_mkdir:
            self.makedirs(self._parent(path), exist_ok=True)
        if truncate or not share.exists(rest):
            share.write(rest, b"")
        else:
            now = datetime.datetime.now().timestamp()
            share.set_times(rest, accessed=now, modified=now)

    # Contents.

    def cat_file(self, path, start=None, end=None, **kwargs):
        share, rest = self._split(path)
        if start is None and end is None:
            return share.read(rest)
        with share.open(rest, "rb", buffering=0) as file:
            start, end = self._range(file, start, end)
            return file._raw.read_at(start, max(0, end - start)).wait()

    @staticmethod
    def _range(file, start, end):
        start = 0 if start is None else start
        size = file.size() if start < 0 or end is None or end < 0 else None
        start = max(0, start + size) if start < 0 else start
        end = size if end is None else end + size if end < 0 else end
        return start, end

    def cat(self, path, recursive=False, on_error="raise", **kwargs):
        paths = self.expand_path(path, recursive=recursive)
        single = len(paths) == 1 and not isinstance(path, list)
        if single and paths[0] == self._strip_protocol(path):
            return self.cat_file(paths[0], **kwargs)
        paths = [each for each in paths if not recursive or self.isfile(each)]
        contents = {}
        for share, positions, rests in self._by_share(paths):
            for position, content in zip(positions, share.read_many(rests, on_error="return")):
                if isinstance(content, Exception):
                    if on_error == "raise":
                        raise content
                    if on_error == "omit":
                        continue
                contents[paths[position]] = content
        return {each: contents[each] for each in paths if each in contents}

    def cat_ranges(self, paths, starts, ends, max_gap=None, on_error="return", **kwargs):
        if max_gap is not None:
            raise NotImplementedError("max_gap")
        if not isinstance(paths, list):
            raise TypeError("paths is a list")
        count = len(paths)
        starts = list(starts) if isinstance(starts, (list, tuple)) else [starts] * count
        ends = list(ends) if isinstance(ends, (list, tuple)) else [ends] * count
        if len(starts) != count or len(ends) != count:
            raise ValueError("paths, starts and ends have different lengths")
        results = [None] * count
        for share, positions, rests in self._by_share(paths):
            plain = [
                (position, rest)
                for position, rest in zip(positions, rests)
                if _is_plain(starts[position], ends[position])
            ]
            ranges = [(rest, starts[at] or 0, ends[at]) for at, rest in plain]
            contents = share.read_ranges(ranges, on_error=on_error)
            for (position, _), content in zip(plain, contents):
                results[position] = content
            for position, rest in zip(positions, rests):
                if not _is_plain(starts[position], ends[position]):
                    results[position] = self._one_range(
                        paths[position], starts[position], ends[position], on_error
                    )
        return results

    def _one_range(self, path, start, end, on_error):
        try:
            return self.cat_file(path, start, end)
        except OSError as error:
            if on_error == "raise":
                raise
            return error

    def pipe_file(self, path, value, mode="overwrite", **kwargs):
        share, rest = self._split(path)
        if self.auto_mkdir:
            self.makedirs(self._parent(path), exist_ok=True)
        share.write(rest, value, create_new=mode == "create")

    def get_file(self, rpath, lpath, callback=DEFAULT_CALLBACK, outfile=None, **kwargs):
        if not isfilelike(lpath) and outfile is None:
            if self.isdir(rpath):
                os.makedirs(lpath, exist_ok=True)
                return
            os.makedirs(os.path.dirname(os.path.abspath(lpath)), exist_ok=True)
            share, rest = self._split(rpath)
            callback.set_size(share.stat(rest).size)
            share.download(rest, lpath, progress=callback.relative_update)
            return
        super().get_file(rpath, lpath, callback=callback, outfile=outfile, **kwargs)

    def put_file(self, lpath, rpath, callback=DEFAULT_CALLBACK, mode="overwrite", **kwargs):
        if os.path.isdir(lpath):
            self.makedirs(rpath, exist_ok=True)
            return
        share, rest = self._split(rpath)
        parent = _paths.parent(rest)
        if parent:
            share.makedirs(parent, exist_ok=True)
        callback.set_size(os.path.getsize(lpath))
        share.upload(
            lpath, rest, create_new=mode == "create", progress=callback.relative_update
        )

    def _open(
        self,
        path,
        mode="rb",
        block_size=None,
        autocommit=True,
        cache_options=None,
        cache_type=None,
        **kwargs,
    ):
        share, rest = self._split(path)
        writes = mode[0] in "wax"
        if writes and self.auto_mkdir:
            self.makedirs(self._parent(path), exist_ok=True)
        if not writes and "+" not in mode and (cache_type is not None or cache_options):
            cache_type = cache_type or "readahead"
            size = block_size or "default"
            return SmbeamFile(
                self, path, mode, size, cache_type=cache_type, cache_options=cache_options
            )
        kind, _ = _file.split_mode(mode if "b" in mode else mode + "b")
        full = share._path(rest)
        buffering = _file.BUFFER_SIZE if block_size is None or block_size < 0 else block_size
        if kind == "w" and not autocommit:
            return _Transacted(self, share, path, full, buffering)
        raw = share._raw.open(full, kind, False).wait()
        raw = _file.RawFile(share, raw, full, kind)
        if buffering == 0:
            return raw
        if kind == "r":
            return _Reader(self, path, raw, buffering)
        if "+" in kind:
            return _file.BufferedRandom(raw, buffering)
        return _Writer(self, path, raw, buffering)


def _is_plain(start, end):
    return (start is None or start >= 0) and end is not None and end >= (start or 0)


class _Named:
    """What users of fsspec expect of a file beyond the package io."""

    def _name(self, fs, path):
        self.fs = fs
        self.path = path

    @property
    def details(self):
        """The metadata of the file."""
        return self.fs.info(self.path)

    def info(self):
        """Returns the metadata of the file."""
        return self.fs.info(self.path)


class _Reader(_Named, _file.BufferedReader):
    def __init__(self, fs, path, raw, buffering):
        super().__init__(raw, buffering)
        self._name(fs, path)

    @property
    def size(self):
        """Length of the file in bytes."""
        return self.raw.size()

    def __reduce__(self):
        return (_reopen, (self.fs, self.path, self.tell()))


def _reopen(fs, path, position):
    file = fs.open(path, "rb")
    file.seek(position)
    return file


class _Writer(_Named, _file.BufferedWriter):
    def __init__(self, fs, path, raw, buffering):
        super().__init__(raw, buffering)
        self._name(fs, path)


class _Transacted(_Writer):
    """A file of a transaction: it takes its name at the end of the transaction."""

    def __init__(self, fs, share, path, full, buffering):
        self._share, self._full = share, full
        self._part = _file.part_name(full)
        raw = share._raw.open(self._part, "x", False).wait()
        super().__init__(fs, path, _file.RawFile(share, raw, self._part, "x"), buffering)

    def commit(self):
        """Gives the file its name, in place of an old file."""
        self._share._raw.rename(self._part, self._full, True).wait()

    def discard(self):
        """Removes the file."""
        self._share._raw.remove(self._part).wait()


class SmbeamFile(AbstractBufferedFile):
    """A file with one of the block caches of fsspec."""

    def __init__(self, fs, path, mode, block_size, **kwargs):
        share, rest = fs._split(path)
        self._raw = share._raw.open(share._path(rest), "r", False).wait()
        super().__init__(fs, path, mode, block_size, **kwargs)

    def _fetch_range(self, start, end):
        return self._raw.read_at(start, end - start).wait()

    def close(self):
        if not self.closed:
            super().close()
            self._raw.close().wait()


def register():
    """Makes this file system that of ``smb://`` and ``smbeam://`` URLs.

    The entry points of the package do the same; this is for a package without metadata.
    """
    from fsspec import register_implementation

    for name in SmbeamFileSystem.protocol:
        register_implementation(name, SmbeamFileSystem, clobber=True)


__all__ = ["SmbeamFile", "SmbeamFileSystem", "register"]
