"""A port that forwards connections to the server of the tests, and can be closed for a time."""

import contextlib
import socket
import threading


class Forwarder:
    """Forwards connections from a port of this machine to ``server``, a pair of host and port."""

    def __init__(self, server):
        self._server = server
        self._sockets = []
        self.port = 0
        self._listen()

    def _listen(self):
        self._listener = socket.create_server(("127.0.0.1", self.port), reuse_port=False)
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, args=(self._listener,), daemon=True).start()

    def _accept(self, listener):
        while True:
            try:
                near, _ = listener.accept()
            except OSError:
                return
            far = socket.create_connection(self._server)
            self._sockets += [near, far]
            for pair in ((near, far), (far, near)):
                threading.Thread(target=_copy, args=pair, daemon=True).start()

    def close(self):
        """Closes the port and all connections."""
        # A thread that accepts keeps a closed socket open; the shutdown wakes it.
        for each in (self._listener, *self._sockets):
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()
        self._sockets.clear()

    def open_later(self, seconds):
        """Opens the closed port again after a time. Does not wait for that."""
        timer = threading.Timer(seconds, self._listen)
        timer.daemon = True
        timer.start()


def _copy(source, target):
    with contextlib.suppress(OSError):
        while data := source.recv(1 << 18):
            target.sendall(data)
    for each in (source, target):
        with contextlib.suppress(OSError):
            each.shutdown(socket.SHUT_RDWR)
