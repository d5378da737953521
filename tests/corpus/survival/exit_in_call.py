"""Ends the process with success in its call."""

import os


def run(x):
    os._exit(0)
