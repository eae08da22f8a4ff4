"""Files of safetensors: the header first, then tensors in parallel straight into their memory."""

import json
import struct

#: Limit of the header in bytes, as in the reference implementation.
HEADER_MAX = 100_000_000

#: Names of types in a header, and in PyTorch.
_TYPES = {
    "BOOL": "bool",
    "U8": "uint8",
    "I8": "int8",
    "I16": "int16",
    "U16": "uint16",
    "I32": "int32",
    "U32": "uint32",
    "I64": "int64",
    "U64": "uint64",
    "F16": "float16",
    "BF16": "bfloat16",
    "F32": "float32",
    "F64": "float64",
    "F8_E4M3": "float8_e4m3fn",
    "F8_E5M2": "float8_e5m2",
}


def read_header(share, path):
    """Returns the header of a file, and the offset of its data in bytes."""
    with share.open(path, "rb") as file:
        size = file.size()
        first = file.read(8)
        if len(first) < 8:
            raise ValueError(f"{path} is no file of safetensors: it has {size} bytes")
        (length,) = struct.unpack("<Q", first)
        if length > min(HEADER_MAX, size - 8):
            raise ValueError(f"{path} is no file of safetensors: its header has {length} bytes")
        header = json.loads(file.read(length))
    offset = 8 + length
    for name, tensor in header.items():
        if name != "__metadata__":
            _check(path, name, tensor, size - offset)
    return header, offset


def _check(path, name, tensor, size):
    start, end = tensor["data_offsets"]
    if not 0 <= start <= end <= size:
        raise ValueError(f"{path}: the tensor {name} is not within the file")
    if tensor["dtype"] not in _TYPES:
        raise ValueError(f"{path}: the tensor {name} has the unknown type {tensor['dtype']}")


def load_file(share, path, names=None, *, pin_memory=False):
    """Returns the tensors of a file of PyTorch by name. ``names`` selects some of them.

    ``pin_memory`` allocates memory from which a GPU copies without a further copy.
    """
    import torch

    header, offset = read_header(share, path)
    header.pop("__metadata__", None)
    names = list(header if names is None else names)
    tensors, ranges = {}, []
    for name in names:
        start, end = header[name]["data_offsets"]
        dtype = getattr(torch, _TYPES[header[name]["dtype"]])
        tensor = torch.empty(header[name]["shape"], dtype=dtype, pin_memory=pin_memory)
        if tensor.numel() * tensor.element_size() != end - start:
            raise ValueError(f"{path}: shape and length of the tensor {name} differ")
        tensors[name] = tensor
        if end > start:
            ranges.append((name, (path, offset + start, offset + end)))
    buffers = [tensors[name] for name, _ in ranges]
    share.fill_ranges([each for _, each in ranges], buffers)
    return tensors
