"""Servers of smbeam for a case, and the memory that they use.

A case runs in separate mount, network and process namespaces (tests/src/script.rs). So its ports
are free, its mounts are visible to its servers only, and no process outlives it.
"""

import json
import os
import signal
import socket
import subprocess
import threading
import time

import checks

# The smbeam program under test.
PROGRAM = os.environ["SMBEAM"]
# A directory for the files of the case, on a separate tmpfs.
DIRECTORY = os.environ["SMBEAM_CASE_DIRECTORY"]
# The users of every server.
ALICE = ("alice", "Wonderland-7")
BOB = ("bob", "Builder:9 x")
# The address and the ports of a server, unless a case has others.
HOST = "127.0.0.1"
TCP_PORT = 445
QUIC_PORT = 443
# Seconds for the start and for the end of a server.
START_LIMIT = 20
STOP_LIMIT = 20
# Seconds between two samples of the memory.
SAMPLE_INTERVAL = 0.05
# Linux: bind to an address that no device has. ip(7)
IP_FREEBIND = 15
MIB = 1 << 20


class Server:
    """A server with the share `data`, which ends with the `with` block.

    `sections` are further keys per section of the configuration, `share` further keys of the share,
    `shares` further shares. `log` replaces the file `server.log`.
    """

    def __init__(self, name="server", sections=None, share=None, shares=(), log=None, users=None):
        self.directory = os.path.join(DIRECTORY, name)
        self.data = os.path.join(self.directory, "data")
        self.log_path = os.path.join(self.directory, "server.log")
        self._log = log
        self._users = [ALICE, BOB] if users is None else users
        self._sections = sections or {}
        self._shares = [{"name": "data", "path": self.data, **(share or {})}, *shares]
        self.process = None

    def __enter__(self):
        make_open_directory(self.directory)
        if not os.path.isdir(self.data):
            make_open_directory(self.data)
        for user, password in self._users:
            self.add_user(user, password)
        self.start()
        return self

    def __exit__(self, *_):
        self.stop()

    @property
    def users_path(self):
        return os.path.join(self.directory, "users.toml")

    @property
    def config_path(self):
        return os.path.join(self.directory, "smbeam.toml")

    @property
    def pid(self):
        return self.process.pid

    def add_user(self, user, password):
        """Adds a user with the Unix account root."""
        run(
            *("user", "add", "--file", self.users_path, "--unix", "root", "--password-stdin", user),
            input=(password + "\n").encode(),
        ).expect_success()

    def configuration(self):
        """The sections of the configuration file."""
        server = {
            "listen": [HOST],
            "transports": [f"tcp:{TCP_PORT}"],
            "users": self.users_path,
            "control_socket": os.path.join(self.directory, "control"),
        }
        sections = {"server": server, "quic": {"state_directory": self.directory}}
        for name, keys in self._sections.items():
            sections[name] = {**sections.get(name, {}), **keys}
        return sections

    def write_configuration(self):
        """Writes the configuration file."""
        with open(self.config_path, "w", encoding="utf-8") as file:
            for name, keys in self.configuration().items():
                file.write(section(f"[{name}]", keys))
            for share in self._shares:
                file.write(section("[[share]]", share))

    def start(self):
        """Starts the server and waits until it listens."""
        self.write_configuration()
        log = self._log if self._log is not None else open(self.log_path, "ab")
        arguments = [PROGRAM, "serve", "--config", self.config_path]
        self.process = subprocess.Popen(
            arguments, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=self.directory
        )
        transports = self.configuration()["server"]["transports"]
        ports = [transport.split(":")[1] for transport in transports]
        is_ready = lambda: self.has_ended() or all(listens(int(port)) for port in ports)
        is_started = checks.wait_until(is_ready, START_LIMIT) and not self.has_ended()
        if not is_started:
            raise RuntimeError(f"the server does not start:\n{self.log()}")

    def has_ended(self):
        """Whether the process has ended."""
        return self.process.poll() is not None

    def stop(self):
        """Asks the server to finish, and kills it after a while."""
        if self.process is None or self.has_ended():
            return
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(STOP_LIMIT)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def log(self):
        """Everything that the server has logged."""
        with open(self.log_path, encoding="utf-8", errors="replace") as file:
            return file.read()

    def memory(self):
        """Bytes of memory that the process occupies."""
        with open(f"/proc/{self.pid}/status", encoding="ascii") as file:
            line = next(line for line in file if line.startswith("VmRSS:"))
        return int(line.split()[1]) << 10


class MemoryWatch:
    """Samples the memory of a server in the background and keeps the largest value."""

    def __init__(self, server):
        self._server = server
        self._is_stopped = threading.Event()
        self.before = server.memory()
        self.peak = self.before
        self._thread = threading.Thread(target=self._sample, daemon=True)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._is_stopped.set()
        self._thread.join()

    def _sample(self):
        while not self._is_stopped.wait(SAMPLE_INTERVAL):
            try:
                self.peak = max(self.peak, self._server.memory())
            except (OSError, StopIteration):
                return

    @property
    def growth(self):
        """Bytes between the start and the peak."""
        return self.peak - self.before

    def record(self):
        """Records the figures, and where they are wanted the memory after one minute of silence."""
        checks.figure("memory before", f"{self.before / MIB:.0f} MiB")
        checks.figure("peak", f"{self.peak / MIB:.0f} MiB")
        if not checks.scaled(False, True):
            return
        time.sleep(60)
        after = self._server.memory()
        checks.figure("after 1 min", f"{after / MIB:.0f} MiB")
        checks.check_at_most("memory one minute after the peak", after, 2 * self.before)


class Output:
    """The exit code and the output of a command of smbeam."""

    def __init__(self, arguments, process):
        self.arguments = arguments
        self.code = process.returncode
        self.text = process.stdout.decode("utf-8", "replace")
        self.errors = process.stderr.decode("utf-8", "replace").strip()

    def expect_success(self):
        """Fails the case unless the command succeeded."""
        if self.code != 0:
            raise RuntimeError(f"smbeam {self.arguments} ends with {self.code}: {self.errors}")
        return self


def run(*arguments, input=None, password=ALICE[1], timeout=120):
    """Runs a command of smbeam."""
    environment = {**os.environ, "SMBEAM_PASSWORD": password, "LC_ALL": "C.UTF-8"}
    process = subprocess.run(
        [PROGRAM, *arguments],
        input=input,
        stdin=subprocess.DEVNULL if input is None else None,
        capture_output=True,
        timeout=timeout,
        env=environment,
    )
    return Output(arguments, process)


def url(path="", host=HOST, user=ALICE[0], share="data"):
    """The URL of a path of a share."""
    return f"smb://{user}@{host}:{TCP_PORT}/{share}/{path}"


def make_open_directory(path):
    """Makes a directory that every user may write to."""
    os.makedirs(path, exist_ok=True)
    os.chmod(path, 0o777)


def mount_tmpfs(path, mebibytes):
    """Mounts a new file system of this size on a directory."""
    options = f"size={mebibytes}M,mode=777"
    subprocess.run(["mount", "-t", "tmpfs", "-o", options, "none", path], check=True)


def section(title, keys):
    """A section of a TOML file. A JSON string, number, array or boolean is one of TOML too."""
    lines = [f"{key} = {json.dumps(value, ensure_ascii=False)}" for key, value in keys.items()]
    return "\n".join([title, *lines, "", ""])


def listens(port):
    """Whether a process of this network namespace listens on a port, by TCP or UDP."""
    wanted = f":{port:04X}"
    for table, state in (("tcp", "0A"), ("tcp6", "0A"), ("udp", "07"), ("udp6", "07")):
        with open(f"/proc/net/{table}", encoding="ascii") as file:
            rows = [line.split() for line in file.readlines()[1:]]
        if any(row[1].endswith(wanted) and row[3] == state for row in rows):
            return True
    return False


def connect(source, port=TCP_PORT, timeout=60):
    """A TCP connection to the server from an address of this machine."""
    family = socket.AF_INET6 if ":" in source else socket.AF_INET
    connection = socket.socket(family)
    connection.settimeout(timeout)
    # IPv6 needs it for the addresses of a local route that no device has.
    connection.setsockopt(socket.SOL_IP, IP_FREEBIND, 1)
    connection.bind((source, 0))
    connection.connect(("::1" if ":" in source else HOST, port))
    return connection
