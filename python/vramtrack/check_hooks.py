"""Which functions of a file run as hooks: what is given to register_forward_hook() and its kin, followed to the code that runs."""
from __future__ import annotations

import ast
from typing import Dict, Iterator, NamedTuple, Optional, Union

from vramtrack.check_source import Function, Source, contains_call, last_name, text_of, value_of
from vramtrack.check_values import NUMBERS, element_and_container, parameters_of

_STEPS = 5  # from what is registered to the code
_PLAIN = {"shape", "dtype", "device", "ndim"}  # of a tensor, without its memory


class Hook(NamedTuple):
    """One function that runs as a hook, and how it was reached."""

    code: Union[Function, ast.Lambda]
    given: int  # the position of its first parameter that the framework gives: `self` and what partial() binds are before it
    bound: Dict[str, ast.expr]  # what the parameters of the functions around it stand for, where one of them made it


class HookKeep(NamedTuple):
    """What a hook adds to a container."""

    statement: ast.stmt
    container: ast.expr
    value: ast.expr
    name: str  # of the parameter that has the tensor


def hooks_of(source: Source, node: ast.AST, depth: int = _STEPS) -> Iterator[Hook]:
    """A function, a lambda, a method of an object of this file, an object with __call__(), partial() of one of them, and what a function
    returns that makes one."""
    if depth == 0:
        return
    if isinstance(node, ast.Lambda):
        yield Hook(node, 0, {})
    elif isinstance(node, ast.Name):
        scope: Optional[ast.AST] = source.scope_of(node)
        while scope is not None:
            values = [value_of(one, node.id) for one in source.bindings(node.id, scope) if isinstance(one, (ast.Assign, ast.AnnAssign))]
            for value in values:
                if value is not None:
                    yield from hooks_of(source, value, depth - 1)
            if values or scope is source.tree:
                break
            scope = source.scope_of(scope)
        for one in source.functions_named(node.id):
            if not isinstance(source.parent(one), ast.ClassDef):
                yield Hook(one, 0, {})
        for kind in _classes_of(source, node):
            yield from _methods(source, kind, "__call__")
    elif isinstance(node, ast.Attribute):
        for kind in _classes_of(source, node.value):
            yield from _methods(source, kind, node.attr)
    elif isinstance(node, ast.Call):
        if last_name(node.func) == "partial" and node.args:
            for hook in hooks_of(source, node.args[0], depth - 1):
                taken = dict(zip(parameters_of(hook.code)[hook.given:], node.args[1:]))
                yield hook._replace(given=hook.given + len(node.args) - 1, bound={**hook.bound, **taken, **_by_name(node)})
            return
        for kind in _classes_of(source, node):
            yield from _methods(source, kind, "__call__")
        for maker in hooks_of(source, node.func, depth - 1):
            names = parameters_of(maker.code)[maker.given:]
            bound = {**maker.bound, **dict(zip(names, node.args)), **_by_name(node)}
            for returned in _returned(source, maker.code):
                for hook in hooks_of(source, returned, depth - 1):
                    yield hook._replace(bound={**bound, **hook.bound})


def kept_in(source: Source, hook: Hook, plain: int) -> Iterator[HookKeep]:
    """What it adds to containers of what the framework gives it. `plain`: so many of the first parameters have no tensors (the module)."""
    names = set(parameters_of(hook.code)[hook.given + plain:]) | ({hook.code.args.vararg.arg} if hook.code.args.vararg is not None else set())
    body = hook.code.body if isinstance(hook.code.body, list) else [hook.code.body]
    for node in (one for part in body for one in ast.walk(part)):
        pair = element_and_container(node) if isinstance(node, ast.Call) else None
        if pair is None and isinstance(node, ast.AugAssign) and isinstance(node.value, (ast.List, ast.Tuple)):
            pair = (node.value, node.target)
        kept = next((name for name in sorted(names) if pair is not None and _is_kept(source, pair[0], name)), None)
        if pair is not None and kept is not None:
            yield HookKeep(source.statement_of(node), pair[1], pair[0], kept)


def _is_kept(source: Source, value: ast.expr, name: str) -> bool:
    """The value has the parameter itself, or what is computed from it on the device: not its shape, a number or a copy on the CPU."""
    if contains_call([value], "cpu", "size", *NUMBERS):
        return False
    uses = [one for one in ast.walk(value) if isinstance(one, ast.Name) and one.id == name]
    return any(getattr(source.parent(one), "attr", "") not in _PLAIN for one in uses)


def _by_name(call: ast.Call) -> Dict[str, ast.expr]:
    return {one.arg: one.value for one in call.keywords if one.arg is not None}


def _returned(source: Source, code: Union[Function, ast.Lambda]) -> Iterator[ast.expr]:
    if isinstance(code, ast.Lambda):
        yield code.body
        return
    for one in ast.walk(code):
        if isinstance(one, ast.Return) and one.value is not None and source.function_of(one) is code:
            yield one.value


def _classes_of(source: Source, node: ast.AST, depth: int = _STEPS) -> Iterator[ast.ClassDef]:
    """The classes of this file that an expression is an object of, as far as it shows."""
    if depth == 0:
        return
    text = text_of(node)
    if isinstance(node, ast.Call):
        kind = source.classes.get(text_of(node.func))
        if kind is not None:
            yield kind
    elif text == "self":
        owner = source.class_of(node)
        if owner is not None:
            yield owner
    elif text in source.classes:
        yield source.classes[text]
    elif text:
        for _, statement in source.bound_anywhere(text):
            value = value_of(statement, text)
            if isinstance(statement, (ast.Assign, ast.AnnAssign)) and value is not None:
                yield from _classes_of(source, value, depth - 1)


def _methods(source: Source, kind: ast.ClassDef, name: str, depth: int = _STEPS) -> Iterator[Hook]:
    method = source.methods(kind).get(name)
    if method is not None:
        yield Hook(method, 0 if any(text_of(one) == "staticmethod" for one in method.decorator_list) else 1, {})
    for base in kind.bases:
        parent = source.classes.get(text_of(base))
        if method is None and parent is not None and depth > 0:
            yield from _methods(source, parent, name, depth - 1)
