"""Leaves a lock file in Triton's cache and fails."""

import os
import pathlib


def run(x):
    folder = pathlib.Path(os.environ.get('TRITON_CACHE_DIR', '/tmp'), 'stale')
    folder.mkdir(parents=True, exist_ok=True)
    (folder / 'lock').touch()
    raise RuntimeError('left a lock')
