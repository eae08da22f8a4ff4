"""The training loop of `smbeam bench ai train` with readers in Python: loader.py SPECIFICATION.

SPECIFICATION is one object of JSON. Worker processes read whole batches, as those of the DataLoader
of PyTorch do: batch `i` belongs to worker `i` modulo their number. The processes are spawned, not
forked, because clients of SMB have threads. The result has the format of `smbeam bench ai`.
"""

import json
import multiprocessing
import os
import platform
import random
import sys
import time

# Bytes of each read of the class of fsspec. Larger reads are slower.
BLOCK = 4 << 20


class PackageReader:
    """The package smbeam."""

    def __init__(self, spec):
        import smbeam

        self.share = smbeam.connect(spec["url"], channels=spec["channels"])
        self.directory, self.lengths = spec["directory"], spec["lengths"]
        self.buffer = bytearray(max(self.lengths.values()))

    def read(self, names):
        paths = [f"{self.directory}/{name}" for name in names]
        lengths = [self.lengths[name] for name in names]
        if len(self.buffer) <= 1 << 20:
            return sum(len(data) for data in self.share.read_many(paths, lengths=lengths))
        return sum(self.share.read_into(path, self.buffer) for path in paths)


class FsspecReader:
    """The class of fsspec on the package smbprotocol."""

    def __init__(self, spec):
        from fsspec.implementations.smb import SMBFileSystem

        self.system = SMBFileSystem(
            host=spec["host"],
            port=spec["port"],
            username=spec["user"],
            password=os.environ["SMBEAM_PASSWORD"],
            share_access="r",
        )
        self.directory = f"/{spec['share']}/{spec['directory']}"
        self.buffer = bytearray(max(spec["lengths"].values()))

    def read(self, names):
        return sum(self.read_file(f"{self.directory}/{name}") for name in names)

    def read_file(self, path):
        view, total = memoryview(self.buffer), 0
        with self.system.open(path, "rb") as file:
            while count := file.readinto(view[total : total + BLOCK]):
                total += count
        return total


READERS = {"python-smbeam": PackageReader, "python-smbprotocol": FsspecReader}


def work(spec, batches, results):
    """Reads batches until there are no more."""
    try:
        reader = READERS[spec["reader"]](spec)
        reader.read([next(iter(spec["lengths"]))])
        results.put((None, 0.0, 0, time.process_time()))
        while batch := batches.get():
            number, names = batch
            start = time.perf_counter()
            length = reader.read(names)
            results.put((number, time.perf_counter() - start, length, time.process_time()))
    except BaseException as error:
        results.put((None, repr(error), 0, 0.0))
        raise


def take(results):
    """The next result of a worker."""
    result = results.get(timeout=120)
    if isinstance(result[1], str):
        raise RuntimeError(result[1])
    return result


def run(spec, accelerators):
    """Trains with a number of accelerators, which step together. Returns a run."""
    context = multiprocessing.get_context("spawn")
    count = accelerators * spec["workers"]
    results = context.Queue()
    queues = [context.SimpleQueue() for _ in range(count)]
    arguments = [(spec, queue, results) for queue in queues]
    workers = [context.Process(target=work, args=each, daemon=True) for each in arguments]
    for worker in workers:
        worker.start()
    cpu = sum(take(results)[3] for _ in workers)
    own = time.process_time()
    measured = loop(spec, accelerators, queues, results)
    for queue in queues:
        queue.put(None)
    for worker in workers:
        worker.join()
    last = measured.pop("worker_cpu")
    measured["cpu"]["client_s"] = last - cpu + time.process_time() - own
    return measured


def loop(spec, accelerators, queues, results):
    steps, batch = spec["steps"], spec["batch"]
    names = sorted(spec["lengths"])
    random.Random(spec["seed"]).shuffle(names)
    total = steps * accelerators
    batches = [names[i * batch : (i + 1) * batch] for i in range(total)]
    ready, reads, waits, computations, cpu, length = set(), [], [], [], {}, 0
    busy, start = machine_time(), time.perf_counter()
    sent = 0
    while sent < min(total, len(queues) * spec["prefetch_factor"]):
        queues[sent % len(queues)].put((sent, batches[sent]))
        sent += 1
    for step in range(steps):
        begin = time.perf_counter()
        wanted = range(step * accelerators, (step + 1) * accelerators)
        while not ready.issuperset(wanted):
            number, seconds, count, process_time = take(results)
            ready.add(number)
            reads.append(seconds)
            length += count
            cpu[number % len(queues)] = process_time
        for _ in wanted:
            if sent < total:
                queues[sent % len(queues)].put((sent, batches[sent]))
                sent += 1
        waits.append(time.perf_counter() - begin)
        begin = time.perf_counter()
        time.sleep(spec["computation_s"])
        computations.append(time.perf_counter() - begin)
    seconds = time.perf_counter() - start
    after = machine_time()
    measured = seconds - waits[0] - computations[0]
    utilization = 100.0 * sum(computations[1:]) / measured
    samples = accelerators * batch / measured
    v2, v3 = (steps - 2) * samples, (steps - 1) * samples
    rate = v2 if spec["round"] == "v2" else v3
    return {
        "accelerators": accelerators,
        "au_percent": utilization,
        "au_refused": None,
        "has_passed": utilization >= spec["au_target_percent"],
        "samples_per_second": rate,
        "mib_per_second": rate * spec["record_bytes"] / 2**20,
        "gb_per_second": length / seconds / 1e9,
        "bytes": length,
        "epochs": [
            {
                "au_percent": utilization,
                "samples_per_second_v2": v2,
                "samples_per_second_v3": v3,
                "computation_s": sum(computations) / steps,
                "load_s": sum(waits) / steps,
                "steps": steps,
                "seconds": seconds,
            }
        ],
        "batch_read": distribution(reads),
        "batch_wait": distribution(waits),
        "cpu": {
            "seconds": seconds,
            "server_s": None,
            "host_percent": 100.0 * (after[0] - busy[0]) / max(1, after[1] - busy[1]),
            "cores": os.cpu_count(),
        },
        "worker_cpu": sum(cpu.values()),
    }


def machine_time():
    """Busy and total clock ticks of all processors."""
    with open("/proc/stat", encoding="ascii") as file:
        fields = [int(field) for field in file.readline().split()[1:9]]
    return sum(fields) - fields[3] - fields[4], sum(fields)


def distribution(seconds):
    times = sorted(1e6 * value for value in seconds)

    def at(percent):
        return times[min(len(times) - 1, int(len(times) * percent / 100))]

    return {
        "count": len(times),
        "mean_us": sum(times) / len(times),
        "percentiles_us": {
            "p50": at(50),
            "p90": at(90),
            "p99": at(99),
            "p99_9": at(99.9),
            "max": times[-1],
        },
        "by_percent_us": [at(percent - 0.5) for percent in range(1, 101)],
    }


def search(spec):
    """Runs with more and more accelerators, until one misses the target or there are no files."""
    runs = []
    for accelerators in range(1, spec["accelerators"] + 1):
        runs.append(run(spec, accelerators))
        if not runs[-1]["has_passed"]:
            break
    return runs


def result(spec, runs):
    passed = runs[-1]["has_passed"]
    limit = f"there are files for {spec['accelerators']} accelerators"
    with open("/proc/meminfo", encoding="ascii") as file:
        memory = int(file.readline().split()[1]) * 1024
    size = sum(spec["lengths"].values())
    configuration = {
        "workload": spec["workload"],
        "accelerator": spec["accelerator"],
        "files": len(spec["lengths"]),
        "samples_per_file": 1,
        "dataset_bytes": size,
        "epochs": 1,
        "decodes": False,
        "direct": False,
        "is_cacheable": size < 5 * memory,
    }
    for name in ("round", "scale", "record_bytes", "batch", "computation_s", "workers"):
        configuration[name] = spec[name]
    for name in ("prefetch_factor", "seed", "au_target_percent"):
        configuration[name] = spec[name]
    return {
        "version": 1,
        "smbeam": spec["reader"],
        "started": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "label": spec["label"],
        "host": {
            "name": platform.node(),
            "kernel": platform.release(),
            "machine": platform.machine(),
            "cpu": "",
            "cores": os.cpu_count(),
            "memory_bytes": memory,
        },
        "storage": {"location": spec["url"], "session": None, "mount": None},
        "train": {
            "configuration": configuration,
            "runs": runs,
            "is_search": spec["accelerators"] > 1,
            "search_limit": limit if passed and spec["accelerators"] > 1 else None,
        },
        "checkpoint": None,
    }


def main():
    spec = json.loads(sys.argv[1])
    train = f"{spec['files']}/{spec['directory']}"
    with os.scandir(train) as entries:
        spec["lengths"] = {entry.name: entry.stat().st_size for entry in entries}
    value = result(spec, search(spec))
    with open(spec["output"], "w", encoding="utf-8") as file:
        json.dump(value, file)


if __name__ == "__main__":
    main()
