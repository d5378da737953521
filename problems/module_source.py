"""Texts of a problem that was made from a module's file: eager form, reference, and the part that calls the module. Never imports torch or runs a source."""

from __future__ import annotations

import msgspec

MARK = "# --- gpusolver: how the module above is called ---"

_SPEC = '''
import torch as _torch

PRECISION = "ieee"
# `run` takes the tensors of get_inputs() first, then the module's state by these names; other arguments stand in _FIXED by position.
_TENSORS = {tensors}
_FIXED = {fixed}
_STATE = {state}
# What of the module is put into eval mode, because its output would be random: nothing, dropout, or all.
_EVAL = "{eval}"
_MODEL = None


def _ready(device):
    """Build the module once. In training a norm takes the batch's statistics: it then keeps none of its own, which no output shows."""
    global _MODEL
    if _MODEL is None:
        with _torch.random.fork_rng(devices=[device] if device.type == "cuda" else []), _torch.device(device):
            _torch.manual_seed(0)
            model = Model(*get_init_inputs())
        if _EVAL == "all":
            model.eval()
        for part in model.modules():
            if _EVAL == "dropout" and isinstance(part, _torch.nn.modules.dropout._DropoutNd):
                part.eval()
            if isinstance(part, _torch.nn.modules.batchnorm._NormBase) and part.training:
                part.track_running_stats = False
                part.running_mean = part.running_var = part.num_batches_tracked = None
        _MODEL = model
    return _MODEL


def _arguments(tensors):
    given = list(tensors)
    for position in sorted(_FIXED):
        given.insert(position, _FIXED[position])
    return tuple(given)
'''

_CALL = """

def operation(*tensors):
    state = dict(zip(_STATE, tensors[_TENSORS:]))
    with _torch.no_grad():
        return _torch.func.functional_call(_MODEL, state, _arguments(tensors[:_TENSORS]))
"""

SCOPED = """

def run(*tensors):
    {before}before = _torch.backends.cuda.matmul.allow_tf32, _torch.backends.cudnn.allow_tf32
    _torch.backends.cuda.matmul.allow_tf32 = PRECISION == "tf32"
    _torch.backends.cudnn.allow_tf32 = PRECISION == "tf32"
    try:
        return {call}
    finally:
        _torch.backends.cuda.matmul.allow_tf32, _torch.backends.cudnn.allow_tf32 = before
"""

_REFERENCE = '''
# State that is all one value as built (weights of a norm, biases): a draw adds up to 0.1, so that no kernel may leave it out.
_CONSTANT = {constant}
OUTPUT_DTYPE = "{dtype}"
# Where the file's own inputs would come out as they went in (a ReLU of numbers above 0), they are spread around 0.
_SPREAD = {spread}
_DRAWN = {{}}


def inputs(shape, generator, device):
    """Tensors of get_inputs() under the generator's seed, then the state of one built module, turned round by as much as the seed says."""
    device = _torch.device(device)
    seed = generator.initial_seed()
    if device not in _DRAWN:
        model = _ready(device)
        named = dict(model.named_parameters()) | dict(model.named_buffers())
        _DRAWN[device] = [named[name].detach().float().clone() for name in _STATE]
    with _torch.random.fork_rng(devices=[device] if device.type == "cuda" else []), _torch.device(device):
        _torch.manual_seed(seed)
        given = [value.detach() for position, value in enumerate(get_inputs()) if position not in _FIXED]
        if _SPREAD:
            given = [4 * (value - value.mean()) if value.is_floating_point() else value for value in given]
        state = []
        for name, value in zip(_STATE, _DRAWN[device]):
            if name in _CONSTANT:
                state.append(value + 0.1 * _torch.rand(value.shape))
            else:
                state.append(value.flatten().roll(seed * 7919 % value.numel()).view(value.shape))
    return tuple(_dense(value) for value in (*given, *state))


def _dense(value):
    return value.contiguous() if 0 in value.stride() else value


def reference(*tensors):
    """The module's answer in float64 on the same values."""
    before = _torch.get_default_dtype()
    _torch.set_default_dtype(_torch.float64)
    try:
        model = _ready(tensors[0].device).double()
        for part in model.modules():
            for name, value in vars(part).items():
                if isinstance(value, _torch.Tensor) and value.is_floating_point():
                    setattr(part, name, value.double())
        wide = [value.double() if value.is_floating_point() else value for value in tensors]
        with _torch.no_grad():
            state = dict(zip(_STATE, wide[_TENSORS:]))
            return _torch.func.functional_call(model, state, _arguments(wide[:_TENSORS])).double()
    finally:
        _torch.set_default_dtype(before)
'''


class ModuleCall(msgspec.Struct, frozen=True, kw_only=True):
    """How a module is called: number of tensors, other arguments by position (Python literals), names of the state, what is in eval mode.

    `constant`, `dtype` and `spread` are of the reference alone.
    """

    tensors: int
    fixed: dict[int, object] = {}
    state: tuple[str, ...] = ()
    constant: tuple[str, ...] = ()
    eval: str = "nothing"
    dtype: str = "float32"
    spread: bool = False


def spec(user: str, call: ModuleCall) -> str:
    """The user's text, the mark, and what every form of the module needs."""
    filled = _SPEC.format(tensors=call.tensors, fixed=repr(call.fixed), state=_names(call.state), eval=call.eval)
    return f"{user.rstrip()}\n\n\n{MARK}\n{filled.lstrip()}"


def eager(user: str, call: ModuleCall) -> str:
    """The source that calls the module as it is: the starting kernel and PyTorch's own answer."""
    return (
        spec(user, call) + _CALL + SCOPED.format(before="_ready(tensors[0].device)\n    ", call="operation(*tensors)")
    )


def reference(user: str, call: ModuleCall) -> str:
    """The reference file."""
    return spec(user, call) + _REFERENCE.format(constant=_names(call.constant), dtype=call.dtype, spread=call.spread)


def _names(names: tuple[str, ...]) -> str:
    return "(" + "".join(f"{name!r}, " for name in names).rstrip() + ")"
