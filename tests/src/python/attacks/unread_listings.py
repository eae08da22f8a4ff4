"""Clients that request large listings and never receive them leave memory and threads for others.

Connections with 60 opens of a directory of long names each request 8 MiB of it for every open.
"""

import os
import time

from mini import (
    FILE_ID_FULL_DIRECTORY_INFORMATION,
    IS_DIRECTORY,
    LIST,
    QUERY_DIRECTORY,
    charge_of,
    connect,
)
from checks import check_at_most, figure, finish, scaled, wait_until
from server import ALICE, BOB, MIB, MemoryWatch, Server, make_open_directory
from victim import Victim

ATTACKERS = 4
LISTINGS = 60
LISTING_BYTES = 8 * MIB
FILES = 9000
# The prefix of the names: 232 of 240 characters.
PREFIX = "n" * 232
# Seconds for which the other client works beside the attack.
DURATION = scaled(6, 25)
# Bytes of memory of the process at its peak.
MEMORY_LIMIT = 300 * MIB


def fill(directory):
    """Makes the files of the directory."""
    make_open_directory(directory)
    for number in range(FILES):
        with open(os.path.join(directory, f"{PREFIX}{number:08}"), "wb"):
            pass


def attack():
    """A connection with listings in flight that never receives them."""
    connection = connect(ALICE, receive_buffer=4096)
    connection.echo(credits=8190)
    options = {"access": LIST, "options": IS_DIRECTORY}
    for file in [connection.create("large", **options) for _ in range(LISTINGS)]:
        body = connection.query_directory_body(
            file, LISTING_BYTES, FILE_ID_FULL_DIRECTORY_INFORMATION
        )
        connection.send(QUERY_DIRECTORY, body, charge=charge_of(LISTING_BYTES), credits=1)
    return connection


def main():
    with Server() as own:
        fill(os.path.join(own.data, "large"))
        victims = {"same user": Victim(ALICE), "other user": Victim(BOB, "other.bin")}
        figure("load", f"{ATTACKERS} clients, {LISTINGS} listings of 8 MiB each")
        with MemoryWatch(own) as memory:
            attackers = [attack() for _ in range(ATTACKERS)]
            end = time.monotonic() + DURATION
            while time.monotonic() < end and all(v.is_served for v in victims.values()):
                for title, victim in victims.items():
                    victim.check_names(title)
                time.sleep(0.2)
            for connection in attackers:
                connection.close()
        check_at_most("memory of the process", memory.peak, MEMORY_LIMIT)
        max(victims.values(), key=lambda victim: victim.slowest).record()
        memory.record()
    finish()


main()
