"""A server with a blocked log serves its clients.

The standard error of the server is a full pipe (a paused terminal, a stuck journal). Strangers send
four bytes each, which a server logs.
"""

import fcntl
import os
import socket

from checks import check, figure, finish, scaled
from server import ALICE, HOST, TCP_PORT, MemoryWatch, Server
from victim import Victim

STRANGERS = scaled(300, 500)
# Bytes of the pipe: a page is the least, 64 KiB are the default.
PIPE_BYTES = scaled(4096, 65536)
F_SETPIPE_SZ = 1031
# Seconds that a stranger waits for the end of its connection.
STRANGER_LIMIT = 0.3


def send_junk():
    """A connection that sends four bytes that are no SMB message."""
    try:
        with socket.create_connection((HOST, TCP_PORT), timeout=1) as stranger:
            stranger.settimeout(STRANGER_LIMIT)
            stranger.sendall(b"\0\0\0\4junk")
            stranger.recv(1)
    except OSError:
        pass


def main():
    reading, writing = os.pipe()
    fcntl.fcntl(writing, F_SETPIPE_SZ, PIPE_BYTES)
    with Server(log=writing) as own:
        victim = Victim(ALICE)
        figure("load", f"{STRANGERS} strangers")
        with MemoryWatch(own) as memory:
            for number in range(STRANGERS):
                send_junk()
                if number % 50 == 49:
                    victim.check_echo(f"after {number + 1} strangers")
                if not victim.is_served:
                    break
            victim.check_login("after all strangers")
        victim.record()
        memory.record()
        # The end of the server does not wait for the log either.
        own.process.terminate()
        check("the server ends", ends(own))
    os.close(reading)
    finish()


def ends(own):
    """Whether the server ends by itself."""
    try:
        own.process.wait(30)
    except Exception:
        return False
    return True


main()
