"""Locks of two processes on two mounts of one share: flock and ranges of fcntl.

usage: locks.py A B. A and B are one directory of the share, on the two mounts. Each process is
this program again. It reads commands, one in each line, and answers "ok" or the name of the error.
"""
import errno
import fcntl
import os
import select
import subprocess
import sys

HELD = (errno.EWOULDBLOCK, errno.EACCES)
NO_WAIT = fcntl.LOCK_NB
# Time for which a waiting lock must not be granted, in seconds.
WAITING = 0.3
# Time limit of each answer, in seconds.
LIMIT = 20


def serve(directory):
    """Performs the commands of the standard input."""
    file = None
    for line in sys.stdin:
        command, *words = line.split()
        try:
            if command == "open":
                path = os.path.join(directory, words[0])
                file = os.open(path, os.O_RDWR | os.O_CREAT)
            elif command == "close":
                os.close(file)
            elif command == "flock":
                fcntl.flock(file, flags(words[0]))
            elif command == "range":
                kind, start, length = words
                fcntl.lockf(file, flags(kind), int(length), int(start))
            elif command == "write":
                os.pwrite(file, words[1].encode(), int(words[0]))
            elif command == "read":
                found = os.pread(file, int(words[1]), int(words[0])).decode()
                print("ok" if found == words[2] else found, flush=True)
                continue
            answer = "ok"
        except OSError as error:
            answer = "held" if error.errno in HELD else errno.errorcode[error.errno]
        print(answer, flush=True)


def flags(kind):
    """The flags of a lock: exclusive, shared or free, with "wait" behind them if it waits."""
    name, _, wait = kind.partition("-")
    flag = {"exclusive": fcntl.LOCK_EX, "shared": fcntl.LOCK_SH, "free": fcntl.LOCK_UN}[name]
    return flag if wait or name == "free" else flag | NO_WAIT


class Process:
    """A process on one of the mounts."""

    def __init__(self, directory):
        self.child = subprocess.Popen(
            [sys.executable, __file__, "serve", directory],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def send(self, command):
        self.child.stdin.write(command.encode() + b"\n")
        self.child.stdin.flush()

    def answers(self, limit):
        return bool(select.select([self.child.stdout], [], [], limit)[0])

    def answer(self):
        if not self.answers(LIMIT):
            return f"no answer in {LIMIT} s"
        return self.child.stdout.readline().decode().strip()

    def ask(self, command):
        self.send(command)
        return self.answer()

    def kill(self):
        self.child.kill()
        self.child.wait()


class Case:
    """Two processes with one open file, and the failures so far."""

    def __init__(self, name, mounts, file):
        self.name, self.failures = name, []
        self.one, self.two = (Process(mount) for mount in mounts)
        self.file = file

    def expect(self, process, command, wanted):
        found = process.ask(command)
        if found != wanted:
            which = "first" if process is self.one else "second"
            self.failures.append(f"{which} process, {command}: {found} instead of {wanted}")

    def open(self):
        for process in (self.one, self.two):
            self.expect(process, f"open {self.file}", "ok")

    def expect_wait(self, command, release):
        """The second process waits for a lock until the first one releases it."""
        self.two.send(command)
        if self.two.answers(WAITING):
            self.failures.append(f"{command} does not wait: {self.two.answer()}")
            return
        release()
        found = self.two.answer()
        if found != "ok":
            self.failures.append(f"{command} after the release: {found}")


def flock_excludes(case):
    case.open()
    case.expect(case.one, "flock exclusive", "ok")
    case.expect(case.two, "flock exclusive", "held")
    case.expect(case.two, "flock shared", "held")
    case.expect(case.one, "flock free", "ok")
    case.expect(case.two, "flock exclusive", "ok")
    case.expect(case.one, "flock exclusive", "held")


def flock_is_shared(case):
    case.open()
    case.expect(case.one, "flock shared", "ok")
    case.expect(case.two, "flock shared", "ok")
    case.expect(case.two, "flock free", "ok")
    case.expect(case.two, "flock exclusive", "held")


def flock_of_a_sole_client_counts_later(case):
    """The first process is alone and may keep its lock to itself until the second one opens."""
    case.expect(case.one, f"open {case.file}", "ok")
    case.expect(case.one, "flock exclusive", "ok")
    case.expect(case.one, "write 0 data", "ok")
    case.expect(case.two, f"open {case.file}", "ok")
    case.expect(case.two, "flock exclusive", "held")
    case.expect(case.one, "flock free", "ok")
    case.expect(case.two, "flock exclusive", "ok")
    case.expect(case.two, "read 0 4 data", "ok")


def flock_ends_with_close(case):
    case.open()
    case.expect(case.one, "flock exclusive", "ok")
    case.expect(case.two, "flock exclusive", "held")
    case.expect(case.one, "close", "ok")
    case.expect(case.two, "flock exclusive-wait", "ok")


def flock_ends_with_the_process(case):
    case.open()
    case.expect(case.one, "flock exclusive", "ok")
    case.expect(case.two, "flock exclusive", "held")
    case.one.kill()
    case.expect(case.two, "flock exclusive-wait", "ok")


def flock_waits(case):
    case.open()
    case.expect(case.one, "flock exclusive", "ok")
    case.expect_wait("flock exclusive-wait", lambda: case.expect(case.one, "flock free", "ok"))


def ranges_exclude(case):
    case.open()
    case.expect(case.one, "range exclusive 0 100", "ok")
    case.expect(case.two, "range exclusive 50 100", "held")
    case.expect(case.two, "range shared 99 1", "held")
    case.expect(case.two, "range exclusive 100 100", "ok")
    case.expect(case.one, "range exclusive 150 100", "held")
    case.expect(case.one, "range free 0 100", "ok")
    case.expect(case.two, "range exclusive 0 100", "ok")


def ranges_are_shared(case):
    case.open()
    case.expect(case.one, "range shared 0 100", "ok")
    case.expect(case.two, "range shared 0 100", "ok")
    case.expect(case.two, "range free 0 100", "ok")
    case.expect(case.two, "range exclusive 0 100", "held")


def range_of_a_sole_client_counts_later(case):
    case.expect(case.one, f"open {case.file}", "ok")
    case.expect(case.one, "range exclusive 10 10", "ok")
    case.expect(case.two, f"open {case.file}", "ok")
    case.expect(case.two, "range exclusive 15 10", "held")
    case.expect(case.two, "range exclusive 20 10", "ok")
    case.expect(case.one, "range free 10 10", "ok")
    case.expect(case.two, "range exclusive 10 10", "ok")


def range_ends_with_close(case):
    case.open()
    case.expect(case.one, "range exclusive 0 10", "ok")
    case.expect(case.two, "range exclusive 0 10", "held")
    case.expect(case.one, "close", "ok")
    case.expect(case.two, "range exclusive-wait 0 10", "ok")


def range_ends_with_the_process(case):
    case.open()
    case.expect(case.one, "range exclusive 0 10", "ok")
    case.expect(case.two, "range exclusive 0 10", "held")
    case.one.kill()
    case.expect(case.two, "range exclusive-wait 0 10", "ok")


def range_waits(case):
    case.open()
    case.expect(case.one, "range exclusive 0 10", "ok")
    free = lambda: case.expect(case.one, "range free 0 10", "ok")
    case.expect_wait("range exclusive-wait 5 10", free)


CASES = [
    flock_excludes,
    flock_is_shared,
    flock_of_a_sole_client_counts_later,
    flock_ends_with_close,
    flock_ends_with_the_process,
    flock_waits,
    ranges_exclude,
    ranges_are_shared,
    range_of_a_sole_client_counts_later,
    range_ends_with_close,
    range_ends_with_the_process,
    range_waits,
]


def main():
    failed = False
    for number, function in enumerate(CASES):
        case = Case(function.__name__, sys.argv[1:], f"file{number}")
        function(case)
        case.one.kill()
        case.two.kill()
        failed |= bool(case.failures)
        print("locks", "FAILED" if case.failures else "ok", case.name, *case.failures,
              sep=" " if not case.failures else "\n    ", flush=True)
    sys.exit(failed)


if sys.argv[1] == "serve":
    serve(sys.argv[2])
else:
    main()
