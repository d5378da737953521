"""Never returns, busy in Python."""

def run(x):
    while True:
        pass
