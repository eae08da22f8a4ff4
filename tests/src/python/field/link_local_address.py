"""A URL, and the key `listen`, can name a link-local IPv6 address with its zone.

Reports: winfsp/sshfs-win#403, diyan/pywinrm#164, hyperium/http#322, psf/requests#5775 (RFC 6874).
"""

import os
import socket
import subprocess

from fieldlib import *

ADDRESS = "fe80::5"
ZONE = "lo"
CONTENT = "hello"


def add_address():
    """Gives the loopback device a link-local address."""
    command = ["ip", "-6", "address", "add", f"{ADDRESS}/64", "dev", ZONE, "nodad"]
    subprocess.run(command, check=True)


def check_urls():
    """The commands reach the server through every form of the zone."""
    index = socket.if_nametoindex(ZONE)
    hosts = ["[::1]", f"[{ADDRESS}%25{ZONE}]", f"[{ADDRESS}%{ZONE}]", f"[{ADDRESS}%25{index}]"]
    for host in hosts:
        result = run("cat", url("file", host=host))
        is_read = (result.code, result.text) == (0, CONTENT)
        check(f"cat from {host}", is_read, f"{result.code} {result.text} {result.errors}")
    result = run("ls", url(host=f"[{ADDRESS}%25{index}]"))
    answer = (result.code, result.text.strip())
    check_equal("ls by the number of the interface", answer, (0, "file"))
    result = run("cat", url("file", host=f"[{ADDRESS}%25missing]"))
    check("a zone that does not exist is an error", result.code != 0, result.errors)


def main():
    add_address()
    with Server(sections={"server": {"listen": ["::"]}}) as own:
        write_local(os.path.join(own.data, "file"), CONTENT.encode())
        check_urls()
    listen = {"server": {"listen": [f"{ADDRESS}%{ZONE}"]}}
    other = Server("zone", sections=listen)
    make_open_directory(other.data)
    other.write_configuration()
    other.add_user(*ALICE)
    result = run("config", "check", other.config_path)
    if check_equal("exit code of config check with a zone", result.code, 0):
        os.unlink(other.users_path)
        with other:
            write_local(os.path.join(other.data, "file"), CONTENT.encode())
            result = run("cat", url("file", host=f"[{ADDRESS}%25{ZONE}]"))
            check_equal("cat from a server with a zone", result.text, CONTENT)
    note(result.errors)
    finish()


main()
