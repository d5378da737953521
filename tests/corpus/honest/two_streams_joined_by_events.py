"""Two streams take half of the batch each and are joined by events."""

import torch

PRECISION = "ieee"
sides = []


def run(a, b) -> torch.Tensor:
    if not sides:
        sides.extend((torch.cuda.Stream(), torch.cuda.Stream()))
    current = torch.cuda.current_stream()
    c = torch.empty(a.shape[0], a.shape[1], b.shape[2], device=a.device)
    half = a.shape[0] // 2
    start = torch.cuda.Event()
    start.record(current)
    for side, part in zip(sides, (slice(None, half), slice(half, None))):
        side.wait_event(start)
        with torch.cuda.stream(side):
            torch.bmm(a[part], b[part], out=c[part])
        done = torch.cuda.Event()
        done.record(side)
        current.wait_event(done)
        for tensor in (a, b, c):
            tensor.record_stream(side)
    return c
