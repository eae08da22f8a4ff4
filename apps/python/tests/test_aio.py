import asyncio
import os

import pytest

import smbeam
from smbeam import aio


def run(coroutine):
    return asyncio.run(asyncio.wait_for(coroutine, 60))


@pytest.fixture
def later(url, password):
    return aio.AsyncShare(url, password=password)


def test_operations_run_at_the_same_time(later, local):
    contents = [os.urandom(50_000) for _ in range(200)]
    for number, content in enumerate(contents):
        (local / f"f{number}").write_bytes(content)

    async def main():
        reads = [later.read(f"f{number}") for number in range(200)]
        assert await asyncio.gather(*reads) == contents
        assert len(await later.list()) == 200
        assert await later.glob("f19*") == ["f19", *(f"f{n}" for n in range(190, 200))]
        assert await later.read_many(["f1", "f2"]) == contents[1:3]

    run(main())
    run(main())


def test_files(later, local):
    content = os.urandom(3_000_000)

    async def main():
        async with await later.open("f", "wb") as file:
            assert await file.write(content) == len(content)
        async with await later.open("f") as file:
            assert await file.read(10) == content[:10]
            assert await file.read() == content[10:]
            await file.seek(5)
            chunks = [chunk async for chunk in file.chunks(1_000_000)]
            assert b"".join(chunks) == content[5:]
            buffer = bytearray(100)
            assert await file.readinto_at(buffer, 7) == 100
            assert buffer == content[7:107]
        async with await later.open("g", "wb", atomic=True) as file:
            await file.write(b"whole")
        with pytest.raises(RuntimeError):
            async with await later.open("g", "wb", atomic=True) as file:
                await file.write(b"part")
                raise RuntimeError

    run(main())
    assert (local / "f").read_bytes() == content
    assert (local / "g").read_bytes() == b"whole"
    assert sorted(os.listdir(local)) == ["f", "g"]


def test_errors_and_cancellation(later, local):
    async def main():
        with pytest.raises(FileNotFoundError):
            await later.read("none")

        async def first():
            async for change in later.watch():
                return change

        # The watch never ends by itself.
        task = asyncio.create_task(first())
        await asyncio.sleep(0.2)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert not await later.exists("none")

    run(main())


def test_changes_are_seen(later, local):
    async def main():
        changes = later.watch()
        waiting = asyncio.ensure_future(changes.__anext__())
        number = 0
        while not waiting.done():
            number += 1
            await later.write(f"f{number}", b"")
        action, path = await waiting
        assert path.startswith("f")
        await changes.aclose()

    run(main())


def test_an_abandoned_result_does_no_harm(later, local):
    (local / "f").write_bytes(b"x")

    async def main():
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(later.read("f"), 0)
        assert await later.read("f") == b"x"

    run(main())
    assert smbeam.Share(later.url, password=later._description.password).read("f") == b"x"
