"""Facts about a node of a syntax tree that do not depend on its context. For `check`, from Python 3.8 on."""
from __future__ import annotations

import ast
from typing import Iterable, Iterator, List, Optional, Union

Function = Union[ast.FunctionDef, ast.AsyncFunctionDef]
Loop = Union[ast.For, ast.AsyncFor, ast.While]
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
LOOPS = (ast.For, ast.AsyncFor, ast.While)
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def text_of(node: ast.AST) -> str:
    """A name or a chain of attributes ("self.losses"), for people to read; other expressions have none."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        base = text_of(node.value)
        return f"{base}.{node.attr}" if base else ""
    return ""


def last_name(node: ast.AST) -> str:
    """The name that identifies an expression: `self.train_loader` -> train_loader, `heads[0]` -> heads, `loaders()` -> loaders."""
    if isinstance(node, ast.Call):
        return last_name(node.func)
    if isinstance(node, (ast.Subscript, ast.Starred, ast.Await)):
        return last_name(node.value)
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def targets_of(node: ast.AST) -> Iterator[ast.expr]:
    """The targets that a statement binds, with tuples unpacked."""
    if isinstance(node, ast.Assign):
        found = list(node.targets)
    elif isinstance(node, (ast.AugAssign, ast.AnnAssign, ast.For, ast.AsyncFor, ast.NamedExpr, ast.comprehension)):
        found = [node.target]
    elif isinstance(node, ast.withitem) and node.optional_vars is not None:
        found = [node.optional_vars]
    else:
        return
    while found:
        one = found.pop()
        if isinstance(one, (ast.Tuple, ast.List)):
            found += one.elts
        elif isinstance(one, ast.Starred):
            found.append(one.value)
        else:
            yield one


def value_of(statement: ast.AST, name: str) -> Optional[ast.expr]:
    """The value that a statement assigns to the name or attribute: for `a, b = 1, 2`, its own part."""
    value: Optional[ast.expr] = getattr(statement, "value", None)
    if isinstance(statement, ast.Assign) and isinstance(value, (ast.Tuple, ast.List)):
        for target in statement.targets:
            if isinstance(target, (ast.Tuple, ast.List)) and len(target.elts) == len(value.elts):
                return next((right for left, right in zip(target.elts, value.elts) if last_name(left) == name), value)
    return value


def index_of(subscript: ast.Subscript) -> ast.expr:
    """The contents of the brackets."""
    index = subscript.slice
    return index.value if type(index).__name__ == "Index" else index  # type: ignore[attr-defined]  # before Python 3.9


def arguments_of(function: Union[Function, ast.Lambda]) -> List[ast.arg]:
    """Every parameter."""
    its = function.args
    return [*getattr(its, "posonlyargs", []), *its.args, *its.kwonlyargs, *(one for one in (its.vararg, its.kwarg) if one is not None)]


def parameters_of(function: Union[Function, ast.Lambda]) -> List[str]:
    """The parameters that can be passed by position."""
    return [one.arg for one in [*getattr(function.args, "posonlyargs", []), *function.args.args]]


def contains_call(nodes: Iterable[ast.AST], *names: str) -> bool:
    return any(isinstance(one, ast.Call) and last_name(one.func) in names for node in nodes for one in ast.walk(node))


def is_backward(call: ast.Call) -> bool:
    """loss.backward(), accelerator.backward(loss), self.manual_backward(loss), torch.autograd.grad(loss, ...)."""
    name = last_name(call.func)
    return name in ("backward", "manual_backward") or name == "grad" and "autograd" in text_of(call.func)
