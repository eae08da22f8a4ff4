import multiprocessing
import os
import pickle
import signal
import threading
import time
import urllib.parse

import pytest

import smbeam

from forwarder import Forwarder
from served import IS_FULL


def child(work):
    """Runs a function in a forked process, and returns what it returns."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        signal.alarm(20)
        try:
            os.write(writer, pickle.dumps(outcome(work)))
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        text = pipe.read()
    os.waitpid(pid, 0)
    assert text, "the child failed or did not end"
    result = pickle.loads(text)
    if isinstance(result, Exception):
        raise result
    return result


def outcome(work):
    """The result of a function, or its exception."""
    try:
        return work()
    except Exception as error:
        return error


def test_a_share_works_on_both_sides_of_a_fork(share, local):
    (local / "f").write_bytes(b"content")
    assert share.read("f") == b"content"
    assert child(lambda: share.read("f")) == b"content"
    assert share.read("f") == b"content"
    assert child(lambda: child(lambda: share.read("f"))) == b"content"


@pytest.mark.skipif(not IS_FULL, reason="only in full runs")
def test_a_child_waits_for_a_server_that_restarts(share, local, password):
    (local / "f").write_bytes(b"content")
    url = urllib.parse.urlsplit(share.url)
    port = Forwarder((url.hostname, url.port or 445))
    address = f"{url.username}@127.0.0.1:{port.port}"
    through = smbeam.Share(url._replace(netloc=address).geturl(), password=password)
    assert through.read("f") == b"content"
    port.close()
    # A share that was never connected does not wait.
    fresh = smbeam.Share(through.url, password=password, timeout=31)
    with pytest.raises(ConnectionError):
        child(lambda: fresh.read("f"))
    port.open_later(1.0)
    assert child(lambda: through.read("f")) == b"content"
    assert through.read("f") == b"content"
    # The client must not look for the closed port while later tests fork.
    smbeam.close_all()
    port.close()


def test_an_open_file_works_on_both_sides_of_a_fork(share, local):
    content = os.urandom(3 << 20)
    (local / "f").write_bytes(content)
    with share.open("f", "rb") as file:
        assert file.read(1000) == content[:1000]
        assert child(lambda: file.read()) == content[1000:]
        assert file.read() == content[1000:]


def test_a_fork_while_other_threads_read(share, local):
    (local / "f").write_bytes(b"x" * 1_000_000)
    stop = threading.Event()

    def read():
        with share.open("f", "rb", buffering=0) as file:
            while not stop.is_set():
                file.seek(0)
                file.read()

    threads = [threading.Thread(target=read) for _ in range(3)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(10):
            assert child(lambda: len(share.read("f"))) == 1_000_000
    finally:
        stop.set()
        for thread in threads:
            thread.join()


def length_of(share, path, queue):
    queue.put(len(share.read(path)))


def length_of_file(file, queue):
    queue.put(len(file.read()))


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_objects_go_to_child_processes(share, local, method):
    (local / "f").write_bytes(b"x" * 70_000)
    assert len(share.read("f")) == 70_000
    context = multiprocessing.get_context(method)
    queue = context.Queue()
    with share.open("f", "rb") as file:
        file.seek(60_000)
        for target, arguments in (
            (length_of, (share, "f", queue)),
            (length_of_file, (file, queue)),
        ):
            process = context.Process(target=target, args=arguments)
            process.start()
            assert queue.get(timeout=60) == (70_000 if target is length_of else 10_000)
            process.join(20)
            assert process.exitcode == 0


def test_a_signal_ends_a_wait(share):
    def interrupt():
        time.sleep(0.3)
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    # A shell starts programs in the background with SIGINT ignored, and Python leaves that.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            thread.start()
            for _ in share.watch():
                pass
    finally:
        signal.signal(signal.SIGINT, before)
    thread.join()
    assert share.exists()


def test_operations_end_with_the_process(url, local, password):
    # A process that exits with open files and sessions does not hang.
    import subprocess
    import sys

    (local / "f").write_bytes(b"x" * 1000)
    program = (
        "import smbeam, sys\n"
        "share = smbeam.Share(sys.argv[1], password=sys.argv[2])\n"
        "file = share.open('f', 'rb')\n"
        "print(len(file.read(10)))\n"
    )
    ended = subprocess.run(
        [sys.executable, "-c", program, url, password],
        capture_output=True,
        text=True,
        timeout=30,
    )
    assert (ended.stdout, ended.returncode) == ("10\n", 0), ended.stderr


def test_the_import_does_not_load_large_modules():
    import subprocess
    import sys

    program = "import sys, smbeam; print(*(m for m in sys.argv[1:] if m in sys.modules))"
    large = ["asyncio", "numpy", "torch", "fsspec", "multiprocessing", "ssl"]
    ended = subprocess.run([sys.executable, "-c", program, *large], capture_output=True, text=True)
    assert ended.stdout.split() == []


def test_the_package_prints_its_version():
    import subprocess
    import sys

    ended = subprocess.run(
        [sys.executable, "-m", "smbeam", "--version"], capture_output=True, text=True
    )
    assert ended.stdout == f"smbeam {smbeam.__version__}\n"
