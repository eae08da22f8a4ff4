"""Clients that announce WRITEs and do not send their data leave buffers for other clients.

24 connections of one user each send the start of a WRITE of 8 MiB, and then nothing.
"""

import struct

from mini import CREDIT_BYTES, WRITE, charge_of, connect
from checks import figure, finish
from server import ALICE, BOB, MIB, MemoryWatch, Server
from victim import Victim

ATTACKERS = 24
WRITE_BYTES = 8 * MIB
# The bytes of each WRITE that are sent.
SENT_BYTES = CREDIT_BYTES


def attack(number):
    """A connection that sends the start of a WRITE."""
    connection = connect(ALICE)
    file = connection.create(f"attacker-{number}.bin")
    connection.echo(credits=500)
    body = connection.write_body(file, 0, bytes(WRITE_BYTES))
    message = connection.message(WRITE, body, charge=charge_of(WRITE_BYTES))
    connection.socket.sendall(struct.pack(">I", len(message)) + message[:SENT_BYTES])
    return connection


def main():
    with Server() as own:
        victims = {"same user": Victim(ALICE), "other user": Victim(BOB, "other.bin")}
        figure("load", f"{ATTACKERS} clients, 8 MiB each")
        with MemoryWatch(own) as memory:
            attackers = [attack(number) for number in range(ATTACKERS)]
            for title, victim in victims.items():
                victim.check_data(f"during the attack, {title}")
            for connection in attackers:
                connection.close()
        max(victims.values(), key=lambda victim: victim.slowest).record()
        memory.record()
    finish()


main()
