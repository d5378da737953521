"""Aborts."""

import os


def run(x):
    os.abort()
