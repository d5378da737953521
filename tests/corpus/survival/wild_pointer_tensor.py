"""Returns a tensor over memory that is given back before it is read, so that reading it is a segmentation fault."""

import ctypes
import mmap

import torch

PRECISION = "ieee"
libc = ctypes.CDLL(None)
libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]


def run(x) -> torch.Tensor:
    size = (x.numel() * 4 + mmap.PAGESIZE - 1) // mmap.PAGESIZE * mmap.PAGESIZE
    region = mmap.mmap(-1, size)
    memory = (ctypes.c_float * x.numel()).from_buffer(region)
    y = torch.frombuffer(memory, dtype=torch.float32).view(x.shape)
    libc.munmap(ctypes.addressof(memory), size)
    return y
