"""Sets the limit of open files to zero."""

import resource

resource.setrlimit(resource.RLIMIT_NOFILE, (0, 0))


def run(x):
    return open('/dev/null')
