"""Static instruction counts of a call's machine code, disassembled. Runs the call once to see its launches; times nothing."""

from __future__ import annotations

import hashlib
import importlib.util
import pathlib
import shutil
import subprocess
import tempfile

import msgspec

from ...profilers.sass import instruction_mix
from . import switches
from .device import AnyDevice
from .inputs import draw
from .launches import record_launches
from .loading import load_run
from .protocol import Extra
from .refusals import ExtraFailed, ExtraUnsupported

_LIMIT_S = 30.0


def compiled(device: AnyDevice, request: Extra) -> bytes:
    """The `compiled` artifact. Refused unless every kernel's code is at hand: a count over some of them would be too low."""
    run, inputs = load_run(request.source), draw(device, request.subject, 0)
    with switches.strict():
        launches, blobs = record_launches(device, lambda: run(*inputs))
    listed = msgspec.json.decode(launches)
    lacking = [kernel["name"] for kernel in listed["kernels"] if not kernel["code"]]
    if lacking or not listed["complete"] or not listed["kernels"]:
        what = f"no machine code of {', '.join(lacking[:3])}" if lacking else "the launches are not all known"
        raise ExtraUnsupported(f"{what}: only what Triton compiles can be read")
    tool, code = (
        nvdisasm(),
        {hashlib.sha256(blob).hexdigest(): blob for media, blob in blobs if media == "application/x-cubin"},
    )
    used = dict.fromkeys(kernel["code"] for kernel in listed["kernels"])
    kernels = [{"code": name, "mix": instruction_mix(disassemble(tool, code[name]))} for name in used]
    return msgspec.json.encode({"tool": _version(tool), "kernels": kernels})


def nvdisasm() -> str:
    """The disassembler that Triton brings along, else the one on PATH."""
    spec = importlib.util.find_spec("triton")
    for root in (spec.submodule_search_locations or []) if spec is not None else []:
        found = pathlib.Path(root, "backends", "nvidia", "bin", "nvdisasm")
        if found.exists():
            return str(found)
    on_path = shutil.which("nvdisasm")
    if on_path is None:
        raise ExtraUnsupported("nvdisasm is neither in Triton's folder nor on PATH: install CUDA's binary utilities")
    return on_path


def disassemble(tool: str, cubin: bytes) -> str:
    """The code section of a cubin as nvdisasm prints it."""
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(cubin)
        file.flush()
        return _run([tool, "-c", file.name])


def _version(tool: str) -> str:
    words = [line for line in _run([tool, "--version"]).splitlines() if "release" in line]
    return f"nvdisasm {words[0].split('release', 1)[1].strip()}" if words else "nvdisasm"


def _run(command: list[str]) -> str:
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=_LIMIT_S)
    if done.returncode != 0:
        raise ExtraFailed(f"{command[0]} ended with {done.returncode}: {(done.stderr or done.stdout)[:500]}")
    return done.stdout
