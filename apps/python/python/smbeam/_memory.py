"""Buffers of arrays and tensors."""


def view(target):
    """Returns an object with the buffer protocol for the memory of ``target``.

    ``target`` is a bytearray, a memoryview, a NumPy array, or a tensor of PyTorch in the memory of
    the host. A tensor may be pinned.
    """
    if hasattr(target, "data_ptr") and hasattr(target, "untyped_storage"):
        return _of_tensor(target)
    if hasattr(target, "data_ptr") and hasattr(target, "storage"):
        return _of_tensor(target)
    return target


def _of_tensor(tensor):
    if tensor.device.type != "cpu":
        raise ValueError(f"the tensor is on {tensor.device}: read into host memory first")
    if not tensor.is_contiguous():
        raise ValueError("the tensor is not contiguous")
    import torch

    # Types that NumPy lacks, such as bfloat16, have bytes as well.
    flat = tensor.detach().reshape(-1)
    return flat.view(torch.uint8).numpy() if flat.numel() else bytearray()
