"""A CUDA C++ kernel compiled by NVRTC and launched on torch's current stream."""

import ctypes

import torch
from cuda.bindings import driver, nvrtc

LOADED = {}


def checked(result):
    if int(result[0]) != 0:
        raise RuntimeError(f"CUDA call failed: {result[0]!r}")
    return result[1] if len(result) == 2 else None


def machine_code(code, architecture, config):
    """`code` for one architecture, every number of `config` a macro."""
    options = [f"--gpu-architecture={architecture}", "--std=c++17"]
    options += [f"-D{name}={value}" for name, value in config.items()]
    program = checked(nvrtc.nvrtcCreateProgram(code.encode(), b"planted.cu", 0, [], []))
    (status,) = nvrtc.nvrtcCompileProgram(program, len(options), [option.encode() for option in options])
    if int(status) != 0:
        log = b" " * checked(nvrtc.nvrtcGetProgramLogSize(program))
        nvrtc.nvrtcGetProgramLog(program, log)
        raise RuntimeError(log.decode(errors="replace"))
    cubin = b" " * checked(nvrtc.nvrtcGetCUBINSize(program))
    checked(nvrtc.nvrtcGetCUBIN(program, cubin))
    return cubin


def loaded(code, name, shared):
    """The kernel `name` on the current device, allowed `shared` bytes of dynamic shared memory."""
    if name not in LOADED:
        architecture = "sm_{}{}".format(*torch.cuda.get_device_capability())
        module = checked(driver.cuModuleLoadData(machine_code(code, architecture, CONFIG)))
        function = checked(driver.cuModuleGetFunction(module, name.encode()))
        most = driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
        checked(driver.cuFuncSetAttribute(function, most, shared))
        LOADED[name] = function
    return LOADED[name]


def launch(code, name, grid, block, shared, *arguments):
    """One launch; a tensor goes as its address, a float as 32 bits, an int as 32 bits."""
    kinds = {torch.Tensor: ctypes.c_void_p, float: ctypes.c_float, int: ctypes.c_int}
    values = tuple(a.data_ptr() if type(a) is torch.Tensor else a for a in arguments)
    types = tuple(kinds[type(a)] for a in arguments)
    stream = driver.CUstream(torch.cuda.current_stream().cuda_stream)
    function = loaded(code, name, shared)
    checked(driver.cuLaunchKernel(function, *grid, *block, shared, stream, (values, types), 0))
