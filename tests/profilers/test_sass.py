"""Instruction counts from a disassembler's text: instructions only, predicates off, modifiers on."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpusolver.profilers.sass import instruction_mix

LISTING = """
\t.headerflags\t@"EF_CUDA_TEXMODE_UNIFIED EF_CUDA_64BIT_ADDRESS EF_CUDA_SM90"
\t.elftype\t@"ET_EXEC"

//--------------------- .text.copy                --------------------------
\t.section\t.text.copy,"ax",@progbits
\t.align\t128
.text.copy:
        /*0000*/                   LDC R1, c[0x0][0x28] ;
                                                            /* 0x00000a00ff017b82 */
        /*0010*/                   S2R R0, SR_TID.X ;
        /*0020*/              @!P0 LDG.E.128.CONSTANT R4, desc[UR4][R2.64] ;   /* 0x0000000402047981 */
        /*0030*/               @P1 LDG.E.128.CONSTANT R8, desc[UR4][R2.64+0x10] ;
        /*0040*/              @UP0 UIADD3 UR4, UR4, 0x1, URZ ;
        /*0050*/             @!UPT UIADD3 UR4, URZ, URZ, URZ ;
.L_x_0:
        /*1f060*/                  HMMA.16816.F32.BF16 R4, R8, R2, R4 ;
        /*1f070*/              @PT BRA `(.L_x_0) ;
.L_x_1:
        /*1f080*/                  BRA `(.L_x_1);
\t.type\t.L_x_2,@function
"""
COUNTS = {
    "BRA": 2, "HMMA.16816.F32.BF16": 1, "LDC": 1, "LDG.E.128.CONSTANT": 2, "S2R": 1, "UIADD3": 2,
}  # fmt: skip


def test_a_listing_by_hand() -> None:
    found = instruction_mix(LISTING)
    assert found == COUNTS
    assert list(found) == sorted(COUNTS)


@pytest.mark.parametrize(
    ("line", "opcode"),
    [
        ("        /*0010*/                   IMAD.MOV.U32 R1, RZ, RZ, c[0x0][0x28] ;", "IMAD.MOV.U32"),
        ("        /*0070*/         {         MUFU.EX2 R3, R3 ;", "MUFU.EX2"),
        ("        /*0080*/              @!P6 STG.E.64 [R2.64], R4 }", "STG.E.64"),
        ("        /*0090*/                   UTMALDG.2D [UR8], [UR4] ;", "UTMALDG.2D"),
        (
            "        /*00a0*/                   HGMMA.64x128x16.F32.BF16 R24, gdesc[UR8], R24, gsb0 ;",
            "HGMMA.64x128x16.F32.BF16",
        ),
        ("\t/*00b0*/\tF2FP.BF16.F32.PACK_AB R0, R1, R0 ;", "F2FP.BF16.F32.PACK_AB"),
        ("        /*00c0*/                   EXIT ;", "EXIT"),
    ],
)
def test_forms_of_an_instruction(line: str, opcode: str) -> None:
    assert instruction_mix(line) == {opcode: 1}


NOISE = (
    "", "   ", ".L_x_3:", "// LDG.E R0, [R2] ;", "                    /* 0x000fe20000000f00 */", "\t.byte 0x04, 0x2f",
    "LDG.E.128 R4, [R2.64] ;", "/* 0010 */ LDG R0, [R2] ;", "        /*0010*/", "        /*10*/   LDG R0, [R2] ;", "\t\tFunction : LDG_kernel", "code for sm_90",
    "        /*0010*/                   .dword 0x00000000", "nvdisasm fatal   : LDG is not an input file",
)  # fmt: skip


@given(st.lists(st.sampled_from(NOISE)), st.randoms(use_true_random=False))
def test_what_is_no_instruction_never_counts(noise: list[str], random: object) -> None:
    """Anywhere between the instructions; alone it gives no counts at all."""
    assert instruction_mix("\n".join(noise)) == {}
    lines = LISTING.splitlines()
    for line in noise:
        lines.insert(random.randrange(len(lines) + 1), line)  # type: ignore[attr-defined]
    assert instruction_mix("\n".join(lines)) == COUNTS
