"""Wrong passwords are answered slowly, and do not lock the user out.

Many connections of one address try passwords with several logins side by side. The server answers
few of them per second. The user logs in from the address of an earlier login, and from a new one.
"""

import selectors
import struct
import time

from mini import (
    LOGON_FAILURE,
    MORE_PROCESSING_REQUIRED,
    SESSION_SETUP,
    SMB_2_1,
    Connection,
    credits_of,
    ntlm_authenticate,
    ntlm_negotiate,
    session_id_of,
    status_of,
    token_of,
)
from checks import check_at_most, figure, finish, note, scaled
from server import ALICE, MemoryWatch, Server
from victim import Victim

CONNECTIONS = scaled(60, 200)
LOGINS_PER_CONNECTION = 31
DURATION = scaled(8, 30)
ATTACKER = "127.0.2.1"
# Guesses that are answered before the delay grows, and per second after them.
FIRST_GUESSES = 20
GUESSES_PER_SECOND = 5


class Guesser:
    """A connection with as many logins in flight as its credits allow."""

    def __init__(self, attack):
        self.attack = attack
        self.connection = Connection(dialect=SMB_2_1, source=ATTACKER, timeout=10)
        self.connection.negotiate()
        self.credits = 1
        self.in_flight = 0
        self.start_logins()

    def start_logins(self):
        """Starts logins while credits remain."""
        while self.credits > 0 and self.in_flight < LOGINS_PER_CONNECTION:
            self.connection.session_id = 0
            self._send(ntlm_negotiate())
            self.in_flight += 1

    def _send(self, token):
        self.connection.send(SESSION_SETUP, self.connection.setup_body(token))
        self.credits -= 1

    def handle(self, message):
        """Continues a login, or counts its failure."""
        self.credits += credits_of(message)
        status = status_of(message)
        if status == MORE_PROCESSING_REQUIRED:
            guess = f"wrong{self.attack.failures}"
            token, _ = ntlm_authenticate(token_of(message), ALICE[0], guess)
            self.connection.session_id = session_id_of(message)
            self._send(token)
        else:
            self.attack.count(status)
            self.in_flight -= 1
        self.start_logins()


class Attack:
    """The guessers of one address, and the number of their guesses."""

    def __init__(self):
        self.failures = 0
        self.others = {}
        self.closed = 0
        self._selector = selectors.DefaultSelector()
        for _ in range(CONNECTIONS):
            self._add()

    def count(self, status):
        """Counts the outcome of a guess."""
        if status == LOGON_FAILURE:
            self.failures += 1
        else:
            self.others[hex(status)] = self.others.get(hex(status), 0) + 1

    def _add(self):
        try:
            guesser = Guesser(self)
        except (OSError, EOFError, struct.error):
            self.closed += 1
            return
        self._selector.register(guesser.connection.socket, selectors.EVENT_READ, guesser)

    def run(self, seconds):
        """Guesses for this time. Returns the time that it took."""
        start = time.monotonic()
        while time.monotonic() < start + seconds:
            for key, _ in self._selector.select(0.5):
                try:
                    self._read(key.data)
                except (OSError, EOFError):
                    self._replace(key.data)
        return time.monotonic() - start

    def _read(self, guesser):
        data = guesser.connection.socket.recv(65536)
        if not data:
            raise EOFError
        for message in guesser.connection.feed(data):
            guesser.handle(message)

    def _replace(self, guesser):
        """The server closed a connection: opens another one."""
        self.closed += 1
        self._selector.unregister(guesser.connection.socket)
        guesser.connection.close()
        self._add()

    def close(self):
        """Closes all connections."""
        for key in list(self._selector.get_map().values()):
            key.data.connection.close()


def main():
    # The delays of the server are the defaults.
    with Server() as own:
        victim = Victim(ALICE)
        figure("load", f"{CONNECTIONS} connections of one address")
        with MemoryWatch(own) as memory:
            attack = Attack()
            seconds = attack.run(DURATION)
            closed = attack.closed
            note(f"{attack.failures} guesses in {seconds:.1f} s, {closed} connections closed")
            note(f"other statuses: {attack.others}")
            limit = FIRST_GUESSES + GUESSES_PER_SECOND * seconds
            check_at_most("answered guesses", attack.failures, limit)
            figure("rate", f"{attack.failures / seconds:.1f} guesses/s")
            victim.check_echo("during the attack")
            victim.check_login("during the attack, address of an earlier login")
            victim.check_login("during the attack, new address", "127.0.0.30")
            attack.close()
        victim.record()
        memory.record()
    finish()


main()
