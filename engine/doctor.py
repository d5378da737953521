"""What works on this machine, what does not, and what to do about it. Changes nothing and never raises: a question that cannot be
asked is an answer too."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import msgspec

from ..events.mounts import NETWORK, holding
from .surroundings import Surroundings

State = Literal["works", "warning", "absent", "broken", "unknown"]

_DOUBTFUL = ("9p", "fuse", "virtiofs")
PACKAGES = {"click": (8, 1), "msgspec": (0, 19), "sqlite-utils": (4, 2), "rich": (13, 7)}
_WAL_RESET_FIXED = (3, 51, 3)
_DRIVER_FOR_CUDA_13 = 580
_LITTLE, _NONE = 1 << 30, 64 << 20
_CAPABILITIES = {21: "CAP_SYS_ADMIN", 38: "CAP_PERFMON"}
_SLOWED = {0x4: "power cap", 0x8: "hardware slowdown", 0x20: "thermal", 0x40: "hardware thermal", 0x80: "power brake"}
_GPU_FIELDS = "name,driver_version,persistence_mode,mig.mode.current,clocks.sm,clocks.max.sm,temperature.gpu"
_REASONS = ("clocks_event_reasons.active", "clocks_throttle_reasons.active")
_IMPORT = (
    "import torch, triton; print('torch', torch.__version__, 'of CUDA', torch.version.cuda, 'triton', triton.__version__, "
    "'GPUs', torch.cuda.device_count() if torch.cuda.is_available() else 0)"
)


class Line(msgspec.Struct, frozen=True):
    """One thing looked at. `needed`: without it neither a recorded run nor a verification works here."""

    name: str
    state: State
    found: str
    advice: str = ""
    needed: bool = False


class Examined(msgspec.Struct, frozen=True):
    """All lines, and what follows: whether a recorded run and a verification work, and whether measuring does."""

    lines: tuple[Line, ...]
    recorded: bool
    measured: bool


def examine(here: Surroundings) -> Examined:
    """Ask everything, in the order in which a person would put it right."""
    lines = [_asked(name, needed, question, here) for name, needed, question in _QUESTIONS]
    states = {line.name: line.state for line in lines}
    recorded = all(line.state != "broken" for line in lines if line.needed)
    measured = recorded and all(states[name] in ("works", "warning") for name in ("GPU driver", "torch and triton"))
    return Examined(tuple(lines), recorded, measured)


def _asked(name: str, needed: bool, question: Callable[[Surroundings], Line], here: Surroundings) -> Line:
    try:
        return msgspec.structs.replace(question(here), name=name, needed=needed)
    except Exception as error:  # noqa: BLE001 - whatever a machine answers, the other lines are still of use
        said = f"could not be looked at: {type(error).__name__}: {error}"
        return Line(name, "unknown", said, "Nothing follows from this line.", needed)


def _line(state: State, found: str, advice: str = "") -> Line:
    return Line("", state, found, advice)


# --- what recorded runs and verification need -------------------------------------------------------------------------


def _python(here: Surroundings) -> Line:
    found = here.python()
    said = ".".join(map(str, found))
    return _line("works", said) if found >= (3, 11) else _line("broken", said, "Use Python 3.11 or newer.")


def _sqlite(here: Surroundings) -> Line:
    found = here.sqlite()
    said = ".".join(map(str, found))
    if found < (3, 37):
        return _line("broken", f"{said}, expected 3.37 or newer", "Use a Python built with a newer SQLite.")
    if found < _WAL_RESET_FIXED:
        return _line(
            "warning",
            f"{said}: 3.7.0 to 3.51.2 can corrupt a WAL database that two connections write or checkpoint at once",
            "A ledger has one writer, with a lock, which alone checkpoints. Do not write into a ledger in use with another "
            "program; a Python with SQLite 3.51.3 or newer is free of it (a distribution may have mended an older one).",
        )
    return _line("works", said)


def _packages(here: Surroundings) -> Line:
    found = {name: here.package(name) for name in PACKAGES}
    said = ", ".join(f"{name} {version or 'absent'}" for name, version in found.items())
    ill = [name for name, least in PACKAGES.items() if _numbers(found[name] or "") < least]
    if not ill:
        return _line("works", said)
    wanted = " ".join(f"'{name}>={'.'.join(map(str, PACKAGES[name]))}'" for name in ill)
    return _line("broken", said, f"pip install {wanted}")


def _numbers(version: str) -> tuple[int, ...]:
    """The leading numbers of a version; none of an absent one."""
    parts = version.split(".")
    digits = ["".join(c for c in part if c.isdigit()) for part in parts]
    return tuple(int(part) for part in digits if part)[:3]


def _file_system(here: Surroundings) -> Line:
    table = here.read("/proc/self/mountinfo")
    found = None if table is None else holding(table, str(here.folder))
    if found is None:
        return _line("unknown", f"{here.folder}: its type is not told here", "Keep a ledger in use on a local disk.")
    if found in NETWORK:
        return _line(
            "warning",
            f"{here.folder} lies on {found}, a network file system",
            "No ledger is written here. Run with --ledger on a local disk and copy the file over when the run has ended; "
            "reading and verifying a closed ledger here is safe.",
        )
    if found.partition(".")[0] in _DOUBTFUL:
        said = f"{here.folder} lies on {found}, which may keep locks and fsync or may not"
        return _line("warning", said, "Keep a ledger that matters on a local disk (ext4, xfs, btrfs, apfs, ...).")
    return _line("works", f"{here.folder} lies on {found}")


def _ledger(here: Surroundings) -> Line:
    answer = here.trial()
    if answer.status == 0:
        return _line("works", f"a ledger was made, locked, written durably, closed and read again in {here.folder}")
    last = answer.text.strip().splitlines()[-1:] or ["no words"]
    return _line(
        "broken",
        f"in {here.folder} no ledger can be written: {last[0]}",
        "Go to a folder on a local disk that you may write to, or name one with --ledger.",
    )


def _disk(here: Surroundings) -> Line:
    free = here.free_bytes()
    said = f"{free / 1e9:.1f} GB free at {here.folder}"
    if free < _NONE:
        return _line(
            "broken", said, "Make room: a run needs a few MB, and a full disk ends it (nothing committed is lost)."
        )
    return _line("works", said) if free >= _LITTLE else _line("warning", said, "Make room before a long run.")


# --- what measuring needs ---------------------------------------------------------------------------------------------


def _query(here: Surroundings, fields: str) -> list[list[str]] | None:
    """One list of values for each GPU; None where nvidia-smi does not answer so."""
    if here.tool("nvidia-smi") is None:
        return None
    answer = here.ask(["nvidia-smi", f"--query-gpu={fields}", "--format=csv,noheader,nounits"], 20)
    if answer.status != 0:
        return None
    return [[cell.strip() for cell in line.split(",")] for line in answer.text.splitlines() if line.strip()]


def _driver(here: Surroundings) -> Line:
    found = _query(here, _GPU_FIELDS)
    if found is None:
        module = (here.read("/proc/driver/nvidia/version") or "").partition("\n")[0]
        if module:
            return _line(
                "broken", f"the kernel module is there ({module}), nvidia-smi does not answer", "Run nvidia-smi."
            )
        return _line(
            "absent", "no NVIDIA driver", "Recorded runs and verification need none. To measure: a GPU and its driver."
        )
    said = "; ".join(f"{gpu[0]}, driver {gpu[1]}, MIG {gpu[3]}" for gpu in found)
    if not found:
        return _line("broken", "the driver sees no GPU", "Run nvidia-smi -L; in a container, pass the GPU in.")
    if min(_numbers(gpu[1])[:1] or (0,) for gpu in found) < (_DRIVER_FOR_CUDA_13,):
        return _line("warning", said, f"CUDA 13 and its CUPTI need driver {_DRIVER_FOR_CUDA_13} or newer; update it.")
    return _line("works", said)


def _clocks(here: Surroundings) -> Line:
    found = _query(here, _GPU_FIELDS)
    if not found:
        return _line("absent", "no GPU whose clocks could be read")
    said = "; ".join(f"SM {g[4]} of {g[5]} MHz, {g[6]} C, persistence {g[2]}" for g in found) + " (read, not set)"
    reasons = next((r for name in _REASONS if (r := _query(here, name)) is not None), [])
    bits = [int(row[0], 16) for row in reasons if row and row[0].startswith("0x")]
    slowed = sorted({word for bit, word in _SLOWED.items() for found_bits in bits if found_bits & bit})
    if slowed:
        return _line(
            "warning", f"{said}; slowed by {', '.join(slowed)}", "Wait until it is cool and idle, then measure."
        )
    if any(gpu[2] == "Disabled" for gpu in found):
        return _line("warning", said, "Without persistence each start waits for the driver: nvidia-smi -pm 1, as root.")
    return _line("works", said)


def _permission(here: Surroundings) -> Line:
    parameters = here.read("/proc/driver/nvidia/params")
    if parameters is None:
        return _line("absent", "no NVIDIA driver to ask")
    admin_only = "RmProfilingAdminOnly: 1" in parameters
    held = _capabilities(here.read("/proc/self/status") or "")
    if not admin_only:
        return _line("works", "every user may read counters")
    if held:
        return _line("works", f"for administrators only, and this process has {' and '.join(held)}")
    return _line(
        "broken",
        "counters are for administrators only, and this process is none",
        "Load the module with NVreg_RestrictProfilingToAdminUsers=0 (a file in /etc/modprobe.d, then reboot), or run with "
        "CAP_SYS_ADMIN. Without counters runs work in tier `compiled`: rules that need counters abstain.",
    )


def _capabilities(status: str) -> list[str]:
    for line in status.splitlines():
        if line.startswith("CapEff:"):
            bits = int(line.split()[1], 16)
            return [name for bit, name in _CAPABILITIES.items() if bits >> bit & 1]
    return []


def _cupti(here: Surroundings) -> Line:
    version, files = here.package("nvidia-cuda-cupti"), here.cupti()
    if files:
        return _line("works", f"{version or 'of unknown version'}, {files[0]}")
    return _line(
        "absent",
        f"nvidia-cuda-cupti {version or 'is not installed'}, no libcupti.so.13 among the wheels",
        "pip install 'gpusolver[gpu]' brings it with torch. Without it rules that need counters abstain.",
    )


def _ncu(here: Surroundings) -> Line:
    path = here.tool("ncu")
    if path is None:
        return _line(
            "absent", "ncu is not on the PATH", "Needed for `explain --ncu` alone; it comes with the CUDA toolkit."
        )
    answer = here.ask([path, "--version"], 30)
    said = next((line.strip() for line in answer.text.splitlines() if "ersion" in line), answer.text.strip()[:200])
    return (
        _line("works", f"{path}: {said}")
        if answer.status == 0
        else _line("broken", f"{path}: {said}", "Run it by hand.")
    )


def _signing(here: Surroundings) -> Line:
    version = here.package("cryptography")
    if version is not None:
        return _line("works", f"cryptography {version}")
    return _line(
        "absent",
        "cryptography is not installed",
        "Needed to sign seals and to check signatures (--vkey): pip install 'gpusolver[seal]'. A checkpoint kept elsewhere works "
        "without.",
    )


def _torch(here: Surroundings) -> Line:
    versions = {name: here.package(name) for name in ("torch", "triton")}
    said = ", ".join(f"{name} {version or 'absent'}" for name, version in versions.items())
    if None in versions.values():
        advice = "pip install 'gpusolver[gpu]'. Recorded runs and verification need neither."
        return _line("absent", said, advice)
    answer = here.ask_python(_IMPORT, 120)
    if answer.status != 0:
        last = answer.text.strip().splitlines()[-1:] or ["no words"]
        return _line(
            "broken", f"{said}: they do not load: {last[0]}", "Install matching versions: pip install 'gpusolver[gpu]'."
        )
    loaded = answer.text.strip().splitlines()[-1]
    if loaded.endswith("GPUs 0"):
        return _line(
            "warning", f"{loaded}: no GPU for them", "To measure: a GPU, its driver, and a torch built for CUDA."
        )
    return _line("works", loaded)


_QUESTIONS: tuple[tuple[str, bool, Callable[[Surroundings], Line]], ...] = (
    ("Python", True, _python),
    ("SQLite", True, _sqlite),
    ("packages", True, _packages),
    ("file system", False, _file_system),
    ("ledger and locks", True, _ledger),
    ("free disk", True, _disk),
    ("GPU driver", False, _driver),
    ("clocks", False, _clocks),
    ("counters permission", False, _permission),
    ("CUPTI", False, _cupti),
    ("ncu", False, _ncu),
    ("signing", False, _signing),
    ("torch and triton", False, _torch),
)
