"""What a problem computes, read off the `operation` of its eager form. Never imports or runs it."""

from __future__ import annotations

import ast
import math

import msgspec

ROWS = {"softmax": 0, "layer_norm": 1, "sum": 2, "mean": 3}
"""Operations on rows, by the numbers of templates/rows.py."""
_PLAIN = {
    "exp": "expf", "log": "logf", "sqrt": "sqrtf", "tanh": "tanhf", "abs": "fabsf", "sin": "sinf", "cos": "cosf",
    "sigmoid": "sigmoid", "silu": "silu", "relu": "relu", "gelu": "gelu", "square": "square", "neg": "-",
}  # fmt: skip
_PAIRS = {"add": "+", "sub": "-", "mul": "*", "div": "/"}
_OPERATORS: dict[type[ast.operator], str] = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/"}
_MOST_TENSORS = 4


class Rows(msgspec.Struct, frozen=True, kw_only=True):
    """An operation on the last dimension, by its number in ROWS; `eps` of a layer normalisation."""

    number: int
    eps: float = 1e-5


class Product(msgspec.Struct, frozen=True, kw_only=True):
    """A matrix product of the two parameters, in their order."""


class Elementwise(msgspec.Struct, frozen=True, kw_only=True):
    """A C expression over x0, x1, ...: the elements of the parameters."""

    element: str


Operation = Rows | Product | Elementwise


def operation_of(eager: str) -> Operation | None:
    """What the one `return` of a function `operation` computes; None where that is nothing of the kinds above."""
    try:
        module = ast.parse(eager)
    except (SyntaxError, ValueError, RecursionError):
        return None
    found = [f for f in module.body if isinstance(f, ast.FunctionDef) and f.name == "operation"]
    if len(found) != 1 or len(found[0].body) != 1 or found[0].args.kwonlyargs or found[0].args.vararg:
        return None
    only, parameters = found[0].body[0], [argument.arg for argument in found[0].args.args]
    if not isinstance(only, ast.Return) or only.value is None:
        return None
    return _rows(only.value, parameters) or _product(only.value, parameters) or _elementwise(only.value, parameters)


def _called(node: ast.expr) -> tuple[str, list[ast.expr], dict[str, ast.expr]]:
    """Name, positional and named arguments of `torch.f(x)`, `torch.nn.functional.f(x)`, `F.f(x)` or `x.f()`; "" for anything else."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return "", [], {}
    named = {keyword.arg: keyword.value for keyword in node.keywords if keyword.arg is not None}
    if len(named) != len(node.keywords) or any(isinstance(argument, ast.Starred) for argument in node.args):
        return "", [], {}
    of_torch = ast.unparse(node.func.value) in ("torch", "torch.nn.functional", "F")
    return node.func.attr, node.args if of_torch else [node.func.value, *node.args], named


def _is(node: ast.expr, text: str) -> bool:
    return ast.unparse(node) == text


def _rows(node: ast.expr, parameters: list[str]) -> Rows | None:
    name, arguments, named = _called(node)
    if name not in ROWS or not arguments or not parameters or not _is(arguments[0], parameters[0]):
        return None
    if name == "layer_norm":
        return _layer_norm(arguments, named, parameters)
    dims = [*arguments[1:], *(value for key, value in named.items() if key == "dim")]
    fits = len(parameters) == 1 and len(dims) == 1 and _is(dims[0], "-1") and set(named) <= {"dim"}
    return Rows(number=ROWS[name]) if fits else None


def _layer_norm(arguments: list[ast.expr], named: dict[str, ast.expr], parameters: list[str]) -> Rows | None:
    """layer_norm(x, weight.shape, weight, bias[, eps]) of the three parameters in their order."""
    eps = arguments[4] if len(arguments) == 5 else named.get("eps", ast.Constant(1e-5))
    if len(arguments) not in (4, 5) or len(parameters) != 3 or set(named) - {"eps"}:
        return None
    _, weight, bias = parameters
    fits = _is(arguments[1], f"{weight}.shape") and _is(arguments[2], weight) and _is(arguments[3], bias)
    value = eps.value if isinstance(eps, ast.Constant) else None
    return Rows(number=ROWS["layer_norm"], eps=float(value)) if fits and isinstance(value, float) else None


def _product(node: ast.expr, parameters: list[str]) -> Product | None:
    name, arguments, named = _called(node)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult):
        name, arguments, named = "matmul", [node.left, node.right], {}
    fits = name in ("matmul", "mm", "bmm") and not named and len(arguments) == len(parameters) == 2
    return Product() if fits and all(_is(a, p) for a, p in zip(arguments, parameters, strict=True)) else None


def _elementwise(node: ast.expr, parameters: list[str]) -> Elementwise | None:
    if not 1 <= len(parameters) <= _MOST_TENSORS or isinstance(node, ast.Name):
        return None
    try:
        element = _in_c(node, {name: f"x{place}" for place, name in enumerate(parameters)})
    except _Unknown:
        return None
    return Elementwise(element=element) if all(f"x{place}" in element for place in range(len(parameters))) else None


class _Unknown(Exception):
    """Something that has no element."""


def _in_c(node: ast.expr, names: dict[str, str]) -> str:
    """An expression of elements in C, float throughout."""
    if isinstance(node, ast.Name) and node.id in names:
        return names[node.id]
    if isinstance(node, ast.Constant) and type(node.value) in (int, float):
        return _number(float(node.value))  # type: ignore[arg-type]
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return f"(-{_in_c(node.operand, names)})"
    if isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
        return f"({_in_c(node.left, names)} {_OPERATORS[type(node.op)]} {_in_c(node.right, names)})"
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow) and _is(node.right, "2"):
        return f"square({_in_c(node.left, names)})"
    name, arguments, named = _called(node)
    if name in _PLAIN and len(arguments) == 1 and not named:
        return f"({_PLAIN[name]}({_in_c(arguments[0], names)}))"
    if name in _PAIRS and len(arguments) == 2 and not named:
        return f"({_in_c(arguments[0], names)} {_PAIRS[name]} {_in_c(arguments[1], names)})"
    raise _Unknown


def _number(value: float) -> str:
    if not math.isfinite(value) or abs(value) > 3e38:
        raise _Unknown
    return f"{value!r}f"
