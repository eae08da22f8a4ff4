"""The command: DLIO's own, with the storage type ``smb``.

Worker processes of the start methods `spawn` and `forkserver` import this module before they get
objects of DLIO. So the import installs the classes.
"""

import os
import sys

import smbeam_dlio
from smbeam_dlio import stand_ins

#: The argument of this command that DLIO does not get.
STAND_INS = "--stand-ins"
#: The variable that has the same meaning. Worker processes inherit it.
VARIABLE = "SMBEAM_DLIO_STAND_INS"

if STAND_INS in sys.argv:
    sys.argv.remove(STAND_INS)
    os.environ[VARIABLE] = "1"
if os.environ.get(VARIABLE):
    stand_ins.install()
smbeam_dlio.install()


def main():
    """Runs the command of DLIO with the other arguments of this process."""
    from dlio_benchmark.main import main

    main()


if __name__ == "__main__":
    main()
