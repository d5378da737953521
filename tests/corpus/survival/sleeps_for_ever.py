"""Never returns, asleep."""

import time


def run(x):
    time.sleep(1e9)
