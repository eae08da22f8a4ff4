"""Strangers over QUIC that leave out the first byte of their stream cost little memory.

The server cannot pass the data on, and keeps them up to the window of the stream.
"""

import asyncio
import ssl
import time

import server
from aioquic.asyncio.protocol import QuicConnectionProtocol
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.connection import QuicConnection
from mini import connect
from checks import check_at_most, check_equal, figure, finish, note, scaled
from server import ALICE, HOST, MIB, QUIC_PORT, MemoryWatch, Server
from victim import Victim

STRANGERS = scaled(24, 256)
# Strangers of one address.
PER_ADDRESS = 64
SENT_BYTES = 15 * MIB
DURATION = scaled(8, 28)
# Bytes of memory of the process at its peak, and growth of it per stranger.
MEMORY_LIMIT = 200 * MIB
GROWTH_LIMIT = 1 * MIB


async def attack(number, stop):
    """One connection: the stream from its second byte on, as far as the server permits."""
    configuration = QuicConfiguration(
        is_client=True,
        alpn_protocols=["smb"],
        verify_mode=ssl.CERT_NONE,
        server_name="localhost",
        max_datagram_size=1350,
    )
    quic = QuicConnection(configuration=configuration)
    source = (f"127.0.3.{1 + number // PER_ADDRESS}", 0)
    loop = asyncio.get_running_loop()
    transport, protocol = await loop.create_datagram_endpoint(
        lambda: QuicConnectionProtocol(quic), local_addr=source
    )
    try:
        protocol.connect((HOST, QUIC_PORT))
        await asyncio.wait_for(protocol.wait_connected(), DURATION)
        stream = quic.get_next_available_stream_id()
        quic.send_stream_data(stream, b"x" * SENT_BYTES)
        # The first byte is not sent.
        quic._streams[stream].sender._pending.subtract(0, 1)
        protocol.transmit()
        await stop.wait()
        return True
    except (ConnectionError, asyncio.TimeoutError):
        return False
    finally:
        protocol.close()
        transport.close()


async def run_attack(meanwhile):
    """All connections for a while. Returns the number of those that the server accepted."""
    stop = asyncio.Event()
    tasks = [asyncio.create_task(attack(number, stop)) for number in range(STRANGERS)]
    await asyncio.sleep(DURATION)
    await asyncio.get_running_loop().run_in_executor(None, meanwhile)
    stop.set()
    return sum(await asyncio.gather(*tasks))


def check_ordinary_client():
    """A client with a password is served over QUIC."""
    options = ("--transports", f"quic:{QUIC_PORT}", "--insecure")
    address = f"smb://{ALICE[0]}@{HOST}/data/"
    result = server.run("ls", *options, address)
    check_equal("exit code of ls over QUIC during the attack", result.code, 0)
    note(result.errors)


def main():
    transports = [f"tcp:{server.TCP_PORT}", f"quic:{QUIC_PORT}"]
    with Server(sections={"server": {"transports": transports}}) as own:
        victim = Victim(ALICE)
        figure("load", f"{STRANGERS} strangers over QUIC")
        with MemoryWatch(own) as memory:
            accepted = asyncio.run(run_attack(check_ordinary_client))
            victim.check_echo("during the attack")
        note(f"{accepted} strangers were accepted")
        check_at_most("memory of the process", memory.peak, MEMORY_LIMIT)
        check_at_most("growth per stranger", memory.growth / STRANGERS, GROWTH_LIMIT)
        victim.record()
        memory.record()
    finish()


main()
