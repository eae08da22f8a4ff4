"""AES-GMAC signs no two messages of a session with the same key and nonce.

The case records all signed messages of the server over all connections of a session: refused and
correct bindings of channels, bindings that arrive twice, and later logins on a channel. Refusals of
bindings with an invalid signature are not signed.
"""

import mini
from checks import check, check_equal, finish, note
from mini import (
    AES_128_GCM,
    AES_CMAC,
    AES_GMAC,
    BINDING,
    FROM_SERVER,
    SESSION_SETUP,
    SEVERAL_CHANNELS,
    SIGNED,
    SUCCESS,
    Connection,
    flags_of,
    gmac_nonce,
    ntlm_negotiate,
    signature_of,
    status_of,
)
from server import ALICE, Server

CHANNELS = 3
# The values of `security.gmac_channels`. The last one permits repeated nonces.
SAFE = ["encrypt", "cmac", "single"]
UNSAFE = "allow"
# The signing algorithms of a client, in the order of its preference.
BOTH = (AES_GMAC, AES_CMAC)
GMAC_ALONE = (AES_GMAC,)


class Recorder:
    """The signed messages of the server, by key and nonce."""

    def __init__(self):
        self.messages = {}
        self.repeated = []
        self.unknown = []
        self.count = 0

    def record(self, message, connection):
        """Called for each signed message."""
        if not flags_of(message) & FROM_SERVER:
            return
        self.count += 1
        keys = {connection.signing_key, connection.session_signing_key} - {None}
        for key in keys:
            if signature_of(message, key, connection.algorithm) == message[48:64]:
                self._add(key, message, connection)
                return
        self.unknown.append(describe(message))

    def _add(self, key, message, connection):
        if connection.algorithm != AES_GMAC:
            return
        place = (key, gmac_nonce(message))
        if self.messages.setdefault(place, message) != message:
            self.repeated.append(describe(message))


def describe(message):
    """Command, MessageId and status of a message."""
    number = int.from_bytes(message[24:32], "little")
    return f"command {mini.command_of(message)}, MessageId {number}, {status_of(message):#010x}"


class Stage:
    """A session of several channels, with a record of its signed messages."""

    def __init__(self, ciphers, signing):
        self.ciphers = ciphers
        self.signing = signing
        self.recorder = Recorder()
        self.first = self.connect()
        check_equal("login", status_of(self.first.log_in(*ALICE)), SUCCESS)
        check_equal("tree connect", status_of(self.first.connect_tree("data")), SUCCESS)

    def connect(self):
        """A connection of the same client."""
        guid = self.first.client_guid if hasattr(self, "first") else None
        connection = Connection(
            capabilities=SEVERAL_CHANNELS,
            signing=self.signing,
            ciphers=self.ciphers,
            client_guid=guid,
        )
        connection.on_signed = self.recorder.record
        connection.negotiate()
        if guid:
            connection.session_id = self.first.session_id
            connection.session_signing_key = self.first.session_signing_key
        return connection

    def refused_binding(self, process):
        """The answer to a binding with a signature of zeros."""
        connection = self.connect()
        body = connection.setup_body(ntlm_negotiate(), BINDING)
        request = bytearray(connection.message(SESSION_SETUP, body, flags=SIGNED))
        # The ProcessId, so that the two answers differ.
        request[32] = process
        connection.send_bytes(bytes(request))
        return connection.receive()

    def check_refusals(self):
        """Bindings with an invalid signature are refused without a signature."""
        for process in (1, 2):
            answer = self.refused_binding(process)
            check("a binding with an invalid signature fails", status_of(answer) != SUCCESS)
            is_signed = flags_of(answer) & SIGNED != 0 or any(answer[48:64])
            check("its answer is not signed", not is_signed, describe(answer))

    def bind_channels(self):
        """Binds further channels and works on each. Returns the statuses of the bindings."""
        statuses = []
        for _ in range(CHANNELS):
            channel = self.connect()
            statuses.append(status_of(channel.bind(self.first, *ALICE)))
            if statuses[-1] == SUCCESS:
                channel.tree_id = self.first.tree_id
                channel.signs = True
                check_equal("ECHO on the channel", status_of(channel.echo()), SUCCESS)
                self.log_in_again(channel)
        return statuses

    def log_in_again(self, channel):
        """A login on a connection of an existing session."""
        _, answer = channel.send_token(ntlm_negotiate(), key=channel.signing_key)
        note(f"login again on a channel: {describe(answer)}")

    def bind_with_wrong_password(self):
        """A binding that is refused at its last message."""
        for _ in range(2):
            answer = self.connect().bind(self.first, ALICE[0], "wrong")
            note(f"binding with a wrong password: {describe(answer)}")

    def replay_binding(self):
        """The first request of a binding arrives again on other connections."""
        channel = self.connect()
        body = channel.setup_body(ntlm_negotiate(), BINDING)
        request = channel.message(SESSION_SETUP, body, key=self.first.session_signing_key)
        for connection in (channel, self.connect(), self.connect()):
            connection.send_bytes(request)
            note(f"replayed binding: {describe(connection.receive())}")

    def run(self):
        """All steps. Returns the statuses of the correct bindings."""
        self.check_refusals()
        statuses = self.bind_channels()
        self.bind_with_wrong_password()
        self.replay_binding()
        self.log_in_again(self.first)
        check_equal("ECHO on the first channel", status_of(self.first.echo()), SUCCESS)
        return statuses


def run_with(choice, ciphers, signing=BOTH):
    """Runs all steps with a value of `gmac_channels`."""
    title = f"{choice}, {'AES-128-GCM' if ciphers else 'no cipher'}, {len(signing)} algorithms"
    note(title)
    with Server(title.replace(" ", ""), sections={"security": {"gmac_channels": choice}}):
        stage = Stage(ciphers, signing)
        note(f"{title}: algorithm {stage.first.algorithm}, encrypted: {stage.first.encrypts}")
        statuses = stage.run()
        recorder = stage.recorder
    check(f"{title}: signed messages were seen", recorder.count > 0, recorder.count)
    check_equal(f"{title}: signatures of unknown keys", recorder.unknown, [])
    if choice == UNSAFE:
        check(f"{title}: the recorder notices repeated nonces", recorder.repeated)
        return
    check_equal(f"{title}: repeated nonces", recorder.repeated, [])
    if choice == "single" or signing == GMAC_ALONE:
        check(f"{title}: bindings are refused", SUCCESS not in statuses)
    else:
        check_equal(f"{title}: bindings succeed", statuses, [SUCCESS] * CHANNELS)


def main():
    for choice in [*SAFE, UNSAFE]:
        for ciphers in ((AES_128_GCM,), ()):
            run_with(choice, ciphers)
    # A client without AES-CMAC has one channel.
    run_with("encrypt", (AES_128_GCM,), GMAC_ALONE)
    finish()


main()
