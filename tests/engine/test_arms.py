"""Which worker runs which sources, on workers that are made up and note what they are asked."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from gpusolver.engine import arms as module
from gpusolver.engine import refereed
from gpusolver.engine.arms import Arms
from gpusolver.engine.worker.protocol import Reply


class FakeServer:
    """Numbers the workers that were made with it; those in `broken` do not come up."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.made: list[FakeWorker] = []
        self.log: list[str] = []
        self.broken: set[int] = set()


class FakeWorker:
    """Stands in for WorkerProcess: `pid` is its number from 1 on, None once it has ended."""

    def __init__(self, server: FakeServer, warm: bool = False) -> None:
        assert warm
        server.made.append(self)
        self.number = len(server.made)
        self.pid: int | None = self.number
        self._server = server
        server.log.append(f"start {self.number}")

    def hello(self) -> Reply:
        self._server.log.append(f"wait {self.number}")
        return Reply(status="no_device" if self.number in self._server.broken else "ok")

    def alive(self) -> bool:
        return self.pid is not None and self.number not in self._server.broken

    def kill(self) -> None:
        self._server.log.append(f"kill {self.number}")
        self.pid = None


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[FakeServer]:
    monkeypatch.setattr(module, "WorkerProcess", FakeWorker)
    yield FakeServer(tmp_path)


def opened(server: FakeServer, spares: int = 1) -> Arms:
    return Arms(server, spares)  # type: ignore[arg-type]


def number(worker: object) -> int:
    assert isinstance(worker, FakeWorker)
    return worker.number


def alive(server: FakeServer) -> list[int]:
    return [worker.number for worker in server.made if worker.pid is not None]


def test_nothing_runs_before_it_is_asked(server: FakeServer) -> None:
    arms = opened(server)
    assert arms.pid is None and server.made == []
    arms.settle()
    arms.close()
    assert server.made == []


def test_a_worker_and_a_spare(server: FakeServer) -> None:
    arms = opened(server)
    assert number(arms.alone({"a"})) == 1 == arms.pid
    assert alive(server) == [1, 2]


@pytest.mark.parametrize(
    ("asked", "workers"),
    [
        (["alone a", "alone a", "beside a"], [1, 1, 1]),
        (["alone a", "alone b", "alone a"], [1, 2, 3]),  # the first one has ended
        (["alone a", "alone ab", "alone b"], [1, 1, 2]),  # a pair may be timed where one of it was gated
        (["alone ab", "alone a"], [1, 2]),
        (["alone ab", "alone abc", "alone ab"], [1, 1, 2]),
        (["alone ab", "alone ac"], [1, 2]),
        (["alone ab", "beside a", "beside b", "alone ab"], [1, 1, 1, 1]),
        (["alone ab", "beside c", "beside a"], [1, 2, 3]),
        (["beside a", "alone a", "alone b"], [1, 1, 2]),
    ],
)
def test_who_runs_what(server: FakeServer, asked: list[str], workers: list[int]) -> None:
    arms, found = opened(server), []
    for word in asked:
        how, _, sources = word.partition(" ")
        found.append(number(arms.alone(set(sources)) if how == "alone" else arms.beside(sources)))
    assert found == workers
    assert alive(server) == [workers[-1], workers[-1] + 1]


def test_the_one_before_has_ended_when_the_next_is_used_and_another_spare_starts(server: FakeServer) -> None:
    """It held the counters, and may have left files: both are free before anything else is asked."""
    arms = opened(server)
    arms.alone({"a"})
    del server.log[:]
    arms.alone({"b"})
    log = server.log
    assert log.index("kill 1") < log.index("wait 2") < log.index("start 3")


def test_three_spares_are_made_when_the_last_is_in_use_all_at_once(server: FakeServer) -> None:
    arms = opened(server, spares=3)
    taken = [number(arms.alone({source})) for source in "abcde"]
    assert taken == [1, 2, 3, 4, 5]
    started = [line for line in server.log if line.startswith(("start", "kill"))]
    assert started == [
        *("start 1", "start 2", "start 3", "start 4"),
        *("kill 1", "kill 2", "kill 3", "start 5", "start 6", "start 7", "kill 4"),
    ]
    del server.log[:]
    arms.settle()
    assert server.log == ["wait 6", "wait 7"]
    arms.close()
    assert alive(server) == []


@pytest.mark.parametrize(("device", "cores", "most"), [("cuda", 64, 5), ("cuda", 8, 2), ("cuda", 2, 1), ("cpu", 64, 1)])
def test_a_spare_for_every_three_cores_and_one_where_there_is_no_gpu(
    monkeypatch: pytest.MonkeyPatch, device: str, cores: int, most: int
) -> None:
    monkeypatch.setattr("os.cpu_count", lambda: cores)
    assert refereed._spares(device) == most


def test_of_three_spares_those_that_did_not_come_up_are_passed_over(server: FakeServer) -> None:
    server.broken = {2, 3}
    arms = opened(server, spares=3)
    arms.alone({"a"})
    assert number(arms.alone({"b"})) == 4
    assert alive(server) == [4, 5, 6, 7]


def test_to_settle_is_to_wait_for_the_spare_alone(server: FakeServer) -> None:
    arms = opened(server)
    arms.alone({"a"})
    del server.log[:]
    arms.settle()
    assert server.log == ["wait 2"]


def test_a_worker_that_has_ended_is_replaced_even_for_its_own_source(server: FakeServer) -> None:
    arms = opened(server)
    arms.alone({"a"}).kill()
    assert arms.pid is None
    assert number(arms.beside("a")) == 2
    arms.alone({"a"}).kill()
    assert number(arms.alone({"a"})) == 3


def test_a_spare_that_did_not_come_up_is_ended_and_passed_over(server: FakeServer) -> None:
    server.broken = {2}
    arms = opened(server)
    arms.alone({"a"})
    assert number(arms.alone({"b"})) == 3
    assert "kill 2" in server.log and alive(server) == [3, 4]


def test_a_spare_that_was_killed_is_passed_over(server: FakeServer) -> None:
    arms = opened(server)
    arms.alone({"a"})
    server.made[1].pid = None
    assert number(arms.alone({"b"})) == 3


def test_to_close_is_to_end_both_and_what_ran_is_forgotten(server: FakeServer) -> None:
    arms = opened(server)
    arms.alone({"a"})
    arms.close()
    assert alive(server) == [] and arms.pid is None
    assert number(arms.alone({"b"})) == 3
    arms.close()
    arms.close()
    assert alive(server) == []


# --- what compilers left on disk --------------------------------------------------------------------------------------


def left(server: FakeServer) -> dict[str, str]:
    """What the next compiler finds."""
    return {path.name: path.read_text() for path in (server.folder / "triton").rglob("*") if path.is_file()}


def leave(server: FakeServer, name: str, text: str) -> None:
    (server.folder / "triton").mkdir(exist_ok=True)
    (server.folder / "triton" / name).write_text(text)


def test_a_source_finds_again_what_it_left_and_nothing_that_another_left(server: FakeServer) -> None:
    arms = opened(server)
    arms.alone({"a"})
    leave(server, "of a", "1")
    arms.alone({"b"})
    assert left(server) == {}
    leave(server, "of b", "2")
    arms.alone({"a"})
    assert left(server) == {"of a": "1"}


def test_a_pair_finds_what_both_left_alone_and_what_it_leaves_is_for_nobody(server: FakeServer) -> None:
    arms = opened(server)
    arms.alone({"a"})
    leave(server, "of a", "1")
    arms.alone({"b"})
    leave(server, "of b", "2")
    leave(server, "of a", "by b")  # a key that is not its own
    arms.alone({"a", "b"})
    assert left(server) == {"of a": "1", "of b": "2"}  # its own entry is laid out over the other's
    leave(server, "of a", "by b again")
    arms.alone({"c"})
    assert left(server) == {}
    arms.alone({"a"})
    assert left(server) == {"of a": "1"}


def test_what_was_there_before_any_candidate_is_there_for_all_as_it_was(server: FakeServer) -> None:
    leave(server, "driver library", "built at the start")
    arms = opened(server)
    arms.alone({"a"})
    leave(server, "driver library", "by a")
    arms.alone({"b"})
    assert left(server) == {"driver library": "built at the start"}


def test_a_profiler_in_a_process_of_its_own_finds_what_its_sources_left(server: FakeServer) -> None:
    arms = opened(server)
    arms.alone({"a"})
    leave(server, "of a", "1")
    arms.alone({"b"})
    arms.close(after=["a"])
    assert left(server) == {"of a": "1"}
