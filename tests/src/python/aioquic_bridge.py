"""Runs a client of TCP over QUIC, through aioquic: PORT CA_FILE MANNER PROGRAM ARGUMENT...

The first argument of the program, a port, is put in front of the others: it leads to the server's
PORT of QUIC.
"""

import asyncio
import contextlib
import itertools
import ssl
import sys

from aioquic.asyncio.client import connect
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.packet import QuicProtocolVersion
from aioquic.tls import CipherSuite

HOST = "127.0.0.1"
NAME = "localhost"
CIPHERS = {
    "aes128": CipherSuite.AES_128_GCM_SHA256,
    "aes256": CipherSuite.AES_256_GCM_SHA384,
    "chacha20": CipherSuite.CHACHA20_POLY1305_SHA256,
}
VERSION_1 = QuicProtocolVersion.VERSION_1
VERSION_2 = QuicProtocolVersion.VERSION_2
# Sizes that do not fit the messages, and the number of pieces between two actions of a restless
# client.
PIECES = (1, 3, 2, 61, 5, 1000, 40000)
PIECES_PER_WHIM = 50
END_LIMIT_S = 20
WINDOW = 16 << 20
READ_BYTES = 65536


def configuration(ca_file, manner):
    wanted = QuicConfiguration(
        alpn_protocols=["smb"],
        cafile=ca_file,
        server_name=NAME,
        verify_mode=ssl.CERT_REQUIRED,
        max_data=WINDOW,
        max_stream_data=WINDOW,
    )
    if manner in CIPHERS:
        wanted.cipher_suites = [CIPHERS[manner]]
    if manner == "version2":
        # It begins with version 2, and the server answers that it supports version 1.
        wanted.supported_versions = [VERSION_2, VERSION_1]
        wanted.original_version = VERSION_2
    return wanted


async def whims(client):
    """Actions that a client may take at any time."""
    while True:
        client._quic.request_key_update()
        await client.ping()
        yield
        client._quic.change_connection_id()
        await client.ping()
        yield


async def send(reader, writer, client, is_restless):
    sizes = itertools.cycle(PIECES)
    whim = whims(client)
    for number in itertools.count():
        data = await reader.read(READ_BYTES)
        if not data:
            break
        if not is_restless:
            writer.write(data)
            continue
        while data:
            size = next(sizes)
            writer.write(data[:size])
            client.transmit()
            data = data[size:]
            if next(COUNT) % PIECES_PER_WHIM == 0:
                await anext(whim)
                DONE.append(number)
    writer.write_eof()


COUNT = itertools.count(1)
DONE = []


async def receive(reader, writer):
    while data := await reader.read(READ_BYTES):
        writer.write(data)
        await writer.drain()
    writer.close()


async def main(port, ca_file, manner, program, *arguments):
    is_restless = manner == "restless"
    versions, bridges = [], []

    async def bridge(reader, writer):
        bridges.append(asyncio.current_task())
        wanted = configuration(ca_file, manner)
        with contextlib.suppress(ConnectionError):
            async with connect(HOST, int(port), configuration=wanted) as client:
                versions.append(client._quic._version)
                far_reader, far_writer = await client.create_stream()
                here = receive(far_reader, writer)
                await asyncio.gather(send(reader, far_writer, client, is_restless), here)

    def run(near):
        sys.argv = ["program", str(near), *arguments]
        exec(compile(program, "program", "exec"), {"__name__": "__main__"})

    server = await asyncio.start_server(bridge, HOST, 0)
    near = server.sockets[0].getsockname()[1]
    await asyncio.to_thread(run, near)
    await asyncio.wait_for(asyncio.gather(*bridges), END_LIMIT_S)
    assert versions, "no client connected"
    assert set(versions) == {VERSION_1}, versions
    assert bool(DONE) == is_restless, "nothing was done"


asyncio.run(main(*sys.argv[1:]))
