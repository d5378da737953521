"""Several files in one import: which they are, what is left out, and that one file's fault is not the next one's."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from gpusolver.engine.importing import imported
from gpusolver.events.errors import BadInput, ToolFailed
from gpusolver.problems.imported import find
from gpusolver.problems.probing import CPU, Prober

from . import modules

HANGS = modules.CHAIN + "\nimport time\ntime.sleep(60)\n"
# Says on every descriptor that it has what it has not, and ends without an answer.
SPEAKS = modules.CHAIN + (
    "\nimport os\nfor descriptor in range(1, 64):\n    try:\n        os.write(descriptor, b'ended\\n')\n"
    "    except OSError:\n        pass\nos._exit(3)\n"
)


def level(folder: Path, **texts: str) -> Path:
    """A clone with these files in its level 1."""
    root = folder / "KernelBench" / "level1"
    root.mkdir(parents=True)
    for name, text in texts.items():
        (root / f"{name.removeprefix('_')}.py").write_text(text)
    return folder


def test_the_first_of_a_level_are_those_of_the_smallest_digests(tmp_path: Path) -> None:
    """Of a path within the clone, by hashlib: nobody chooses."""
    clone = level(tmp_path, **{f"_{n}_Some": "" for n in range(1, 8)})
    digests = {hashlib.sha256(f"KernelBench/level1/{n}_Some.py".encode()).hexdigest(): n for n in range(1, 8)}
    expected = [f"{digests[digest]}_Some.py" for digest in sorted(digests)]
    assert [path.name for path in find("kernelbench:level1/first3", clone)] == expected[:3]
    assert [path.name for path in find("kernelbench:level1/first99", clone)] == expected


@pytest.mark.torch_cpu
def test_what_a_level_holds_and_cannot_be_one_is_left_out_and_an_error_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    clone = level(tmp_path, _1_Good=modules.CHAIN, _2_Bad="x = 1\n", _3_Good=modules.IN_EVAL)
    found = imported(("kernelbench:level1",), clone, "cpu")
    assert list(found) == ["kernelbench.level1.1_Good", "kernelbench.level1.3_Good"]
    assert "left out" in (said := capsys.readouterr().err) and "2_Bad.py" in said
    for words in (("kernelbench:level1/2",), ("kernelbench:level1", "kernelbench:level1/2")):
        with pytest.raises(BadInput, match=r"2_Bad\.py"):
            imported(words, clone, "cpu")


@pytest.mark.torch_cpu
def test_a_file_that_hangs_or_speaks_for_the_process_spoils_no_other() -> None:
    with Prober("cpu") as prober:
        with pytest.raises(BadInput, match="found it running after 8 s"):
            prober.probe(HANGS, "module", CPU, limit_s=8.0)
        good = prober.probe(modules.CHAIN, "module", CPU)
        for _ in range(2):
            with pytest.raises(ToolFailed, match="without an answer"):
                prober.probe(SPEAKS, "module", CPU)
            assert prober.probe(modules.CHAIN, "module", CPU) == good


@pytest.mark.torch_cpu
def test_a_file_that_ends_its_process_is_left_out_of_its_level_and_an_error_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    clone = level(tmp_path, _1_Good=modules.CHAIN, _2_Ends=SPEAKS, _3_Good=modules.IN_EVAL)
    found = imported(("kernelbench:level1",), clone, "cpu")
    assert list(found) == ["kernelbench.level1.1_Good", "kernelbench.level1.3_Good"]
    assert "left out" in (said := capsys.readouterr().err) and "2_Ends.py" in said
    with pytest.raises(ToolFailed, match=r"2_Ends\.py: .*without an answer"):
        imported(("kernelbench:level1/2",), clone, "cpu")


@pytest.mark.torch_cpu
def test_a_check_that_finds_no_memory_is_told_as_the_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """So that a level leaves the file out, or asks it again when no other is beside it."""
    import json

    import msgspec
    import torch

    from gpusolver.problems import probe
    from gpusolver.problems.probing import Asked

    def full(asked: Asked) -> None:
        raise torch.OutOfMemoryError("Tried to allocate 14.00 GiB")

    monkeypatch.setattr(probe, "answer", full)
    question, reply = tmp_path / "asked", tmp_path / "answer"
    question.write_bytes(msgspec.json.encode(Asked(text="", form="module", device="cpu", budget=CPU)))
    probe.answer_file(str(question), str(reply))
    assert "14.00 GiB" in json.loads(reply.read_bytes())["refused"]


@pytest.mark.torch_cpu
def test_what_is_kept_of_an_answer_takes_no_copy_where_all_is_kept_and_no_places_where_not() -> None:
    """Places in four dimensions take 32 bytes of each element that is kept; in one, eight."""
    import torch
    from torch.utils._python_dispatch import TorchDispatchMode

    from gpusolver.problems.gauging import of_those

    class Largest(TorchDispatchMode):  # type: ignore[misc]
        seen = 0

        def __torch_dispatch__(self, function, types, args=(), kwargs=None):  # type: ignore[no-untyped-def]
            out = function(*args, **(kwargs or {}))
            if isinstance(out, torch.Tensor):
                self.seen = max(self.seen, out.untyped_storage().nbytes())
            return out

    value = torch.arange(2.0**16, dtype=torch.float64).view(16, 16, 16, 16)
    every = torch.ones_like(value, dtype=torch.bool)
    assert of_those(every, value).data_ptr() == value.data_ptr()
    some = value > 7
    with Largest() as largest:
        kept = of_those(some, value)
    assert kept.tolist() == [float(n) for n in range(8, 2**16)]
    assert largest.seen <= 8 * 2**16


@pytest.mark.torch_cpu
def test_last_digits_are_no_dropout_and_a_dropout_is_none_of_them() -> None:
    import torch

    from gpusolver.problems.probe import _alike

    inf = float("inf")
    value = torch.arange(1.0, 10_001.0, dtype=torch.float64)
    assert _alike(value, value * (1 + 1e-13))
    dropped = value.clone()
    dropped[9] = 0.0  # ten of a norm of 577,393: 1.7e-5 of it
    assert not _alike(value, dropped)
    # An infinity beside it hides none, and stands where it stood.
    assert not _alike(torch.cat([value, value.new_tensor([inf])]), torch.cat([dropped, value.new_tensor([inf])]))
    assert not _alike(value.new_tensor([inf, 1.0]), value.new_tensor([1.0, 1.0]))
    assert not _alike(value.new_tensor([1.0, 1.0]), value.new_tensor([inf, 1.0]))
    assert _alike(value.new_tensor([inf, 1.0]), value.new_tensor([inf, 1.0]))
