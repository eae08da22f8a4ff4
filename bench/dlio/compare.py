"""The training loop of `smbeam bench ai` beside DLIO, with the same files and parameters.

    smbeam bench ai datagen /srv/share/bench --workload unet3d --scale 0.1 --files 210
    python compare.py /srv/share/bench smb://root@127.0.0.1/share/bench --workers 1 2 4

Each location is a directory or a URL with the files of unet3d. DLIO reads from URLs by the package
`smbeam_dlio`. The password comes from SMBEAM_PASSWORD. The programs take turns.

Prints a table with the medians of all rounds: AU in percent, samples per second by the formula of
round v2, and the difference of `smbeam bench ai` to DLIO in percent of DLIO. The last column is the
time in milliseconds for which an accelerator waits for a batch, of both programs.

Both values of DLIO come from its lists of times, because DLIO 2.0.0 has other formulas: its AU has
the configured computation in place of the measured one, and its throughput has all steps.
"""

import argparse
import datetime
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

#: The data set of unet3d in bytes, and its batch. https://github.com/mlcommons/storage
RECORD, RESIZED, BATCH = 146_600_628, 2_097_152, 7
#: Computation of a step of one h100 in seconds.
COMPUTATION = 0.323
#: Steps that the throughput of round v2 leaves out. The time leaves out one step only.
LEFT_OUT = 2
#: Difference in percent up to which the programs agree.
AGREED = 5


def main():
    options = arguments()
    print(HEAD)
    for location in options.locations:
        files = count_files(location)
        for computation in options.computation or [COMPUTATION * options.scale]:
            for workers in options.workers:
                case = Case(options, location, files, workers, computation)
                rounds = [(engine(case), dlio(case)) for _ in range(options.rounds)]
                show(case, rounds)
                if options.json:
                    save(options.json, case, rounds)


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("locations", nargs="+", metavar="LOCATION")
    parser.add_argument("--smbeam", default="smbeam", help="the command smbeam")
    parser.add_argument("--scale", type=float, default=0.1, help="of the data set")
    parser.add_argument("--workers", type=int, nargs="+", default=[4])
    parser.add_argument("--computation", type=float, nargs="+", help="seconds of a step")
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument(
        "--no-decode",
        action="store_true",
        help="no checksums: of DLIO behind 2.0.0, and over smb:// only",
    )
    parser.add_argument("--json", type=pathlib.Path, help="append all results to this file")
    return parser.parse_args()


class Case:
    """A location, and the parameters that both programs get."""

    def __init__(self, options, location, files, workers, computation):
        self.smbeam, self.scale, self.epochs = options.smbeam, options.scale, options.epochs
        self.location, self.files = location, files
        self.workers, self.computation = workers, computation
        self.is_remote, self.decodes = location.startswith("smb://"), not options.no_decode


class Result:
    """AU in percent, samples per second, and the mean wait for a batch in seconds."""

    def __init__(self, epochs):
        means = map(statistics.fmean, zip(*epochs))
        self.au, self.throughput, self.wait = means


def count_files(location):
    """The count of files of the data set. Makes the directory of validation, which DLIO lists."""
    if location.startswith("smb://"):
        import smbeam

        share = smbeam.Share(location)
        share.makedirs("unet3d/valid", exist_ok=True)
        return len(share.list("unet3d/train"))
    directory = pathlib.Path(location) / "unet3d"
    (directory / "valid").mkdir(exist_ok=True)
    return len(list((directory / "train").iterdir()))


def engine(case):
    """The result of `smbeam bench ai`. It has AU of each epoch even if the steps are few."""
    command = [case.smbeam, "bench", "ai", "train", case.location, "--workload", "unet3d"]
    command += ["--accelerator", "h100", "--round", "v2", "--scale", str(case.scale)]
    command += ["--workers", str(case.workers), "--epochs", str(case.epochs)]
    command += ["--computation-time", str(case.computation), "--json", "-"]
    command += [] if case.decodes else ["--no-decode"]
    epochs = json.loads(run(command))["train"]["runs"][0]["epochs"]
    names = ("au_percent", "samples_per_second_v2", "load_s")
    return Result([[epoch[name] for name in names] for epoch in epochs])


def dlio(case):
    """The result of DLIO with one rank."""
    with tempfile.TemporaryDirectory() as directory:
        run(dlio_command(case, directory))
        # The name of the second file begins with the rank in versions behind 2.0.0.
        names = ("0_output.json", "*per_epoch_stats.json")
        files = [next(pathlib.Path(directory).glob(name)) for name in names]
        times, spans = (json.loads(file.read_text()) for file in files)
    epochs = filter(str.isdecimal, times)
    return Result([dlio_epoch(times[epoch], spans[epoch]["block1"]) for epoch in epochs])


def dlio_command(case, output):
    # The names of lengths have the end `_bytes` in versions behind 2.0.0.
    record, resized = int(RECORD * case.scale), int(RESIZED * case.scale)
    lengths = {"record_length": record, "record_length_resize": resized}
    settings = {
        **{f"dataset.{name}{end}": lengths[name] for name in lengths for end in ("", "_bytes")},
        "dataset.data_folder": "unet3d" if case.is_remote else f"{case.location}/unet3d",
        "dataset.num_files_train": case.files,
        "reader.batch_size": BATCH,
        "reader.read_threads": case.workers,
        "train.epochs": case.epochs,
        "train.computation_time": case.computation,
        "workflow.checkpoint": False,
        "checkpoint.checkpoint_folder": f"{output}/unused",
        "checkpoint.model_size": 1,
    }
    if case.is_remote:
        settings["storage.storage_type"] = "smb"
        settings["storage.storage_root"] = case.location
        settings["checkpoint.checkpoint_folder"] = "unused"
        settings["reader.odirect"] = not case.decodes
    overrides = [f"++workload.{name}={value}" for name, value in settings.items()]
    command = [sys.executable, "-m", "smbeam_dlio", "--stand-ins", "workload=unet3d_h100"]
    return [*command, *overrides, f"hydra.run.dir={output}"]


def dlio_epoch(times, span):
    """AU, samples per second and wait of one epoch, by the formulas of round v2."""
    waits, steps = times["load"]["block1"], times["proc"]["block1"]
    started, ended = (datetime.datetime.fromisoformat(span[name]) for name in ("start", "end"))
    counted = (ended - started).total_seconds() - steps[0]
    computed = sum(step - wait for step, wait in zip(steps[1:], waits[1:]))
    throughput = (len(steps) - LEFT_OUT) / counted * BATCH
    return 100 * computed / counted, throughput, statistics.fmean(waits[1:])


def run(command):
    """The standard output of a program, which must succeed."""
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(command)}\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return done.stdout


HEAD = """\
| location | computation | workers | AU engine | AU DLIO | difference | samples/s engine | \
samples/s DLIO | difference | wait ms |
|---|---|---|---|---|---|---|---|---|---|"""


def show(case, rounds):
    """Prints a line of the table. A difference above the limit has an exclamation mark."""
    cells = ["smb" if case.is_remote else "local", f"{case.computation:.4g} s", str(case.workers)]
    for name, digits in (("au", 1), ("throughput", 2)):
        mine, other = (median(rounds, program, name) for program in (0, 1))
        difference = 100 * (mine - other) / other
        mark = " !" if abs(difference) > AGREED else ""
        cells += [f"{mine:.{digits}f}", f"{other:.{digits}f}", f"{difference:+.1f} %{mark}"]
    cells.append(" / ".join(f"{1000 * median(rounds, it, 'wait'):.1f}" for it in (0, 1)))
    print("|", " | ".join(cells), "|", flush=True)


def median(rounds, program, name):
    return statistics.median(getattr(results[program], name) for results in rounds)


def save(path, case, rounds):
    """Appends the results of all rounds as a line of JSON."""
    parameters = {name: value for name, value in vars(case).items() if name != "smbeam"}
    results = [[vars(result) for result in results] for results in rounds]
    with path.open("a") as file:
        file.write(json.dumps({**parameters, "rounds": results}) + os.linesep)


if __name__ == "__main__":
    main()
