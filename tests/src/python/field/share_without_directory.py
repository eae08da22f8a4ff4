"""A share without its directory does not stop the other shares, and is served once it exists.

Reports: rockstor/rockstor-core#904, dianlight/hassio-addons#689, ServerContainers/samba#39.
"""

import os

from fieldlib import *


def main():
    missing = os.path.join(DIRECTORY, "server", "usb")
    with Server(shares=[{"name": "usb", "path": missing}]) as own:
        write_local(os.path.join(own.data, "file"), b"1")
        check_equal("content in the other share", Session().read_file("file"), b"1")
        status = status_of(lambda: Session(share="usb"))
        check_equal("the share without its directory", status, "BAD_NETWORK_NAME")
        check("the log names the directory", wait_until(lambda: missing in own.log()))
        result = run("ls", url(share="usb"))
        check_equal("exit code of ls of the share without its directory", result.code, NOT_FOUND)
        make_open_directory(missing)
        write_local(os.path.join(missing, "file"), b"2")
        content = []
        status = status_of(lambda: content.append(Session(share="usb").read_file("file")))
        check_equal("the share once its directory exists", (status, content), ("OK", [b"2"]))
    finish()


main()
