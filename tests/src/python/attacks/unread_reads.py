"""Clients that request data and never receive them leave buffers for other clients.

24 connections of one user each request 64 MiB in READs of several sizes, and read nothing. Another
connection of the same user, and one of another user, are served.
"""

import os

from mini import READ, charge_of, connect
from checks import figure, finish
from server import ALICE, BOB, MIB, MemoryWatch, Server
from victim import Victim

ATTACKERS = 24
FILE_BYTES = 64 * MIB
# Each attacker has one of these sizes. The small ones take what the large ones leave.
SIZES = [8 * MIB, 8 * MIB, 1 * MIB, 68 << 10]
# The requests of a client with small READs, limited by its credits.
MOST_REQUESTS = 480


def attack(number):
    """A connection with requests in flight that never receives the responses."""
    connection = connect(ALICE, receive_buffer=4096)
    file = connection.create("large.bin")
    connection.echo(credits=2000)
    size = SIZES[number * len(SIZES) // ATTACKERS]
    for index in range(min(FILE_BYTES // size, MOST_REQUESTS)):
        body = connection.read_body(file, index * size % FILE_BYTES, size)
        connection.send(READ, body, charge=charge_of(size))
    return connection


def main():
    with Server() as own:
        with open(os.path.join(own.data, "large.bin"), "wb") as file:
            file.write(os.urandom(FILE_BYTES))
        victims = {"same user": Victim(ALICE), "other user": Victim(BOB, "other.bin")}
        for title, victim in victims.items():
            victim.check_data(f"before the attack, {title}")
        figure("load", f"{ATTACKERS} clients, 64 MiB each")
        with MemoryWatch(own) as memory:
            attackers = [attack(number) for number in range(ATTACKERS)]
            for title, victim in victims.items():
                victim.check_data(f"during the attack, {title}")
                victim.check_names(f"during the attack, {title}")
            for connection in attackers:
                connection.close()
        max(victims.values(), key=lambda victim: victim.slowest).record()
        memory.record()
    finish()


main()
