"""gpusolver: faster GPU kernels by measured, replayable rules. This folder only ties the rooms together."""

import os

__version__ = "0.1.0"

if os.path.isfile(os.path.join(__path__[0], "engine")):
    raise ImportError(
        f"gpusolver at {__path__[0]} was unpacked without symbolic links: expected the folder 'engine', found a small text file. "
        "Clone with core.symlinks=true, or install from the wheel or the .tar.gz."
    )
