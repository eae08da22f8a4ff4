"""Connections that do not log in leave places for clients with a password.

4,200 connections from 17 IPv4 addresses, then as many from the addresses of one IPv6 network of
64 bits, are held open. A client with the right password from another address logs in.
"""

import subprocess
import time

import mini
from checks import check, check_at_most, figure, finish, note, scaled
from server import ALICE, MemoryWatch, Server, connect
from victim import Victim

CONNECTIONS = scaled(420, 4200)
PER_ADDRESS = scaled(25, 250)
# The limits of the server: the defaults in a full run.
LIMITS = scaled({"half_open": 409, "half_open_per_address": 25}, {})
NETWORK = "fd00:1::"
OTHER_NETWORK_ADDRESS = "fd00:2::1"


def add_networks():
    """Makes all addresses of two networks addresses of this machine."""
    for network in (NETWORK, "fd00:2::"):
        command = ["ip", "-6", "route", "add", "local", f"{network}/64", "dev", "lo"]
        subprocess.run(command, check=True)


def flood(source_of, step):
    """Opens the connections and brings each to a step of the login."""
    held = []
    for number in range(CONNECTIONS):
        try:
            connection = connect(source_of(number), timeout=5)
            step(connection)
            held.append(connection)
        except OSError as error:
            note(f"connection {number}: {error}")
            break
    return held


def count_alive(connections):
    """The number of connections that the server did not close."""
    alive = 0
    for connection in connections:
        connection.setblocking(False)
        try:
            alive += connection.recv(1) != b""
        except BlockingIOError:
            alive += 1
        except OSError:
            pass
    return alive


def say_nothing(_):
    """The first step: the connection is open."""


def start_frame(connection):
    """The second step: the start of a frame of 60,000 bytes."""
    connection.sendall(b"\0\0\xea\x60\xfeSMB" + bytes(1000))


def run_attack(own, title, source_of, step, victim, victim_source):
    """Holds the connections while the victim works and logs in again."""
    with MemoryWatch(own) as memory:
        start = time.monotonic()
        held = flood(source_of, step)
        note(f"{title}: {len(held)} connections in {time.monotonic() - start:.1f} s")
        victim.check_echo(title)
        victim.check_login(title, victim_source)
        note(f"{title}: {count_alive(held)} connections are still open")
        for connection in held:
            connection.close()
    return memory


def main():
    add_networks()
    sections = {"server": {"listen": ["127.0.0.1", "::1"]}, "limits": LIMITS}
    with Server(sections=sections) as own:
        victim = Victim(ALICE)
        figure("load", f"{CONNECTIONS} connections of 17 addresses")
        ipv4 = lambda number: f"127.0.1.{1 + number // PER_ADDRESS}"
        ipv6 = lambda number: f"{NETWORK}{number + 1:x}"
        memory = run_attack(own, "silent, IPv4", ipv4, say_nothing, victim, "127.0.0.20")
        run_attack(own, "starts of frames, IPv4", ipv4, start_frame, victim, "127.0.0.21")
        run_attack(own, "silent, one IPv6 network", ipv6, say_nothing, victim, "127.0.0.22")
        victim.record()
        memory.record()
    finish()


main()
