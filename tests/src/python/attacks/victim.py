"""An ordinary client beside an attack: it must be served, however long that takes."""

import time

import checks
import mini

# Seconds that a request may take. A test does not measure speed: a server that serves the client
# at all answers within a fraction of this on any machine.
LIMIT = 30
ADDRESS = "127.0.0.9"
FILE_BYTES = 64 << 20
MIB = 1 << 20


class Victim:
    """A client with a session from before the attack. It keeps its slowest answer."""

    def __init__(self, user, name="victim.bin", source=ADDRESS):
        self.user = user
        self.source = source
        self.name = name
        self.slowest = 0
        self.connection = self._connect()
        self._file = self.connection.create(name)
        self.connection.write(self._file, 0, bytes(MIB))
        self.connection.echo(credits=500)
        self.is_served = True

    def _connect(self):
        return mini.connect(self.user, source=self.source, timeout=LIMIT)

    def attempt(self, title, action, is_last=True):
        """Checks that the server answers. If `is_last`, no request is sent after a failure."""
        if not self.is_served:
            return checks.check(f"{title} is answered", False, "the requests before were not")
        start = time.monotonic()
        failure = None
        try:
            action()
        except (OSError, EOFError, mini.LoginFailed) as error:
            failure = f"{type(error).__name__} {error}"
            self.is_served = not is_last
        seconds = time.monotonic() - start
        self.slowest = max(self.slowest, seconds)
        return checks.check(f"{title} is answered", not failure, failure or f"{seconds:.2f} s")

    def check_data(self, title):
        """Reads and writes of all sizes are answered."""
        connection, file = self.connection, self._file
        actions = {
            "READ of 4 KiB": lambda: connection.read(file, 0, 4096),
            "READ of 1 MiB": lambda: connection.read(file, 0, MIB),
            "WRITE of 1 MiB": lambda: connection.write(file, 0, bytes(MIB)),
            "READ of 256 KiB": lambda: connection.read(file, 4096, 256 << 10),
            "WRITE of 3 MiB": lambda: connection.write(file, 0, bytes(3 * MIB)),
        }
        for name, action in actions.items():
            self.attempt(f"{title}: {name}", lambda: expect_success(action()))

    def check_names(self, title):
        """CREATE, CLOSE and a listing are answered."""
        self.attempt(f"{title}: CREATE", self._create)
        self.attempt(f"{title}: listing", self._list)

    def check_echo(self, title):
        """ECHO is answered."""
        self.attempt(f"{title}: ECHO", lambda: expect_success(self.connection.echo()))

    def check_login(self, title, source=None):
        """A new connection logs in with the right password."""
        log_in = lambda: self._log_in(source or self.source)
        self.attempt(f"{title}: login", log_in, is_last=False)

    def _create(self):
        name = f"probe-{time.monotonic_ns()}"
        self.connection.close_file(self.connection.create(name))

    def _list(self):
        options = {"access": mini.LIST, "options": mini.IS_DIRECTORY}
        directory = self.connection.create("victim", **options)
        expect_success(self.connection.list(directory))
        self.connection.close_file(directory)

    def _log_in(self, source):
        mini.connect(self.user, source=source, timeout=LIMIT).close()

    def record(self):
        """Records the slowest answer."""
        checks.figure("slowest answer", f"{self.slowest:.2f} s")


def expect_success(response):
    """Raises an error unless a response has the status SUCCESS."""
    status = mini.status_of(response)
    if status != mini.SUCCESS:
        raise OSError(f"status {status:#010x}")
