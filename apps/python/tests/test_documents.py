"""The examples of the page about the package run."""

import importlib
import pathlib
import re

from served import DIRECTORY, PASSWORD, URL
from fsspec.utils import infer_storage_options

BESIDE = pathlib.Path(__file__).parent / "python.md"
PAGE = BESIDE if BESIDE.exists() else pathlib.Path(__file__).parents[3] / "docs/python.md"


def is_there(module):
    """Whether a module can be imported, in the version that the examples need."""
    try:
        if module == "torch.distributed.checkpoint":
            importlib.import_module("smbeam.checkpoint")
        importlib.import_module(module)
    except ImportError:
        return False
    return True


def test_the_examples_run(name, capsys):
    login = infer_storage_options(URL)
    names = {
        "URL": f"{URL}/{name}",
        "PASSWORD": PASSWORD,
        "HOST": login["host"],
        "PORT": login["port"],
        "USER": login["username"],
        "DIRECTORY": f"{login['path'].strip('/')}/{name}",
    }
    examples = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert len(examples) > 6
    for example in examples:
        if not all(map(is_there, re.findall(r"# needs (\S+)", example))):
            continue
        exec(compile(example, str(PAGE), "exec"), names)
    assert "sample-000" in [path.name for path in (DIRECTORY / name).iterdir()]
