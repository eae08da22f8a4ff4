import errno
import os
import pickle
import threading
import time

import pytest

import smbeam


def test_a_listing_has_metadata(share, local):
    (local / "d").mkdir()
    (local / "a.bin").write_bytes(b"x" * 1234)
    os.utime(local / "a.bin", (1_000_000_000, 1_100_000_000.5))
    entries = {entry.name: entry for entry in share.list()}
    assert sorted(entries) == ["a.bin", "d"]
    assert entries["d"].is_dir and not entries["d"].is_file
    file = entries["a.bin"]
    assert (file.size, file.is_file, file.modified) == (1234, True, 1_100_000_000.5)
    assert file.path.endswith("/a.bin")
    assert share.stat("a.bin").size == 1234
    assert [entry.name for entry in share.list("", "*.bin")] == ["a.bin"]


def test_errors_are_of_the_system_and_have_the_status(share, local):
    (local / "d").mkdir()
    (local / "d" / "f").write_text("")
    with pytest.raises(FileNotFoundError) as caught:
        share.read("none")
    assert caught.value.errno == errno.ENOENT
    assert caught.value.status_name == "OBJECT_NAME_NOT_FOUND"
    assert caught.value.status == 0xC000_0034
    assert "none" in str(caught.value)
    copy = pickle.loads(pickle.dumps(caught.value))
    assert (copy.errno, copy.status, str(copy)) == (
        caught.value.errno,
        caught.value.status,
        str(caught.value),
    )
    with pytest.raises(OSError) as caught:
        share.rmdir("d")
    assert caught.value.errno == errno.ENOTEMPTY
    with pytest.raises(FileExistsError):
        share.mkdir("d")
    with pytest.raises(IsADirectoryError):
        share.open("d", "rb")
    with pytest.raises(NotADirectoryError):
        share.list("d/f")
    with pytest.raises(OSError) as caught:
        share.read("../outside")
    assert caught.value.errno == errno.EINVAL


def test_a_wrong_password_is_a_permission_error(url):
    with pytest.raises(PermissionError) as caught:
        smbeam.connect(url, password="wrong")
    assert caught.value.status_name == "LOGON_FAILURE"


def test_a_password_is_never_shown(url):
    share = smbeam.Share(url, password="secret-word")
    assert "secret-word" not in repr(share)
    assert b"secret-word" not in pickle.dumps(share)
    with pytest.raises(ValueError) as caught:
        smbeam.Share(url.replace("@", ":secret-word@"))
    assert "secret-word" not in str(caught.value)


def test_names_change(share, local):
    share.makedirs("a/b/c")
    share.makedirs("a/b/c", exist_ok=True)
    with pytest.raises(FileExistsError):
        share.makedirs("a/b/c")
    share.write("a/f", b"1")
    share.write("a/g", b"2")
    with pytest.raises(FileExistsError):
        share.rename("a/f", "a/g")
    share.rename("a/f", "a/g", replace=True)
    assert (local / "a/g").read_bytes() == b"1"
    assert share.copy("a/g", "a/h") == 1
    assert share.exists("a/h") and not share.exists("a/x")
    assert share.is_dir("a") and share.is_file("a/h")
    share.remove("a/h")
    share.remove_tree("a")
    assert os.listdir(local) == []


def test_patterns_match_as_in_the_package_glob(share, local):
    for path in ("a.txt", "b.bin", "d/c.txt", "d/e/f.txt", "d/e/g.bin", "x[1].txt"):
        (local / path).parent.mkdir(parents=True, exist_ok=True)
        (local / path).write_text("")
    assert share.glob("*.txt") == ["a.txt", "x[1].txt"]
    assert share.glob("d/*.txt") == ["d/c.txt"]
    assert share.glob("**/*.txt") == ["a.txt", "d/c.txt", "d/e/f.txt", "x[1].txt"]
    assert share.glob("d/*/?.bin") == ["d/e/g.bin"]
    assert share.glob("[ab].*") == ["a.txt", "b.bin"]
    assert share.glob("none/*") == []
    assert share.glob("a.txt") == ["a.txt"]
    walked = sorted((path, sorted(files)) for path, _, files in share.walk())
    assert walked == [
        ("", ["a.txt", "b.bin", "x[1].txt"]),
        ("d", ["c.txt"]),
        ("d/e", ["f.txt", "g.bin"]),
    ]


def test_many_files_are_read(share, local):
    contents = {f"f{number}": os.urandom(number * 997) for number in range(300)}
    contents["large"] = os.urandom(3 << 20)
    for path, content in contents.items():
        (local / path).write_bytes(content)
    assert share.read_many(list(contents)) == list(contents.values())
    assert share.read_many(list(contents)[:5]) == list(contents.values())[:5]
    lengths = [len(content) for content in contents.values()]
    assert share.read_many(list(contents), lengths=lengths) == list(contents.values())
    mixed = share.read_many(["f3", "none", "f5"], on_error="return")
    assert mixed[0] == contents["f3"] and mixed[2] == contents["f5"]
    assert isinstance(mixed[1], FileNotFoundError)
    with pytest.raises(FileNotFoundError):
        share.read_many(["f3", "none"])
    assert share.read_many([]) == []


def test_files_are_whole_although_the_first_ones_have_other_lengths(share):
    lengths = [0] * 9 + [70_000] * 40 + [(2 << 20) + 1] * 3 + [5, 1 << 20, (1 << 20) - 1] * 20
    contents = {f"g{index}": bytes([index]) * length for index, length in enumerate(lengths)}
    for name, content in contents.items():
        share.write(name, content)
    assert share.read_many(list(contents)) == list(contents.values())
    reverse = list(reversed(contents))
    assert share.read_many(reverse) == [contents[name] for name in reverse]


def test_ranges_are_read(share, local):
    content = os.urandom(5 << 20)
    (local / "f").write_bytes(content)
    (local / "g").write_bytes(b"short")
    ranges = [("f", start, start + 70_000) for start in range(0, 4 << 20, 100_000)]
    ranges += [("g", 1, 4), ("f", 10, 10), ("g", 3, 100)]
    expected = [(content if path == "f" else b"short")[start:end] for path, start, end in ranges]
    assert share.read_ranges(ranges) == expected


def test_streams_attributes_and_lists(share, local):
    share.write("f", b"data")
    share.write_stream("f", "note", b"of a stream")
    assert share.streams("f") == {"note": 11}
    assert share.read_stream("f", "note") == b"of a stream"
    share.remove_stream("f", "note")
    assert share.streams("f") == {}
    share.set_xattr("f", "user.kind", b"\x00\x01")
    assert b"\x00\x01" in share.xattrs("f").values()
    share.remove_xattr("f", "user.kind")
    assert share.xattrs("f") == {}
    sddl = share.acl("f")
    assert sddl.startswith("O:")
    with pytest.raises(ValueError):
        share.set_acl("f", "nonsense")


def test_files_move_to_this_machine_and_back(share, local, tmp_path):
    content = os.urandom(9 << 20)
    (tmp_path / "from").write_bytes(content)
    counts = []
    assert share.upload(tmp_path / "from", "f", progress=counts.append) == len(content)
    assert sum(counts) == len(content)
    assert (local / "f").read_bytes() == content
    assert share.download("f", tmp_path / "to") == len(content)
    assert (tmp_path / "to").read_bytes() == content

    def fail(_count):
        raise KeyError("of the caller")

    with pytest.raises(KeyError):
        share.download("f", tmp_path / "to", progress=fail)


def test_changes_are_seen(share, local):
    seen = []

    def watch():
        for change in share.watch():
            seen.append(change)
            if change == ("created", "last"):
                return

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    other = smbeam.Share(share.url, password=share._description.password)
    end = time.monotonic() + 60
    number = 0
    while not seen and time.monotonic() < end:
        number += 1
        other.write(f"f{number % 3}", b"")
    other.write("last", b"")
    thread.join(60)
    assert not thread.is_alive()


def test_shares_are_listed(password):
    from served import URL

    server = URL.rpartition("/")[0]
    assert URL.rpartition("/")[2] in smbeam.shares(server, password=password)


def test_many_threads_use_one_share(share, local):
    for number in range(8):
        (local / f"f{number}").write_bytes(bytes([number]) * 100_000)
    failures = []

    def read(number):
        for _ in range(30):
            if share.read(f"f{number}") != bytes([number]) * 100_000:
                failures.append(number)

    threads = [threading.Thread(target=read, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


def test_the_process_can_log_off(share):
    share.write("f", b"1")
    smbeam.close_all()
    assert share.read("f") == b"1"
