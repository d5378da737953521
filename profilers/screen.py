"""What a person should look at in a candidate's source: remarks, never a verdict. Reads the syntax tree, so words in comments and strings count for nothing."""

from __future__ import annotations

import ast

import msgspec

from .artifacts import Launches

# Modules by which a candidate reaches beyond its own call, and what their use is called.
_REACH = {
    "threading": "threads", "multiprocessing": "threads", "concurrent": "threads", "asyncio": "threads",
    "signal": "threads", "subprocess": "processes", "atexit": "threads",
    "inspect": "frames", "gc": "frames", "ctypes": "raw memory", "mmap": "raw memory",
}  # fmt: skip
_CALLS = {
    "_getframe": "frames", "_current_frames": "frames", "settrace": "frames", "setprofile": "frames",
    "Stream": "streams", "ExternalStream": "streams", "fork": "processes", "execv": "processes",
}  # fmt: skip
# torch functions that allocate, describe or synchronise; every other one computes.
_NO_COMPUTATION = {
    "empty", "empty_like", "empty_strided", "zeros", "zeros_like", "ones", "ones_like", "full", "full_like", "tensor",
    "device", "dtype", "finfo", "iinfo", "is_tensor", "manual_seed", "no_grad", "inference_mode", "set_grad_enabled",
    "get_device_properties", "current_device", "current_stream", "synchronize", "is_available", "get_device_capability",
}  # fmt: skip


class Remark(msgspec.Struct, frozen=True, order=True):
    """A line (from 1; 0: the source as a whole), the kind of remark, and what stands there."""

    line: int
    kind: str
    what: str


def remarks(source: str, launches: Launches | None = None) -> tuple[Remark, ...]:
    """Remarks on a source, in the order of its lines; with the launches of its call also whether a kernel of its own ran at all."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        return (Remark(getattr(error, "lineno", 0) or 0, "unreadable", type(error).__name__),)
    foreign, jitted = _imported(tree), _jitted(tree)
    found = {remark for node in ast.walk(tree) for remark in _of(node, foreign)}
    if jitted:
        found |= _fallbacks(tree, foreign)
        if launches is not None and launches.complete and all(k.language != "triton" for k in launches.kernels):
            found.add(Remark(0, "no own kernel", "no Triton kernel ran, though the source has one"))
    return tuple(sorted(found))


def _of(node: ast.AST, foreign: dict[str, str]) -> list[Remark]:
    match node:
        case ast.Import(names=names):
            return [Remark(node.lineno, kind, each.name) for each in names if (kind := _reach(each.name))]
        case ast.ImportFrom(module=str(module)):
            kind = _reach(module)
            return [Remark(node.lineno, kind, module)] if kind else []
        case ast.Assign(targets=targets):
            return [remark for target in targets for remark in _patch(target, foreign)]
        case ast.AugAssign(target=target) | ast.AnnAssign(target=target):
            return _patch(target, foreign)
        case ast.Delete(targets=targets):
            return [remark for target in targets for remark in _patch(target, foreign)]
        case ast.Call(func=ast.Name(id="setattr" | "delattr"), args=[owner, *_]) if _root(owner) in foreign:
            return [Remark(node.lineno, "patches", ast.unparse(owner))]
        case ast.Call(func=ast.Attribute(attr=name)) if name in _CALLS:
            return [Remark(node.lineno, _CALLS[name], ast.unparse(node.func))]
        case _:
            return []


def _reach(module: str) -> str:
    return _REACH.get(module.partition(".")[0], "")


def _patch(target: ast.expr, foreign: dict[str, str]) -> list[Remark]:
    """An assignment to what an imported module holds: to a switch of torch, or in place of somebody's function."""
    if not isinstance(target, ast.Attribute | ast.Subscript) or _root(target) not in foreign:
        return []
    text = ast.unparse(target)
    whole = foreign[_root(target)] + text[len(_root(target)) :]
    return [Remark(target.lineno, "switches" if whole.startswith("torch.backends.") else "patches", text)]


def _fallbacks(tree: ast.Module, foreign: dict[str, str]) -> set[Remark]:
    """Calls outside of jitted functions by which torch computes what a kernel of the source's own should."""
    inside = {id(node) for function in _jitted(tree) for node in ast.walk(function)}
    found: set[Remark] = set()
    for node in ast.walk(tree):
        if id(node) in inside:
            continue
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult):
            found.add(Remark(node.lineno, "torch computes", ast.unparse(node)[:80]))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute | ast.Name):
            whole = _whole(node.func, foreign)
            if whole.startswith("torch.") and whole.rpartition(".")[2] not in _NO_COMPUTATION:
                found.add(Remark(node.lineno, "torch computes", whole))
    return found


def _whole(function: ast.expr, foreign: dict[str, str]) -> str:
    text, root = ast.unparse(function), _root(function)
    return foreign[root] + text[len(root) :] if root in foreign else ""


def _imported(tree: ast.Module) -> dict[str, str]:
    """The names that stand for imported modules and things, and what they stand for."""
    found: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {a.asname or a.name.partition(".")[0]: a.name if a.asname else a.name.partition(".")[0]
                      for a in node.names}  # fmt: skip
        if isinstance(node, ast.ImportFrom):
            found |= {a.asname or a.name: f"{node.module}.{a.name}" for a in node.names}
    return found


def _jitted(tree: ast.Module) -> list[ast.FunctionDef]:
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    return [f for f in functions if any("jit" in ast.unparse(decorator) for decorator in f.decorator_list)]


def _root(node: ast.expr) -> str:
    """The name that an expression of attributes and indices begins with."""
    while isinstance(node, ast.Attribute | ast.Subscript):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""
