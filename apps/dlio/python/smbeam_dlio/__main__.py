"""Runs the module `command` as the main program.

Worker processes of the start method `spawn` import the main program, but not a file of this name.
"""

import runpy

if __name__ == "__main__":
    runpy.run_module("smbeam_dlio.command", run_name="__main__", alter_sys=True)
