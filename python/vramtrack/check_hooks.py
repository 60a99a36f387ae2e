"""Finds the functions of a file that run as hooks: follows what is passed to register_forward_hook() and the like to the code that runs."""
from __future__ import annotations

import ast
from typing import Dict, Iterator, List, NamedTuple, Union

from vramtrack.check_scopes import Place
from vramtrack.check_source import Source
from vramtrack.check_syntax import Function, contains_call, last_name, parameters_of
from vramtrack.check_values import NUMBERS, element_and_container

_REACH = 5  # steps from the registered object to the code
_PLAIN = {"shape", "dtype", "device", "ndim"}  # of a tensor, without its memory


class Hook(NamedTuple):
    """One function that runs as a hook, and how it was reached."""

    code: Union[Function, ast.Lambda]
    given: int  # the position of its first parameter that the framework passes: `self` and arguments bound by partial() precede it
    bound: Dict[Place, ast.expr]  # the values of the parameters of its enclosing functions, if one of them created it


class HookKeep(NamedTuple):
    """A value that a hook adds to a container."""

    statement: ast.stmt
    container: ast.expr
    value: ast.expr
    name: str  # the name of the parameter with the tensor


def hooks_of(source: Source, node: ast.AST, depth: int = _REACH) -> Iterator[Hook]:
    """The hooks that the node stands for: a function, a lambda, a method of an object in this file, an object with __call__(), partial() of
    any of these, or the result of a function that returns one."""
    if depth == 0:
        return
    if isinstance(node, ast.Lambda):
        yield Hook(node, 0, {})
    elif isinstance(node, (ast.Name, ast.Attribute)):
        place = source.place(node)
        if isinstance(node, ast.Name) and place is not None:
            for value in source.values(place):
                yield from hooks_of(source, value, depth - 1)
            for function in source.functions_of(node):
                yield Hook(function, 0, {})
        kinds = source.classes_of(node if isinstance(node, ast.Name) else node.value) or []
        for kind in kinds:
            yield from _methods(source, kind, "__call__" if isinstance(node, ast.Name) else node.attr)
    elif isinstance(node, ast.Call):
        if last_name(node.func) == "partial" and node.args:
            for hook in hooks_of(source, node.args[0], depth - 1):
                yield hook._replace(given=hook.given + len(node.args) - 1, bound={**hook.bound, **_passed(hook, node.args[1:], node.keywords)})
            return
        for kind in source.classes_of(node) or []:
            yield from _methods(source, kind, "__call__")
        for maker in hooks_of(source, node.func, depth - 1):
            bound = {**maker.bound, **_passed(maker, node.args, node.keywords)}
            for returned in _returned(source, maker.code):
                for hook in hooks_of(source, returned, depth - 1):
                    yield hook._replace(bound={**bound, **hook.bound})


def kept_in(source: Source, hook: Hook, plain: int) -> Iterator[HookKeep]:
    """The values from the framework that it adds to containers. `plain`: this many of the first parameters have no tensors (the module)."""
    names = set(parameters_of(hook.code)[hook.given + plain:]) | ({hook.code.args.vararg.arg} if hook.code.args.vararg is not None else set())
    body = hook.code.body if isinstance(hook.code.body, list) else [hook.code.body]
    for node in (one for part in body for one in ast.walk(part)):
        pair = element_and_container(node) if isinstance(node, ast.Call) else None
        if pair is None and isinstance(node, ast.AugAssign) and isinstance(node.value, (ast.List, ast.Tuple)):
            pair = (node.value, node.target)
        kept = next((name for name in sorted(names) if pair is not None and _is_kept(source, pair[0], Place(hook.code, name))), None)
        if pair is not None and kept is not None:
            yield HookKeep(source.statement_of(node), pair[1], pair[0], kept)


def _is_kept(source: Source, value: ast.expr, place: Place) -> bool:
    """Whether the value is the parameter itself or computed from it on the device: not its shape, a number or a copy on the CPU."""
    if contains_call([value], "cpu", "size", *NUMBERS):
        return False
    uses = [one for one in ast.walk(value) if isinstance(one, ast.Name) and source.place(one) == place]
    return any(getattr(source.parent(one), "attr", "") not in _PLAIN for one in uses)


def _passed(hook: Hook, arguments: List[ast.expr], keywords: List[ast.keyword]) -> Dict[Place, ast.expr]:
    """The arguments that a call passes to the parameters."""
    by_name = {one.arg: one.value for one in keywords if one.arg is not None}
    return {Place(hook.code, name): value for name, value in [*zip(parameters_of(hook.code)[hook.given:], arguments), *by_name.items()]}


def _returned(source: Source, code: Union[Function, ast.Lambda]) -> Iterator[ast.expr]:
    if isinstance(code, ast.Lambda):
        yield code.body
        return
    for one in ast.walk(code):
        if isinstance(one, ast.Return) and one.value is not None and source.function_of(one) is code:
            yield one.value


def _methods(source: Source, kind: ast.ClassDef, name: str) -> Iterator[Hook]:
    for one in source.lineage(kind):
        method = source.methods(one).get(name)
        if method is not None:
            yield Hook(method, int(source.has_object(method)), {})
            return
