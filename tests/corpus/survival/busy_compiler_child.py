"""Waits at import for a child with a busy grandchild, as a compiler driver would; both end by themselves after a minute."""

import subprocess
import sys

PRECISION = "ieee"
BUSY = "import time\nend = time.time() + 60\nwhile time.time() < end: pass"
DRIVER = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {BUSY!r}])"
subprocess.run([sys.executable, "-c", DRIVER])
while True:
    subprocess.run(["/bin/sleep", "600"])
