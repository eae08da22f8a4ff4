"""One process of a distributed checkpoint.

    python checkpoint_rank.py RANK RANKS STORE ACTION URL VALUE

The processes meet at the file STORE. ACTION is ``save``, ``async_save`` or ``load``; all parts of
the state have the value VALUE, which ``load`` compares.
"""

import os
import sys

import torch
from torch import distributed
from torch.distributed import checkpoint as dcp
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Shard, distribute_tensor

from smbeam import checkpoint

#: Count of tensors, and their shape: 4 MiB each, and not divisible by the ranks.
TENSORS, SHAPE = 24, (1027, 1021)


def state(mesh, value):
    """Tensors that all ranks hold in parts, one that each holds, and a number."""
    parts = {
        f"layer{index}": distribute_tensor(torch.full(SHAPE, value + index), mesh, [Shard(0)])
        for index in range(TENSORS)
    }
    return {"parts": parts, "whole": torch.full((5,), value), "step": int(value)}


def main():
    rank, ranks, store, action, url, value = sys.argv[1:]
    rank, ranks, value = int(rank), int(ranks), float(value)
    distributed.init_process_group(
        "gloo", init_method=f"file://{store}", rank=rank, world_size=ranks
    )
    mesh = init_device_mesh("cpu", (ranks,))
    password = os.environ["SMBEAM_TEST_PASSWORD"]
    if action == "load":
        found = state(mesh, -100.0)
        dcp.load(found, storage_reader=checkpoint.Reader(url, password=password))
        for index in range(TENSORS):
            part = found["parts"][f"layer{index}"].to_local()
            assert (part == value + index).all(), f"layer {index} has other values"
        assert (found["whole"] == value).all() and found["step"] == int(value)
    else:
        writer = checkpoint.Writer(url, password=password)
        if action == "async_save":
            dcp.async_save(state(mesh, value), storage_writer=writer).result()
        else:
            dcp.save(state(mesh, value), storage_writer=writer)
    distributed.destroy_process_group()


if __name__ == "__main__":
    main()
