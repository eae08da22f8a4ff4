"""Stand-ins for modules that DLIO imports without a use for PyTorch, if they are not installed.

| module | used by DLIO for | stand-in |
|---|---|---|
| `dftracer` | traces | records nothing |
| `tensorflow` | its own loader, and a profiler | any use raises AttributeError |

DLIO 2.0.0 fails without `dftracer`: its own replacement does not accept the decorated functions.
"""

import importlib.util
import sys
from importlib.machinery import ModuleSpec
from types import ModuleType


def install():
    """Puts a stand-in in the place of each module that is not installed."""
    if not _is_present("dftracer"):
        parts = {name: _add(f"dftracer.{name}", **TRACER) for name in ("logger", "python")}
        _add("dftracer", **parts)
    if not _is_present("tensorflow"):
        _add("tensorflow")


def _is_present(name):
    return name in sys.modules or importlib.util.find_spec(name) is not None


def _add(name, **attributes):
    module = ModuleType(name, "A stand-in: this module is not installed.")
    module.__spec__ = ModuleSpec(name, None)
    module.__dict__.update(attributes)
    sys.modules[name] = module
    return module


class _Log:
    """The log of traces of the process."""

    def initialize_log(self, *_arguments, **_keywords):
        return self

    def finalize(self):
        return None


class _Region:
    """Decorates functions, passes iterations on, and is a context. Its attributes do the same."""

    def __init__(self, *_arguments, **_keywords):
        return None

    def __enter__(self):
        return self

    def __exit__(self, *_error):
        return None

    def __call__(self, function):
        return function

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return self

    def log(self, function):
        return function

    log_init = log_static = log

    def iter(self, items, *_arguments, **_keywords):
        return items

    def update(self, *_arguments, **_keywords):
        return self

    def flush(self):
        return self

    def reset(self):
        return self


#: The names that DLIO imports: of `dftracer.logger`, in newer versions of `dftracer.python`.
TRACER = {"dftracer": _Log(), "dft_fn": _Region, "ai": _Region(), "DFTRACER_ENABLE": False}
