"""Kills its process group."""

import os
import signal


def run(x):
    os.killpg(0, signal.SIGKILL)
