"""``python -m smbeam``: the version of the package."""

import sys

from . import __version__

USAGE = "usage: python -m smbeam --version"


def main(arguments):
    """Runs the command line."""
    if arguments == ["--version"]:
        print(f"smbeam {__version__}")
        return 0
    print(USAGE, file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
