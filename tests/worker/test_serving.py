"""What a worker says of a fault of its own: quoted by its beginning, it still says what went wrong."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")
pytestmark = pytest.mark.torch_cpu

from gpusolver.engine.worker import serving
from gpusolver.engine.worker.device import CpuDevice


def fault(depth: int) -> ValueError:
    """An error from so deep that its message stands far behind the beginning of its traceback."""

    def deeper(left: int) -> None:
        if not left:
            raise ValueError("expected 4096 bytes, found 17")
        deeper(left - 1)

    try:
        deeper(depth)
    except ValueError as error:
        return error
    raise AssertionError


def test_a_fault_says_first_what_went_wrong_and_then_where(capsys: pytest.CaptureFixture[str]) -> None:
    reply = serving._fault(CpuDevice(), fault(60))
    assert (reply.status, reply.exiting) == ("request_failed", False)
    assert reply.text.splitlines()[0] == "ValueError: expected 4096 bytes, found 17"
    assert "in deeper" in reply.text and len(reply.text) < 5000
    assert "expected 4096 bytes" in capsys.readouterr().err  # the log has it as well


def test_a_device_that_cannot_be_opened_and_a_context_that_is_lost_have_words_of_their_own() -> None:
    class Lost(CpuDevice):
        def synchronize(self) -> None:
            raise RuntimeError("context is destroyed")

    assert serving._fault(None, fault(0)).status == "no_device"
    lost = serving._fault(Lost(), fault(0))
    assert (lost.status, lost.exiting) == ("context_lost", True) and lost.text.startswith("ValueError: expected 4096")
