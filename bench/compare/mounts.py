"""Compares `smbeam mount` with rclone, with a file system in memory, and with a local directory.

    cargo build --release -p smbeam -p smbeam-mount --example memory_filesystem
    python3 bench/compare/mounts.py --smbeam target/release/smbeam \
        --memory target/release/examples/memory_filesystem --rclone /usr/bin/rclone

It needs root, fio, git and tar. The server shares a directory on tmpfs over loopback. Each round
runs every candidate once (A B C A B C). For each candidate the table has the median, the spread,
and the seconds of CPU time of all processes of the candidate: client, server and the program.
"""

import argparse
import contextlib
import json
import os
import shutil
import socket
import statistics
import subprocess
import tempfile
import time

MIB = 1 << 20
PASSWORD = "a password of the bench"
TICKS = os.sysconf("SC_CLK_TCK")


def cpu_of(pid):
    """CPU time of a process in seconds."""
    with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def until(condition, what, seconds=60):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, what
        time.sleep(0.005)


class Server:
    """smbeam with a share on tmpfs."""

    def __init__(self, smbeam, scratch):
        self.share = f"{scratch}/share"
        os.mkdir(self.share)
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8G", "none", self.share], check=True)
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        users, config = f"{scratch}/users.toml", f"{scratch}/smbeam.toml"
        subprocess.run(
            [smbeam, "user", "add", "--password-stdin", "--file", users, "--unix", "root", "bench"],
            input=f"{PASSWORD}\n".encode(),
            check=True,
            stdout=subprocess.DEVNULL,
        )
        with open(config, "w", encoding="ascii") as file:
            file.write(
                f'[server]\nlisten = ["127.0.0.1"]\ntransports = ["tcp:{self.port}"]\n'
                f'users = "{users}"\nstate_directory = "{scratch}"\n'
                f'control_socket = "{scratch}/control"\n'
                f'[[share]]\nname = "data"\npath = "{self.share}"\n'
            )
        self.process = subprocess.Popen([smbeam, "serve", "--log-level", "warn", "--config", config])
        until(self.listens, "the server does not listen")

    def listens(self):
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0

    def close(self):
        self.process.terminate()
        self.process.wait()
        subprocess.run(["umount", "-l", self.share], check=True)


class Candidate:
    """A mounted directory, and the processes that serve it."""

    def __init__(self, name, directory, pids, shared=None):
        self.name, self.directory, self.pids, self.shared = name, directory, pids, shared

    def cpu(self):
        own = os.times()
        own = own.user + own.system + own.children_user + own.children_system
        return own + sum(cpu_of(pid) for pid in self.pids)

    def has_all(self, name, size):
        """Waits until the server has a file: rclone uploads after the close."""
        if self.shared:
            path = f"{self.shared}/{name}"
            until(lambda: os.path.exists(path) and os.stat(path).st_size == size, name, 300)


@contextlib.contextmanager
def mounted(command, directory, environment=None):
    os.makedirs(directory, exist_ok=True)
    process = subprocess.Popen(command, env={**os.environ, **(environment or {})})
    until(lambda: os.path.ismount(directory) or process.poll() is not None, "no mount")
    assert process.poll() is None, command
    try:
        yield process.pid
    finally:
        subprocess.run(["umount", directory], check=False)
        process.wait()


def write(candidate, size):
    """Writes a new file, until the server has it."""
    block, name = os.urandom(MIB), f"written-{candidate.name}-{time.monotonic_ns()}"
    path = f"{candidate.directory}/{name}"
    start = time.monotonic()
    with open(path, "wb", buffering=0) as file:
        for _ in range(size // MIB):
            file.write(block)
        os.fsync(file.fileno())
    candidate.has_all(name, size)
    seconds = time.monotonic() - start
    os.unlink(path)
    return seconds


def make_source(directory, size):
    """The file for the reads, which no client has written."""
    block = os.urandom(MIB)
    with open(f"{directory}/source", "wb", buffering=0) as file:
        for _ in range(size // MIB):
            file.write(block)


def forget_pages(path):
    with open(path, "rb") as file:
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def read_file(path, size):
    start, buffer, total = time.monotonic(), bytearray(MIB), 0
    with open(path, "rb", buffering=0) as file:
        while count := file.readinto(buffer):
            total += count
    assert total == size, f"{path}: {total} bytes"
    return time.monotonic() - start


def read(candidate, size):
    path = f"{candidate.directory}/source"
    forget_pages(path)
    return read_file(path, size)


def read_again(candidate, size):
    path = f"{candidate.directory}/cached"
    read_file(path, size)
    return read_file(path, size)


def random_reads(candidate, size):
    """Seconds for each 1,000 reads."""
    output = subprocess.run(
        ["fio", "--name=r", f"--filename={candidate.directory}/source", "--rw=randread"]
        + ["--bs=4k", "--numjobs=16", "--direct=1", "--ioengine=psync", "--time_based"]
        + ["--runtime=5", f"--size={size}", "--group_reporting", "--output-format=json"],
        check=True,
        stdout=subprocess.PIPE,
    ).stdout
    text = output.decode()
    job = json.loads(text[text.index("{") :])["jobs"][0]["read"]
    return 1000 / job["iops"]


def untar(candidate, archive):
    directory = f"{candidate.directory}/untar"
    os.mkdir(directory)
    start = time.monotonic()
    subprocess.run(["tar", "-C", directory, "-xf", archive[0]], check=True)
    if candidate.shared:
        shared = f"{candidate.shared}/untar/d99/f{archive[1] // 100 - 1}"
        until(lambda: os.path.exists(shared) and os.stat(shared).st_size > 0, "untar", 600)
    seconds = time.monotonic() - start
    until_removed(directory)
    return seconds


def until_removed(directory):
    end = time.monotonic() + 600
    while os.path.exists(directory) and time.monotonic() < end:
        shutil.rmtree(directory, ignore_errors=True)


def status(candidate, _):
    start = time.monotonic()
    subprocess.run(
        ["git", "-C", f"{candidate.directory}/repository", "status", "--porcelain"],
        check=True,
        stdout=subprocess.DEVNULL,
    )
    return time.monotonic() - start


def make_tree(directory, count):
    for group in range(100):
        os.makedirs(f"{directory}/d{group}")
        for number in range(count // 100):
            with open(f"{directory}/d{group}/f{number}", "wb") as file:
                file.write(os.urandom(1000))


def make_repository(directory):
    git = ["git", "-C", directory, "-c", "user.name=b", "-c", "user.email=b@example.com"]
    subprocess.run(["git", "init", "-q", directory], check=True)
    subprocess.run([*git, "add", "."], check=True)
    subprocess.run([*git, "commit", "-q", "-m", "files"], check=True)


def compare(title, candidates, rounds, measure, argument=None):
    """Runs a measurement in turns, and prints a line for each candidate."""
    seconds = {it.name: [] for it in candidates}
    cpu = {it.name: [] for it in candidates}
    for _ in range(rounds):
        for candidate in candidates:
            before = candidate.cpu()
            try:
                seconds[candidate.name].append(measure(candidate, argument))
            except (OSError, AssertionError, subprocess.CalledProcessError) as error:
                print(f"{title}: {candidate.name}: {error}", flush=True)
                continue
            cpu[candidate.name].append(candidate.cpu() - before)
    first = None
    for name, values in seconds.items():
        if not values:
            continue
        median = statistics.median(values)
        first = first or median
        print(
            f"{title:22} {name:8} {median:9.4f} s  {min(values):.4f} to {max(values):.4f}"
            f"  CPU {statistics.median(cpu[name]):.2f} s  time / first {median / first:.2f}",
            flush=True,
        )


def options():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--smbeam", required=True)
    parser.add_argument("--memory", required=True)
    parser.add_argument("--rclone")
    parser.add_argument("--size", type=int, default=2048, help="MiB")
    parser.add_argument("--files", type=int, default=20_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", help="measurements, separated by commas")
    return parser.parse_args()


def rclone_command(rclone, port, scratch, directory):
    obscured = subprocess.run(
        [rclone, "obscure", PASSWORD], check=True, stdout=subprocess.PIPE
    ).stdout.decode()
    remote = f":smb,host=127.0.0.1,port={port},user=bench,pass={obscured.strip()}:data"
    command = [rclone, "mount", remote, directory, "--vfs-cache-mode", "writes"]
    command += ["--vfs-write-back", "0s", "--cache-dir", f"{scratch}/cache"]
    return command + ["--config", "/dev/null"]


def main():
    chosen = options()
    size = chosen.size * MIB
    with contextlib.ExitStack() as stack:
        scratch = stack.enter_context(tempfile.TemporaryDirectory(dir="/dev/shm"))
        server = Server(chosen.smbeam, scratch)
        stack.callback(server.close)
        with open(f"{scratch}/password", "w", encoding="ascii") as file:
            file.write(PASSWORD)
        os.chmod(f"{scratch}/password", 0o600)
        url = f"smb://bench@127.0.0.1:{server.port}/data"
        mount = [chosen.smbeam, "mount", "--foreground", "--password-file", f"{scratch}/password"]
        pid = stack.enter_context(mounted([*mount, url, f"{scratch}/m"], f"{scratch}/m"))
        server_pid = server.process.pid
        smbeam = Candidate("smbeam", f"{scratch}/m", [pid, server_pid], server.share)
        pid = stack.enter_context(mounted([chosen.memory, f"{scratch}/f"], f"{scratch}/f"))
        memory = Candidate("fuser", f"{scratch}/f", [pid])
        others = []
        if chosen.rclone:
            command = rclone_command(chosen.rclone, server.port, scratch, f"{scratch}/r")
            pid = stack.enter_context(mounted(command, f"{scratch}/r"))
            others = [Candidate("rclone", f"{scratch}/r", [pid, server_pid], server.share)]
        os.mkdir(f"{scratch}/local")
        local = Candidate("local", f"{scratch}/local", [])
        run(chosen, size, scratch, (smbeam, memory, others, local))


def wants(chosen, name):
    return not chosen.only or name in chosen.only.split(",")


def run(chosen, size, scratch, candidates):
    smbeam, memory, others, local = candidates
    rounds, few = chosen.rounds, min(chosen.rounds, 3)
    make_source(smbeam.shared, size)
    if wants(chosen, "write"):
        compare("write", [smbeam, memory, *others], few, write, size)
    if wants(chosen, "read"):
        make_source(memory.directory, size)
        compare("read", [smbeam, memory, *others], few, read, size)
        os.unlink(f"{memory.directory}/source")
    if wants(chosen, "random"):
        compare("4 KiB random, 1000", [smbeam, *others], few, random_reads, size)
    if wants(chosen, "cached"):
        for it in (smbeam, local):
            with open(f"{it.directory}/cached", "wb") as file:
                file.write(os.urandom(512 * MIB))
        candidates = [smbeam, local]
        compare("second read, 512 MiB", candidates, rounds, read_again, 512 * MIB)
    if wants(chosen, "untar"):
        os.mkdir(f"{scratch}/tree")
        make_tree(f"{scratch}/tree", chosen.files)
        archive = f"{scratch}/tree.tar"
        subprocess.run(["tar", "-C", f"{scratch}/tree", "-cf", archive, "."], check=True)
        count = (archive, chosen.files)
        compare("untar", [smbeam, *others, local], few, untar, count)
    if wants(chosen, "status"):
        for it in (smbeam, local):
            make_tree(f"{it.directory}/repository", chosen.files)
            make_repository(f"{it.directory}/repository")
        # The caches of names begin some seconds after the last change.
        for _ in range(3):
            status(smbeam, None)
            time.sleep(6)
        compare("git status", [smbeam, local], rounds, status)


if __name__ == "__main__":
    main()
