"""Creates 10,000 streams through the driver and keeps them."""

import ctypes

import torch

PRECISION = "ieee"
streams = []


def run(x) -> torch.Tensor:
    driver = ctypes.CDLL("libcuda.so.1")
    while len(streams) < 10000:
        stream = ctypes.c_void_p()
        code = driver.cuStreamCreate(ctypes.byref(stream), ctypes.c_uint(1))
        if code:
            raise RuntimeError(f"cuStreamCreate gave {code} after {len(streams)} streams")
        streams.append(stream)
    return torch.softmax(x, dim=-1)
