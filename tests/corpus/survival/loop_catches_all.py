"""An endless loop that catches every exception, KeyboardInterrupt and SystemExit included."""

import time

import torch

PRECISION = "ieee"


def run(x) -> torch.Tensor:
    while True:
        try:
            time.sleep(0.01)
        except BaseException:
            continue
