"""Machine code made by ptxas for chips that are not here, and taken apart again; no GPU is needed."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

pytest.importorskip("triton")
pytestmark = pytest.mark.torch_cpu

from gpusolver.engine.worker.compiled import disassemble, nvdisasm
from gpusolver.engine.worker.refusals import ExtraFailed, ExtraUnsupported
from gpusolver.profilers.sass import instruction_mix

PTX = """
.version 8.0
.target {target}
.address_size 64
.visible .entry copy(.param .u64 from, .param .u64 to)
{{
    .reg .b64 %a<5>; .reg .f32 %f<5>; .reg .b32 %t;
    ld.param.u64 %a1, [from]; ld.param.u64 %a2, [to];
    cvta.to.global.u64 %a1, %a1; cvta.to.global.u64 %a2, %a2;
    mov.u32 %t, %tid.x; mul.wide.u32 %a3, %t, 16;
    add.s64 %a1, %a1, %a3; add.s64 %a2, %a2, %a3;
    ld.global.v4.f32 {{%f1, %f2, %f3, %f4}}, [%a1];
    st.global.v4.f32 [%a2], {{%f1, %f2, %f3, %f4}};
    ret;
}}
"""


def cubin(folder: Path, target: str) -> bytes:
    source, made = folder / "copy.ptx", folder / "copy.cubin"
    source.write_text(PTX.format(target=target))
    ptxas = str(Path(nvdisasm()).with_name("ptxas"))
    subprocess.run([ptxas, f"--gpu-name={target}", str(source), "-o", str(made)], check=True)
    return made.read_bytes()


@pytest.mark.parametrize("target", ["sm_75", "sm_80", "sm_90"])
def test_a_copy_of_four_floats_is_one_wide_load_and_one_wide_store(tmp_path: Path, target: str) -> None:
    mix = instruction_mix(disassemble(nvdisasm(), cubin(tmp_path, target)))
    wide = {name: count for name, count in mix.items() if "128" in name.split(".")}
    assert {name.split(".")[0]: count for name, count in wide.items()} == {"LDG": 1, "STG": 1}
    assert mix["EXIT"] == 1 and not any(name.startswith(("HMMA", "LDL", "STL")) for name in mix)


def test_what_is_no_machine_code_is_refused_in_words() -> None:
    with pytest.raises(ExtraFailed, match="nvdisasm ended with"):
        disassemble(nvdisasm(), b"no code")


def test_without_a_disassembler_the_words_say_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    monkeypatch.setenv("PATH", "/nonexistent")
    with pytest.raises(ExtraUnsupported, match="install CUDA's binary utilities"):
        nvdisasm()
