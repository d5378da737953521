"""Kills itself with SIGKILL."""

import os
import signal


def run(x):
    os.kill(os.getpid(), signal.SIGKILL)
