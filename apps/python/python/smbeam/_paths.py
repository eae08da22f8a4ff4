"""Paths within a share: components separated by ``/``, relative to the root."""


def clean(path):
    """Returns the path without needless separators and without a separator at its ends."""
    text = path if isinstance(path, str) else str(path)
    if "//" not in text and "\\" not in text and text[:1] not in "/." and text[-1:] != "/":
        return text
    parts = text.replace("\\", "/").split("/")
    return "/".join(part for part in parts if part not in ("", "."))


def join(base, path):
    """Returns ``path`` below ``base``."""
    path = clean(path)
    if not base:
        return path
    return f"{base}/{path}" if path else base


def parent(path):
    """Returns the directory that holds ``path``; empty for the root."""
    return path.rpartition("/")[0]
