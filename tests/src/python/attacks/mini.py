"""A small SMB2 client for attacks: every field can be chosen, and it verifies nothing by itself.

It logs in by NTLMv2, signs (HMAC-SHA256, AES-CMAC, AES-GMAC), encrypts (AES-128-GCM), and binds
further channels. Use it against servers of the case only.
"""

import hashlib
import hmac
import os
import socket
import struct
import time

from Cryptodome.Cipher import ARC4
from Cryptodome.Hash import MD4
from cryptography.hazmat.primitives.ciphers import algorithms
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.cmac import CMAC

# Commands. [MS-SMB2] 2.2.1.2
NEGOTIATE = 0x0000
SESSION_SETUP = 0x0001
TREE_CONNECT = 0x0003
CREATE = 0x0005
CLOSE = 0x0006
READ = 0x0008
WRITE = 0x0009
CANCEL = 0x000C
ECHO = 0x000D
QUERY_DIRECTORY = 0x000E
QUERY_INFO = 0x0010
# Flags of a header. [MS-SMB2] 2.2.1.2
FROM_SERVER = 0x00000001
ASYNC = 0x00000002
SIGNED = 0x00000008
# Statuses. [MS-ERREF] 2.3
SUCCESS = 0x00000000
PENDING = 0x00000103
MORE_PROCESSING_REQUIRED = 0xC0000016
LOGON_FAILURE = 0xC000006D
# Dialects. [MS-SMB2] 2.2.3
SMB_2_1 = 0x0210
SMB_3_1_1 = 0x0311
# Signing algorithms and ciphers. [MS-SMB2] 2.2.3.1
AES_CMAC = 1
AES_GMAC = 2
AES_128_GCM = 2
# Capabilities of a client, without and with MULTI_CHANNEL. [MS-SMB2] 2.2.3
ONE_CHANNEL = 0x77
SEVERAL_CHANNELS = 0x7F
# Flag of SESSION_SETUP for a further channel, flag of its response. [MS-SMB2] 2.2.5, 2.2.6
BINDING = 0x01
ENCRYPT_DATA = 0x0004
# Access rights, dispositions and options of CREATE. [MS-SMB2] 2.2.13
LIST = 0x00000001
READ_ATTRIBUTES = 0x00000080
READ_WRITE = 0x0012019F
OPEN = 1
CREATE_NEW = 2
OPEN_OR_CREATE = 3
OVERWRITE_OR_CREATE = 5
IS_DIRECTORY = 0x1
# Classes of directory information. [MS-FSCC] 2.4
FILE_ID_BOTH_DIRECTORY_INFORMATION = 37
FILE_ID_FULL_DIRECTORY_INFORMATION = 38
FILE_BASIC_INFORMATION = 4
# Bytes of a header, and of the header of an encrypted message.
HEADER = 64
TRANSFORM_HEADER = 52
# Bytes of a credit. [MS-SMB2] 3.1.5.2
CREDIT_BYTES = 65536
# Seconds between the epochs of Windows (1601) and of Unix (1970).
WINDOWS_EPOCH = 11644473600
# NTLM flags: Unicode, NTLM, extended session security, 128 bits, key exchange. [MS-NLMP] 2.2.2.5
NTLM_FLAGS = 0xE2088297
NTLM_VERSION = bytes([10, 0, 0, 0, 0, 0, 0, 15])


class LoginFailed(Exception):
    """The server refused a login or a tree connect."""


def ntlm_negotiate():
    """NEGOTIATE_MESSAGE. [MS-NLMP] 2.2.1.1"""
    return b"NTLMSSP\0" + struct.pack("<II", 1, NTLM_FLAGS) + bytes(16) + NTLM_VERSION


def ntlm_authenticate(challenge, user, password):
    """AUTHENTICATE_MESSAGE and the exported session key. [MS-NLMP] 2.2.1.3, 3.3.2"""
    flags, server_challenge = challenge[20:24], challenge[24:32]
    length, _, offset = struct.unpack_from("<HHI", challenge, 40)
    target = challenge[offset : offset + length]
    nt_hash = MD4.new(password.encode("utf-16-le")).digest()
    key = hmac_md5(nt_hash, user.upper().encode("utf-16-le"))
    now = struct.pack("<Q", int((time.time() + WINDOWS_EPOCH) * 10_000_000))
    temp = b"\1\1" + bytes(6) + now + os.urandom(8) + bytes(4) + target + bytes(4)
    proof = hmac_md5(key, server_challenge + temp)
    session_key = os.urandom(16)
    wrapped = ARC4.new(hmac_md5(key, proof)).encrypt(session_key)
    name, workstation = user.encode("utf-16-le"), "w".encode("utf-16-le")
    fields = [bytes(24), proof + temp, b"", name, workstation, wrapped]
    offset = 88
    head = b""
    for field in fields:
        head += struct.pack("<HHI", len(field), len(field), offset)
        offset += len(field)
    message = b"NTLMSSP\0" + struct.pack("<I", 3) + head + flags + NTLM_VERSION + bytes(16)
    return message + b"".join(fields), session_key


def hmac_md5(key, data):
    """HMAC-MD5."""
    return hmac.new(key, data, "md5").digest()


def derive_key(key, label, context):
    """A key of 128 bits by SP 800-108 in counter mode. [MS-SMB2] 3.1.4.2"""
    data = b"\0\0\0\1" + label + b"\0" + context + b"\0\0\0\x80"
    return hmac.new(key, data, "sha256").digest()[:16]


def signature_of(message, key, algorithm):
    """The signature of a message. Its signature field may have any content."""
    blank = message[:48] + bytes(16) + message[HEADER:]
    if algorithm == AES_GMAC:
        return AESGCM(key).encrypt(gmac_nonce(message), b"", blank)
    if algorithm == AES_CMAC:
        mac = CMAC(algorithms.AES(key))
        mac.update(blank)
        return mac.finalize()
    return hmac.new(key, blank, "sha256").digest()[:16]


def gmac_nonce(message):
    """The nonce of AES-GMAC for a message. [MS-SMB2] 3.1.4.1"""
    is_from_server = flags_of(message) & FROM_SERVER
    is_cancel = 2 if command_of(message) == CANCEL else 0
    return message[24:32] + struct.pack("<I", is_from_server | is_cancel)


def status_of(message):
    """The status of a response."""
    return struct.unpack_from("<I", message, 8)[0]


def command_of(message):
    """The command of a message."""
    return struct.unpack_from("<H", message, 12)[0]


def credits_of(message):
    """The credits that a response grants."""
    return struct.unpack_from("<H", message, 14)[0]


def flags_of(message):
    """The flags of a header."""
    return struct.unpack_from("<I", message, 16)[0]


def session_id_of(message):
    """The SessionId of a header."""
    return struct.unpack_from("<Q", message, 40)[0]


def is_interim(message):
    """Whether the final response follows later."""
    return status_of(message) == PENDING and flags_of(message) & ASYNC != 0


def token_of(message):
    """The NTLM message in a response to SESSION_SETUP."""
    offset, length = struct.unpack_from("<HH", message, HEADER + 4)
    token = message[offset : offset + length]
    return token[token.index(b"NTLMSSP\0") :]


class Connection:
    """A connection of the client, and its session and tree.

    `capabilities`, `signing` and `ciphers` are offered at NEGOTIATE. `receive_buffer` limits the
    socket, `source` is the address of this end.
    """

    def __init__(
        self,
        address=("127.0.0.1", 445),
        dialect=SMB_3_1_1,
        capabilities=ONE_CHANNEL,
        signing=(AES_GMAC,),
        ciphers=(AES_128_GCM,),
        client_guid=None,
        timeout=60,
        receive_buffer=None,
        source=None,
    ):
        family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
        self.socket = socket.socket(family)
        if receive_buffer:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        if source:
            self.socket.bind((source, 0))
        self.socket.settimeout(timeout)
        self.socket.connect(address)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.dialect = dialect
        self.capabilities = capabilities
        self.offered_signing = signing
        self.offered_ciphers = ciphers
        self.client_guid = client_guid or os.urandom(16)
        self.algorithm = None
        self.preauth_hash = bytes(64)
        self.message_id = 0
        self.session_id = 0
        self.tree_id = 0
        # The key for responses of this channel, and the key of the session's first channel.
        self.signing_key = None
        self.session_signing_key = None
        self.encryption_key = None
        self.decryption_key = None
        self.signs = False
        self.encrypts = False
        self._received = b""
        # Called with each signed message in both directions.
        self.on_signed = None

    def close(self):
        """Closes the connection without a logoff."""
        self.socket.close()

    # Messages.

    def header(self, command, charge=1, credits=64, flags=0):
        """A header for the next message."""
        fields = (HEADER, charge, 0, command, credits, flags, 0, self.message_id)
        ids = (0xFEFF, self.tree_id, self.session_id)
        return b"\xfeSMB" + struct.pack("<HHIHHIIQIIQ", *fields, *ids) + bytes(16)

    def message(self, command, body, charge=1, credits=64, flags=0, key=None):
        """The next message, signed if the session signs or `key` is given."""
        message = self.header(command, charge, credits, flags) + body
        self.message_id += max(charge, 1)
        if key or (self.signs and not self.encrypts):
            message = self.sign(message, key or self.signing_key)
        return message

    def sign(self, message, key):
        """The message with its signature."""
        message = bytearray(message)
        struct.pack_into("<I", message, 16, flags_of(message) | SIGNED)
        message[48:64] = signature_of(bytes(message), key, self.algorithm)
        message = bytes(message)
        if self.on_signed:
            self.on_signed(message, self)
        return message

    def send_bytes(self, message):
        """Sends a message as it is."""
        self.socket.sendall(struct.pack(">I", len(message)) + message)

    def send_message(self, message):
        """Sends a message, encrypted if the session is."""
        self.send_bytes(self._encrypted(message) if self.encrypts else message)

    def send(self, command, body, **options):
        """Sends a request."""
        self.send_message(self.message(command, body, **options))

    def receive(self):
        """The next message of the server, decrypted."""
        (length,) = struct.unpack(">I", self._take(4))
        message = self._take(length & 0xFFFFFF)
        if message[:4] == b"\xfdSMB":
            message = self._decrypted(message)
        elif flags_of(message) & SIGNED and self.on_signed:
            self.on_signed(message, self)
        return message

    def feed(self, data):
        """The messages that are complete with these further bytes, for callers that poll."""
        self._received += data
        messages = []
        while len(self._received) >= 4:
            length = struct.unpack_from(">I", self._received)[0] & 0xFFFFFF
            if len(self._received) < 4 + length:
                break
            messages.append(self._received[4 : 4 + length])
            self._received = self._received[4 + length :]
        return messages

    def call(self, command, body, **options):
        """Sends a request and returns its final response."""
        self.send(command, body, **options)
        message = self.receive()
        while is_interim(message):
            message = self.receive()
        return message

    def _take(self, count):
        while len(self._received) < count:
            data = self.socket.recv(1 << 20)
            if not data:
                raise EOFError("the server closed the connection")
            self._received += data
        data, self._received = self._received[:count], self._received[count:]
        return data

    def _encrypted(self, message):
        """SMB2 TRANSFORM_HEADER and the encrypted message. [MS-SMB2] 2.2.41"""
        nonce = os.urandom(12)
        fields = struct.pack("<IHHQ", len(message), 0, 1, self.session_id)
        associated = nonce + bytes(4) + fields
        output = AESGCM(self.encryption_key).encrypt(nonce, message, associated)
        return b"\xfdSMB" + output[-16:] + associated + output[:-16]

    def _decrypted(self, message):
        tag, associated = message[4:20], message[20:TRANSFORM_HEADER]
        data = message[TRANSFORM_HEADER:] + tag
        return AESGCM(self.decryption_key).decrypt(associated[:12], data, associated)

    # Login.

    def negotiate(self):
        """Sends NEGOTIATE and adopts the algorithms of the response."""
        request = self.message(NEGOTIATE, self._negotiate_body(), credits=1)
        self.send_bytes(request)
        response = self.receive()
        self.preauth_hash = hash_of(hash_of(self.preauth_hash, request), response)
        if self.dialect == SMB_3_1_1:
            self.algorithm = self._agreed_algorithm(response)
        return response

    def _negotiate_body(self):
        """[MS-SMB2] 2.2.3"""
        head = struct.pack("<HHHHI", 36, 1, 1, 0, self.capabilities) + self.client_guid
        if self.dialect != SMB_3_1_1:
            return head + bytes(8) + struct.pack("<H", self.dialect)
        contexts = [context(1, struct.pack("<HHH", 1, 32, 1) + os.urandom(32))]
        for kind, values in ((2, self.offered_ciphers), (8, self.offered_signing)):
            if values:
                body = struct.pack(f"<{len(values) + 1}H", len(values), *values)
                contexts.append(context(kind, body))
        padding = 2
        offset = HEADER + 36 + 2 + padding
        body = head + struct.pack("<IHHH", offset, len(contexts), 0, self.dialect) + bytes(padding)
        padded = [data + bytes(-len(data) % 8) for data in contexts[:-1]]
        return body + b"".join(padded) + contexts[-1]

    def _agreed_algorithm(self, response):
        """The signing algorithm of the response, AES-CMAC without one."""
        (count,) = struct.unpack_from("<H", response, HEADER + 6)
        (offset,) = struct.unpack_from("<I", response, HEADER + 60)
        for _ in range(count):
            kind, length = struct.unpack_from("<HH", response, offset)
            if kind == 8:
                return struct.unpack_from("<H", response, offset + 10)[0]
            offset += (8 + length + 7) // 8 * 8
        return AES_CMAC

    def setup_body(self, token, flags=0):
        """The body of SESSION_SETUP. [MS-SMB2] 2.2.5"""
        return struct.pack("<HBBIIHHQ", 25, flags, 1, 0, 0, 88, len(token), 0) + token

    def log_in(self, user, password):
        """Logs in, again if the session exists. Returns the last response."""
        return self._exchange_tokens(user, password, 0, None)

    def bind(self, first, user, password):
        """Binds this connection to the session of the connection `first`."""
        self.session_id = first.session_id
        self.session_signing_key = first.session_signing_key
        self.encryption_key, self.decryption_key = first.encryption_key, first.decryption_key
        response = self._exchange_tokens(user, password, BINDING, first.session_signing_key)
        self.encrypts = first.encrypts and status_of(response) == SUCCESS
        return response

    def _exchange_tokens(self, user, password, flags, key):
        preauth_hash = self.preauth_hash
        request, response = self.send_token(ntlm_negotiate(), flags, key)
        if status_of(response) != MORE_PROCESSING_REQUIRED:
            return response
        preauth_hash = hash_of(hash_of(preauth_hash, request), response)
        self.session_id = session_id_of(response)
        token, session_key = ntlm_authenticate(token_of(response), user, password)
        request = self.message(SESSION_SETUP, self.setup_body(token, flags), key=key)
        preauth_hash = hash_of(preauth_hash, request)
        self.send_message(request)
        # The response is signed with the new key.
        self._adopt_keys(session_key, preauth_hash, flags)
        response = self.receive()
        if status_of(response) == SUCCESS:
            self.signs = True
            (session_flags,) = struct.unpack_from("<H", response, HEADER + 2)
            self.encrypts = flags != BINDING and session_flags & ENCRYPT_DATA != 0
        return response

    def send_token(self, token, flags=0, key=None):
        """Sends SESSION_SETUP. Returns the request and the response."""
        request = self.message(SESSION_SETUP, self.setup_body(token, flags), key=key)
        self.send_message(request)
        return request, self.receive()

    def _adopt_keys(self, session_key, preauth_hash, flags):
        """The keys of a session or channel. [MS-SMB2] 3.2.5.3.1"""
        if self.dialect != SMB_3_1_1:
            self.signing_key = session_key
            return
        self.signing_key = derive_key(session_key, b"SMBSigningKey\0", preauth_hash)
        if flags != BINDING:
            self.session_signing_key = self.signing_key
            self.encryption_key = derive_key(session_key, b"SMBC2SCipherKey\0", preauth_hash)
            self.decryption_key = derive_key(session_key, b"SMBS2CCipherKey\0", preauth_hash)

    def connect_tree(self, share):
        """Connects to a share."""
        path = f"\\\\127.0.0.1\\{share}".encode("utf-16-le")
        response = self.call(TREE_CONNECT, struct.pack("<HHHH", 9, 0, 72, len(path)) + path)
        self.tree_id = struct.unpack_from("<I", response, 36)[0]
        return response

    # Requests.

    def echo(self, credits=64):
        """Sends ECHO, and asks for credits."""
        return self.call(ECHO, struct.pack("<HH", 4, 0), credits=credits)

    def create_body(self, name, access=READ_WRITE, disposition=OPEN_OR_CREATE, options=0):
        """The body of CREATE. [MS-SMB2] 2.2.13"""
        encoded = name.encode("utf-16-le")
        fields = (57, 0, 0, 2, 0, 0, access, 0, 7, disposition, options, 120, len(encoded), 0, 0)
        return struct.pack("<HBBIQQIIIIIHHII", *fields) + (encoded or b"\0")

    def create(self, name, **options):
        """Opens or creates a file. Returns its FileId."""
        response = self.call(CREATE, self.create_body(name, **options))
        if status_of(response) != SUCCESS:
            raise OSError(f"CREATE of {name}: {status_of(response):#010x}")
        return response[128:144]

    def close_file(self, file_id):
        """Closes a file."""
        return self.call(CLOSE, struct.pack("<HHI", 24, 0, 0) + file_id)

    def read_body(self, file_id, offset, length):
        """The body of READ. [MS-SMB2] 2.2.19"""
        head = struct.pack("<HBBIQ", 49, 80, 0, length, offset)
        return head + file_id + bytes(16) + b"\0"

    def read(self, file_id, offset, length):
        """Reads from a file. Returns the response."""
        return self.call(READ, self.read_body(file_id, offset, length), charge=charge_of(length))

    def write_body(self, file_id, offset, data):
        """The body of WRITE. [MS-SMB2] 2.2.21"""
        return struct.pack("<HHIQ", 49, 112, len(data), offset) + file_id + bytes(16) + data

    def write(self, file_id, offset, data):
        """Writes to a file. Returns the response."""
        return self.call(WRITE, self.write_body(file_id, offset, data), charge=charge_of(len(data)))

    def query_directory_body(self, file_id, length, information_class):
        """The body of QUERY_DIRECTORY from the start of the directory. [MS-SMB2] 2.2.33"""
        pattern = "*".encode("utf-16-le")
        head = struct.pack("<HBBI", 33, information_class, 1, 0) + file_id
        return head + struct.pack("<HHI", 96, len(pattern), length) + pattern

    def list(self, file_id, length=CREDIT_BYTES):
        """Lists the start of a directory. Returns the response."""
        body = self.query_directory_body(file_id, length, FILE_ID_BOTH_DIRECTORY_INFORMATION)
        return self.call(QUERY_DIRECTORY, body, charge=charge_of(length))

    def query_information(self, file_id, information_class):
        """The buffer of QUERY_INFO for a file."""
        head = struct.pack("<HBBIHHIII", 41, 1, information_class, 1024, 0, 0, 0, 0, 0)
        response = self.call(QUERY_INFO, head + file_id)
        return response[HEADER + 8 :]


def hash_of(previous, message):
    """The preauth hash after a message. [MS-SMB2] 3.1.4.4.1"""
    return hashlib.sha512(previous + message).digest()


def context(kind, data):
    """A negotiate context without padding. [MS-SMB2] 2.2.3.1"""
    return struct.pack("<HHI", kind, len(data), 0) + data


def charge_of(length):
    """The CreditCharge of a request for this number of bytes."""
    return max(1, (length + CREDIT_BYTES - 1) // CREDIT_BYTES)


def connect(user, share="data", **options):
    """A connection with a login and a tree connect. `user` is a pair of name and password."""
    connection = Connection(**options)
    connection.negotiate()
    for step in (lambda: connection.log_in(*user), lambda: connection.connect_tree(share)):
        status = status_of(step())
        if status != SUCCESS:
            raise LoginFailed(f"{status:#010x}")
    return connection
