"""Families of modules whose products are one operator on a card, where the CPU shows each step. Needs a GPU; times nothing."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")
pytestmark = pytest.mark.gpu

import torch
from torch import nn

from gpusolver.problems.gauging import _family
from gpusolver.problems.rounding import Rounding, Traffic


@pytest.mark.parametrize("made", [nn.LSTM, nn.GRU, nn.RNN])
def test_a_recurrent_layer_of_cudnn_is_a_network_and_its_operands_are_rounded(
    made: type[nn.LSTM | nn.GRU | nn.RNN],
) -> None:
    layer, x = made(64, 64).cuda(), torch.rand(16, 8, 64, device="cuda")
    with torch.no_grad(), Traffic() as traffic:
        out = layer(x)[0]
    exact = layer.double()
    with torch.no_grad():
        expected = exact(x.double())[0]
        with Rounding(10) as mode:
            moved = exact(x.double())[0]
    assert mode.seen > 0 and float((moved - expected).norm() / expected.norm()) > 1e-5
    assert _family(traffic.names, mode.seen, out, (x,)) == "network"
