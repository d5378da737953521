"""Its exception cannot be printed."""

class Mute(Exception):
    def __str__(self):
        raise ValueError


def run(x):
    raise Mute
