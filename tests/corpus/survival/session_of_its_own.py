"""Leaves a grandchild in a session of its own and ends."""

import os
import time


def run(x):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            time.sleep(1e6)
        os._exit(0)
    os._exit(1)
