"""The patterns of source code that keep GPU memory. Each rule yields the position, the reason, and what to write instead."""
from __future__ import annotations

import ast
import re
from typing import Dict, Iterator, List, NamedTuple, Optional, Set, Tuple

from vramtrack.check_hooks import Hook, HookKeep, hooks_of, kept_in
from vramtrack.check_scopes import Place
from vramtrack.check_source import Source
from vramtrack.check_syntax import FUNCTIONS, LOOPS, Function, Loop, contains_call, index_of, last_name, parameters_of, targets_of, text_of
from vramtrack.check_values import FACTORIES, Holds, Values, contains_state, element_and_container, has_slice


class Finding(NamedTuple):
    rule: str
    node: ast.AST  # the statement, or the decorator
    reason: str
    fix: str


class Keep(NamedTuple):
    """A statement that puts a value into something that may outlive it."""

    statement: ast.AST
    container: ast.expr
    value: ast.expr
    key: Optional[ast.expr]  # in container[key] = value


_MODULE_HOOKS = {
    "register_forward_hook", "register_forward_pre_hook", "register_backward_hook", "register_full_backward_hook", "register_full_backward_pre_hook",
    "register_module_forward_hook", "register_module_forward_pre_hook", "register_module_full_backward_hook", "register_state_dict_pre_hook",
}
_COMPILERS = {
    "torch.compile": "torch.compile", "torch.jit.script": "torch.jit.script", "torch.jit.trace": "torch.jit.trace", "torch.cuda.make_graphed_callables": "make_graphed_callables",
    "jax.jit": "jax.jit", "jax.pmap": "jax.pmap", "tensorflow.function": "tf.function",
}
_PER_STEP = {"torch.cuda.CUDAGraph": "a CUDA graph", "torch.cuda.Stream": "a stream"}
#: Functions that run once for each object, or that trainers call once per run, not per step or epoch.
_ONCE = re.compile(r"^(__new__|__post_init__|_*init(ialize)?(_\w+)?|setup|build|configure_\w+|prepare_data|on_(train|fit|init|pretrain_routine)_(begin|start|end))$")
#: Parameters with few values in a program: layers, devices, kinds; and those with another value in each step or request.
_FIXED = re.compile(r"(^|_)(name|layer|device|dtype|type|kind|mode|rank|group|head|level|stage|block|module|stream|max)s?(_|$)")
#: and those that give the length of the input
_LENGTH = re.compile(r"^(n|size|length|batch_size|(\w+_)?(len|seqlen|tokens|positions))$")
_ANOTHER = re.compile(r"(^|_)(step|iteration|batch_idx|batch_id|request|request_id|req_id|uid|uuid|session|session_id|prompt|query|sentence|question|url)$")
#: Containers that only grow. Other classes (weak references, caches with a size, queues) are not reported.
_GROWING = {"list", "dict", "set", "deque", "defaultdict", "OrderedDict", "Counter"}


class Rules:
    def __init__(self, source: Source) -> None:
        self._source = source
        self._values = Values(source)
        self._keeps = list(self._find_keeps())

    def findings(self) -> List[Finding]:
        """In line order, one per statement and one per loop without no_grad()."""
        if not self._source.frameworks:
            return []
        found = [*self._kept(), *self._accumulated(), *self._passed_on(), *self._caches(), *self._cached_functions(), *self._exceptions(), *self._hooks(),
                 *self._backward_calls(), *self._compiled(), *self._per_step()]
        loops = {loop for one in found if one.rule == "kept-graph" for loop in self._source.loops_of(one.node)}
        found += self._evaluations(loops)
        first: Dict[ast.AST, Finding] = {}
        for one in found:
            first.setdefault(one.node, one)
        return sorted(first.values(), key=lambda one: (one.node.lineno, one.node.col_offset))  # type: ignore[attr-defined]

    # Where values are kept.

    def _find_keeps(self) -> Iterator[Keep]:
        for call in self._source.calls:
            pair = element_and_container(call)
            if pair is not None and isinstance(self._source.parent(call), ast.Expr):
                yield Keep(self._source.statement_of(call), pair[1], pair[0], None)
        for node in ast.walk(self._source.tree):
            if isinstance(node, ast.Assign):
                for target in targets_of(node):
                    if isinstance(target, ast.Subscript) and not has_slice(target):
                        yield Keep(node, target.value, node.value, index_of(target))
            elif isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Add) and isinstance(node.value, (ast.List, ast.ListComp)):
                yield Keep(node, node.target, node.value, None)

    def _is_long_lived(self, container: ast.expr) -> bool:
        """Whether it outlives the function: it belongs to the module, a class, an object after its __init__, a default argument, or the
        function that returns this one."""
        base = _base(container)
        place, function = self._source.place(base), self._source.function_of(container)
        if place is None or function is None:
            return False
        if place.is_attribute:
            return self._source.is_of_its_class(base) and not self._runs_once(function)
        if self._source.parameter(place) is not None:
            return not self._source.bindings(place) and isinstance(self._source.default_of(place), (ast.List, ast.Dict, ast.Set))
        return place.owner is self._source.tree or place.owner is not function and self._is_returned(function)

    def _is_returned(self, function: Function) -> bool:
        """Whether it is a nested function that the outer one returns to its caller."""
        maker, place = self._source.function_of(function), self._source.place_of_definition(function)
        return maker is not None and any(isinstance(one, ast.Return) and self._source.scope_of(one) is maker and place in self._source.places_in(one.value) for one in ast.walk(maker))

    def _runs_once(self, function: Function, depth: int = 3) -> bool:
        """Whether its name shows it, or it is called in this file, and only from functions that run once."""
        callers = self._source.callers(function) if depth > 0 and not _ONCE.search(function.name) else []
        around = [self._source.function_of(call) for call in callers if not self._source.loops_of(call)]
        return bool(_ONCE.search(function.name)) or bool(callers) and len(around) == len(callers) and all(one is not None and self._runs_once(one, depth - 1) for one in around)

    def _is_bounded(self, place: Place, is_local: bool) -> bool:
        """Whether it shrinks anywhere, its size is checked, it is created anew in use, or its type has a bound. A local variable is created
        anew with each call."""
        if self._source.drops(place):
            return True
        is_made = self._source.default_of(place) is not None
        for statement, is_known in self._source.made_by(place):
            if not isinstance(statement, (ast.Assign, ast.AnnAssign)):
                continue
            is_made = is_made or is_known
            value, where = statement.value, self._source.scope_of(statement)
            if value is not None and _has_bound(value):
                return True
            if not is_local and isinstance(where, FUNCTIONS) and where is not place.owner and not _ONCE.search(where.name):
                return True  # a method that starts over
        return not is_local and not is_made  # not created in this file, so nothing is known about it

    def _growing_loop(self, container: ast.expr, statement: ast.AST) -> Optional[Loop]:
        """The outermost loop over data in which a local container only grows."""
        place, scope = self._source.place(_base(container)), self._source.scope_of(statement)
        bindings = self._source.bindings(place, scope) if place is not None else []
        found: Optional[Loop] = None
        for loop in self._source.loops_of(statement):
            if any(self._source.is_in(one, loop) and not self._is_growth(one, place) for one in bindings) or any(one is loop for one in bindings):
                break
            if self._source.is_over_data(loop) or self._source.is_trained(loop):
                found = loop
        return found

    def _is_growth(self, statement: ast.AST, place: Optional[Place]) -> bool:
        """Whether the statement adds to the previous value of the place: total += x, total = total + x."""
        if isinstance(statement, ast.AugAssign):
            return True
        value = getattr(statement, "value", None)
        return isinstance(statement, ast.Assign) and isinstance(value, ast.BinOp) and place in self._source.places_in(value)

    def _is_evaluated(self, loop: Loop, function: Optional[Function]) -> bool:
        """Whether a loop without backward() is marked as evaluation, or takes its rounds from data outside of a network."""
        if self._source.is_trained(function or self._source.tree):
            return False
        owner = self._source.class_of(loop)
        if contains_call([function or self._source.tree], "eval"):
            return True
        return not self._source.is_network(owner) and self._source.is_over_data(loop) and not _counts(loop)

    def _kept(self) -> Iterator[Finding]:
        for keep in self._keeps:
            text, place = text_of(_base(keep.container)), self._source.place(_base(keep.container))
            if not text or place is None:
                continue
            holds = self._values.holds(keep.value)
            if holds < Holds.DEVICE or keep.key is not None and self._values.is_tensor(keep.container):
                continue
            if keep.key is not None and (self._values.holds(keep.key) in (Holds.SHAPE, Holds.TENSOR, Holds.DEVICE, Holds.GRAPH) or not self._key_is_fresh(keep)):
                continue  # a cache, or one entry that is overwritten
            what = ast_text(keep.value)
            if self._is_long_lived(keep.container):
                if not self._is_bounded(place, is_local=False):
                    yield Finding("kept-graph" if holds == Holds.GRAPH else "kept-tensor", keep.statement,
                                  f"`{text}` outlives the call, and nothing in this file removes anything from it: each call leaves another {_what_is_kept(what, holds)}",
                                  _fix_of_keeping(what, holds, text))
                continue
            loop = self._growing_loop(keep.container, keep.statement)
            if loop is None or self._is_bounded(place, is_local=True) or self._source.needed_by_backward(place):
                continue
            function = self._source.function_of(keep.statement)
            if holds == Holds.GRAPH and (self._source.is_trained(loop) or self._is_evaluated(loop, function)):
                yield Finding("kept-graph", keep.statement, f"`{text}` lives longer than the loop on line {loop.lineno}: each iteration leaves another {_what_is_kept(what, holds)}",
                              _fix_of_keeping(what, holds, text) if self._source.is_trained(loop) else
                              f"run the loop under `with torch.inference_mode():` (or torch.no_grad()), and keep `{what}.cpu()` if the results need not stay on the GPU")
            elif _is_copy_of_weights(keep.value) and self._source.is_trained(loop):
                yield Finding("kept-weights", keep.statement, f"`{text}` gets another copy of all weights in each iteration of the loop on line {loop.lineno}, on the device of the model",
                              "save the copy to disk with torch.save(), or keep the last or the best one only, on the CPU")

    def _key_is_fresh(self, keep: Keep) -> bool:
        """Whether the key is different in each round or call: a step number, an identity; not one of a fixed set of names."""
        loops = self._source.loops_of(keep.statement)
        names = self._source.places_in(keep.key)
        over = {place for loop in loops if self._source.is_over_data(loop) for place in self._source.places_of(loop)}
        counted = {place for loop in loops for one in ast.walk(loop) if isinstance(one, ast.AugAssign) for place in self._source.places_of(one)}
        return bool(names & (over | counted))

    def _accumulated(self) -> Iterator[Finding]:
        """total += loss; total = total + loss; smooth = 0.9 * smooth + 0.1 * loss"""
        for node in ast.walk(self._source.tree):
            if isinstance(node, ast.AugAssign):
                target: ast.expr = node.target
                added = node.value if not isinstance(node.value, (ast.List, ast.ListComp)) else None
            elif isinstance(node, ast.Assign) and len(node.targets) == 1:
                target = node.targets[0]
                added = self._other_part(node.value, self._source.place(target))
            else:
                continue
            if added is None:
                continue
            base = _base(target)
            text, place = text_of(base), self._source.place(base)
            if not text or place is None or self._values.holds(added) != Holds.GRAPH:
                continue
            loop = self._growing_loop(target, node)
            if loop is None or self._source.needed_by_backward(place) or self._is_reset(place, loop):
                continue
            if isinstance(target, ast.Attribute) and not self._source.is_of_its_class(target) or self._is_result_of_network(node):
                continue
            if self._source.is_trained(loop) or self._is_evaluated(loop, self._source.function_of(node)):
                what = ast_text(added)
                yield Finding("kept-graph", node, f"`{text}` becomes part of the graph: it keeps the graphs of all iterations of the loop on line {loop.lineno}, with their activations",
                              f"add a number: `{_detached(what)}`, or `{what}.item()` where waiting for the GPU does not matter" if what.isidentifier() else
                              f"add a number: append .detach() or .item() to the computation in `{what}`")

    def _is_reset(self, place: Place, loop: Loop) -> bool:
        return any(self._source.is_in(one, loop) and not self._is_growth(one, place) for one in self._source.bindings(place))

    def _other_part(self, value: ast.expr, place: Optional[Place]) -> Optional[ast.expr]:
        """For a sum that has the place itself on one side: `0.9 * smooth + 0.1 * loss` -> `0.1 * loss`."""
        if place is None or not isinstance(value, ast.BinOp) or not isinstance(value.op, (ast.Add, ast.Sub)):
            return None
        is_left, is_right = (place in self._source.places_in(side) for side in (value.left, value.right))
        return value.right if is_left and not is_right else value.left if is_right and not is_left else None

    def _is_result_of_network(self, node: ast.AST) -> bool:
        function = self._source.function_of(node)
        return function is not None and self._source.is_network(self._source.class_of(node)) and not self._source.is_trained(function)

    # Through a function of this file.

    def _sinks(self) -> Dict[Function, List[Tuple[int, str]]]:
        """The functions that keep an argument: the number of the argument, and where it stays."""
        found: Dict[Function, List[Tuple[int, str]]] = {}
        stores: List[Tuple[ast.AST, ast.expr, ast.expr]] = [(one.statement, one.container, one.value) for one in self._keeps if one.key is None]
        stores += [(node, node.target, node.value) for node in ast.walk(self._source.tree) if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Attribute)]
        for statement, container, value in stores:
            function, place = self._source.function_of(statement), self._source.place(_base(container))
            if function is None or place is None or not self._is_long_lived(container) or self._source.drops(place):
                continue
            kept = value.left if isinstance(value, ast.BinOp) else value
            given = self._source.place(kept)
            if given is not None and given.owner is function and given.name in parameters_of(function) and not self._source.bindings(given):
                found.setdefault(function, []).append((parameters_of(function).index(given.name) - int(self._is_method(function)), text_of(container)))
        return found

    def _is_method(self, function: Function) -> bool:
        return isinstance(self._source.scope_of(function), ast.ClassDef)

    def _passed_on(self) -> Iterator[Finding]:
        for function, kept in self._sinks().items():
            for call in self._source.callers(function):
                if self._is_method(function) != isinstance(call.func, ast.Attribute) or not any(self._source.is_trained(loop) for loop in self._source.loops_of(call)):
                    continue
                for position, where in kept:
                    argument = call.args[position] if 0 <= position < len(call.args) else None
                    if argument is not None and self._values.holds(argument) == Holds.GRAPH:
                        what = ast_text(argument)
                        yield Finding("kept-graph", self._source.statement_of(call),
                                      f"`{function.name}` (line {function.lineno}) keeps its argument in `{where}`: each iteration leaves another {_what_is_kept(what, Holds.GRAPH)}",
                                      _fix_of_keeping(what, Holds.GRAPH, where))

    # Caches.

    def _caches(self) -> Iterator[Finding]:
        for keep in self._keeps:
            if keep.key is None or isinstance(keep.value, (ast.Constant, ast.JoinedStr)):
                continue
            key = self._values.holds(keep.key)
            chosen = self._chosen_by_callers(keep) if key == Holds.NOTHING else ""
            if key == Holds.NOTHING and not chosen or self._values.is_tensor(keep.container):
                continue
            place = self._source.place(_base(keep.container))
            if place is None or not self._is_long_lived(keep.container) or self._is_bounded(place, is_local=False):
                continue
            if key <= Holds.SHAPE and self._values.holds(keep.value) < (Holds.DEVICE if chosen else Holds.TENSOR) and not self._makes_memory(keep.value):
                continue  # numbers, a compiled kernel, or nothing is known about it
            text = text_of(_base(keep.container))
            if chosen:
                yield Finding("unbounded-cache", keep.statement, f"`{text}` is keyed by `{chosen}`, which the callers choose, and is never emptied: it grows with every new one",
                              f"give it a bound: functools.lru_cache(maxsize=...) on the function, or remove the oldest entry of `{text}` when len() exceeds a limit")
                continue
            yield Finding("unbounded-cache", keep.statement,
                          f"`{text}` is keyed by {'tensors, and no two of them are the same key,' if key > Holds.SHAPE else 'the shape of the input'} and is never emptied: "
                          f"it grows with every new {'tensor' if key > Holds.SHAPE else 'shape'}",
                          "give it a bound: functools.lru_cache(maxsize=...) on the shape as a tuple, or remove the oldest entry when len() exceeds a limit")

    def _chosen_by_callers(self, keep: Keep) -> str:
        """The parameter in the key, if its values are not a fixed set like those of names, layers and devices: it is a length (and the kept
        value has that length), or its name suggests another value in each call, or a caller takes it from a loop over data."""
        function = self._source.function_of(keep.statement)
        if function is None or keep.key is None:
            return ""
        names = self._source.places_in(keep.key)
        names |= {one for name in names if name.owner is function for value in self._source.values(name) for one in self._source.places_in(value)}
        for place in sorted(names, key=lambda one: one.name):
            parameter = self._source.parameter(place)
            if parameter is None or place.owner is not function or self._source.bindings(place) or _FIXED.search(place.name) or _is_of_fixed_set(parameter.annotation):
                continue
            if _ANOTHER.search(place.name) or _LENGTH.search(place.name) and self._is_size(place, keep.value) or self._is_given_by_a_loop(function, place.name):
                return place.name
        return ""

    def _is_size(self, place: Place, value: ast.expr) -> bool:
        """Whether the place is a size of the tensor that the value is created from."""
        values = [value, *(one for name in self._source.places_in(value) for one in self._source.values(name))]
        return any(isinstance(one, ast.Call) and last_name(one.func) in FACTORIES and any(place in self._source.places_in(size) for size in one.args)
                   for each in values for one in ast.walk(each))

    def _is_given_by_a_loop(self, function: Function, name: str) -> bool:
        position = parameters_of(function).index(name) - int(self._is_method(function)) if name in parameters_of(function) else -1
        for call in self._source.callers(function):
            given = [one.value for one in call.keywords if one.arg == name] or (call.args[position : position + 1] if position >= 0 else [])
            over = {place for loop in self._source.loops_of(call) if self._source.is_over_data(loop) for place in self._source.places_of(loop)}
            if any(over & self._source.places_in(one) for one in given):
                return True
        return False

    def _makes_memory(self, value: ast.expr) -> bool:
        """Whether it is a CUDA graph, a stream or a compiled function, each with memory of its own."""
        values = [one for place in self._source.places_in(value) for one in self._source.values(place)]
        return any(isinstance(one, ast.Call) and self._source.full_name(one.func) in {**_COMPILERS, **_PER_STEP} for part in [value, *values] for one in ast.walk(part))

    def _cached_functions(self) -> Iterator[Finding]:
        for function in self._source.functions:
            for decorator in function.decorator_list:
                if not _is_unbounded_cache(decorator):
                    continue
                which = self._tensor_parameter(function)
                if which is None and (not self._source.has_object(function) or self._returned(function) < Holds.DEVICE):
                    continue
                yield Finding("unbounded-cache", function,
                              f"the cache of `{function.name}` has no bound and keeps " + (f"each tensor `{which}` that it was called with, and each result" if which else "each result on the device, and the object"),
                              "give it a bound (lru_cache(maxsize=128)), and key it by the shape or by numbers rather than by a tensor")

    def _returned(self, function: Function) -> Holds:
        return max((self._values.holds(one.value) for one in ast.walk(function) if isinstance(one, ast.Return) and one.value is not None), default=Holds.NOTHING)

    def _tensor_parameter(self, function: Function) -> Optional[str]:
        for one in ast.walk(function):
            place = self._source.place(one) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Load) else None
            if place is not None and place.owner is function and self._source.parameter(place) is not None and self._values.holds(one) >= Holds.TENSOR:
                return place.name
        return None

    # Exceptions.

    def _exceptions(self) -> Iterator[Finding]:
        for keep in self._keeps:
            handler = next((one for one in self._source.above(keep.statement) if isinstance(one, ast.ExceptHandler)), None)
            if handler is None or keep.key is not None and not self._key_is_fresh(keep) and not self._is_long_lived(keep.container):
                continue
            parts = keep.value.elts if isinstance(keep.value, (ast.Tuple, ast.List)) else keep.value.values if isinstance(keep.value, ast.Dict) else [keep.value]
            kept, holds = next(((one, holds) for one in parts for holds in [self._frames_in(one, handler)] if holds), (None, ""))
            attempt = self._source.parent(handler)
            if kept is None or not isinstance(attempt, ast.Try) or not self._uses_device(attempt.body) or self._is_cleaned(handler, holds):
                continue
            place, is_local = self._source.place(_base(keep.container)), not self._is_long_lived(keep.container)
            if place is not None and not (is_local and self._growing_loop(keep.container, keep.statement) is None) and not self._is_bounded(place, is_local):
                yield Finding("kept-exception", keep.statement,
                              f"`{ast_text(kept)}` refers to the frames of the failed call, which keep every tensor that was a local variable when the exception was raised",
                              "keep the text: str(error) or traceback.format_exc()" + ("; if the object is needed, call error.with_traceback(None) first" if holds == "exception" else ""))

    def _uses_device(self, body: List[ast.stmt]) -> bool:
        for statement in body:
            for one in ast.walk(statement):
                if isinstance(one, ast.Call) and (last_name(one.func) in ("backward", "cuda") or self._values.is_network(one.func) or self._values.holds(one) >= Holds.DEVICE):
                    return True
        return False

    def _frames_in(self, node: ast.AST, handler: ast.ExceptHandler, depth: int = 4) -> str:
        """How an expression refers to the frames of the failed call: by the "exception" or by its "traceback"; empty if it does not."""
        if isinstance(node, ast.Attribute):
            if node.attr in ("__traceback__", "tb_next", "tb_frame", "f_back"):
                return "traceback" if self._frames_in(node.value, handler, depth) else ""
            return "exception" if node.attr in ("__cause__", "__context__") and self._frames_in(node.value, handler, depth) else ""
        if isinstance(node, ast.Subscript) and _is_exc_info(node.value):
            return _part_of_exc_info(getattr(node.slice, "value", node.slice))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "with_traceback":
            return self._frames_in(node.func.value, handler, depth) if node.args and not _is_none(node.args[0]) else ""
        if isinstance(node, ast.Call):
            return "traceback" if _is_exc_info(node) else ""
        if not isinstance(node, ast.Name) or depth == 0:
            return ""
        place = self._source.place(node)
        bindings = self._source.bindings(place) if place is not None else []
        if handler in bindings:
            return "exception"
        for one in bindings:
            if not self._source.is_in(one, handler):
                continue
            if isinstance(one, (ast.For, ast.AsyncFor)):
                return "traceback" if isinstance(one.iter, ast.Call) and last_name(one.iter.func) in ("walk_tb", "walk_stack") else ""
            if isinstance(one, ast.Assign):
                for target in one.targets:
                    if isinstance(target, ast.Tuple) and _is_exc_info(one.value):
                        return next((_part_of_exc_info(n) for n, part in enumerate(target.elts) if text_of(part) == node.id), "")
                return self._frames_in(one.value, handler, depth - 1)
        return ""

    @staticmethod
    def _is_cleaned(handler: ast.ExceptHandler, holds: str) -> bool:
        """Whether the frames are cleared, or the kept exception is separated from them. A traceback kept by itself remains unchanged."""
        for one in (one for part in handler.body for one in ast.walk(part)):
            if isinstance(one, ast.Call) and last_name(one.func) == "clear_frames":
                return True
            if holds == "exception" and isinstance(one, ast.Call) and last_name(one.func) == "with_traceback" and one.args and _is_none(one.args[0]):
                return True
            if holds == "exception" and isinstance(one, ast.Assign) and _is_none(one.value) and any(last_name(target) == "__traceback__" for target in one.targets):
                return True
        return False

    # Hooks.

    def _hooks(self) -> Iterator[Finding]:
        for call in self._source.calls:
            name = last_name(call.func)
            is_for_parameter = name == "register_hook" and isinstance(call.func, ast.Attribute) and self._is_parameter(call.func.value)
            if name not in _MODULE_HOOKS and not is_for_parameter:
                continue
            many = [loop for loop in self._source.loops_of(call) if self._source.is_over_data(loop) or self._source.is_trained(loop)]
            owner, function = self._source.class_of(call), self._source.function_of(call)
            in_forward = function is not None and function.name in ("forward", "training_step", "validation_step") and self._source.is_network(owner)
            if (many or in_forward) and not self._is_removed(call):
                yield Finding("hook", self._source.statement_of(call),
                              f"each {'iteration of the loop on line ' + str(many[-1].lineno) if many else 'call of ' + function.name + '()' if function else 'call'} adds another hook, and none is removed: "
                              "the hooks, and what they refer to, add up",
                              "register the hook once before the loop, or keep the handle and call handle.remove()")
            yield from self._collecting_hook(call, name in _MODULE_HOOKS)

    def _is_parameter(self, receiver: ast.expr) -> bool:
        return isinstance(receiver, ast.Name) and any(
            contains_call([loop.iter], "parameters", "named_parameters") for loop in self._source.loops_of(receiver)
            if isinstance(loop, (ast.For, ast.AsyncFor)) and self._source.place(receiver) in self._source.places_of(loop)) or last_name(receiver) in ("weight", "bias")

    def _is_removed(self, call: ast.Call) -> bool:
        function = self._source.function_of(call)
        return contains_call([function if function is not None else self._source.tree], "remove") or isinstance(self._source.parent(call), (ast.Return, ast.withitem))

    def _collecting_hook(self, call: ast.Call, is_of_module: bool) -> Iterator[Finding]:
        """Reports a hook that puts its arguments into a container that outlives it."""
        if self._is_removed(call) or self._source.function_of(call) is None and not self._runs_over_data(self._source.tree):
            return
        for argument in [*call.args[:1], *(one.value for one in call.keywords if one.arg == "hook")]:
            hooks: List[Tuple[Optional[Hook], HookKeep]] = [(hook, keep) for hook in hooks_of(self._source, argument) for keep in kept_in(self._source, hook, int(is_of_module))]
            if not is_of_module and isinstance(argument, ast.Attribute) and argument.attr in ("append", "appendleft", "add"):  # register_hook(gradients.append)
                hooks.append((None, HookKeep(self._source.statement_of(call), argument.value, argument, "the gradient")))
            for hook, keep in hooks:
                place = self._lasting(_base(keep.container), hook)
                if place is None or self._is_bounded(place, is_local=self._is_made_in_a_call(place)):
                    continue
                text = text_of(_base(keep.container))
                has_graph = is_of_module and not contains_call([keep.value], "detach")
                what = f"`{keep.name}`" if hook is not None else keep.name
                yield Finding("kept-graph" if has_graph else "kept-tensor", keep.statement,
                              f"the hook puts {what} of each pass{', with its graph,' if has_graph else ''} into `{text}`, which is never emptied",
                              f"keep what is needed of it as .detach().cpu(), and empty `{text}` after each step; remove the hook when done")

    def _lasting(self, base: ast.expr, hook: Optional[Hook]) -> Optional[Place]:
        """The place of a container that outlives the hook that adds to it. None: it ends with the hook, or nothing is known about it."""
        place, root = self._source.place(base), self._source.root(base)
        first = self._source.place(root) if root is not None else None
        if place is None or first is None or first.owner is None and not place.is_attribute:
            return None
        if first.owner in (None, self._source.tree):
            return place
        if self._source.bindings(first):
            is_own = hook is not None and first.owner is hook.code
            return place if not is_own and isinstance(first.owner, ast.AST) and self._runs_over_data(first.owner, place) else None
        if place.is_attribute:  # of the module, or of the object of the method
            return place
        if hook is not None and first in hook.bound:
            return self._lasting(_base(hook.bound[first]), None)
        return place if isinstance(self._source.default_of(first), (ast.List, ast.Dict, ast.Set)) else None

    def _is_made_in_a_call(self, place: Place) -> bool:
        return isinstance(place.owner, (*FUNCTIONS, ast.Lambda)) and self._source.parameter(place) is None

    def _runs_over_data(self, scope: ast.AST, place: Optional[Place] = None) -> bool:
        """Whether it contains a loop that trains, or runs a network over data with gradients on, and does not create the container anew. A
        program that collects features without gradients wants them all."""
        bindings = self._source.bindings(place) if place is not None else []
        return any(isinstance(one, LOOPS) and (self._source.is_trained(one) or self._source.is_over_data(one) and self._runs_network(one))
                   and not any(self._source.is_in(each, one) for each in bindings) for one in ast.walk(scope))

    def _runs_network(self, loop: Loop) -> bool:
        return any(isinstance(one, ast.Call) and self._values.is_network(one.func) and not self._values.without_gradients(one) for one in ast.walk(loop))

    # backward().

    def _backward_calls(self) -> Iterator[Finding]:
        for call in self._source.calls:
            if last_name(call.func) not in ("backward", "manual_backward"):
                continue
            options = {one.arg: one.value for one in call.keywords}
            loops = self._source.loops_of(call)
            if not loops:
                continue
            inner = loops[0]
            if _is_true(options.get("retain_graph")):
                others = [one for one in ast.walk(inner) if one is not call and isinstance(one, ast.Call) and (
                    last_name(one.func) in ("backward", "manual_backward") or last_name(one.func) == "grad" and "autograd" in text_of(one.func))]
                if not others and self._source.is_over_data(inner):
                    yield Finding("retain-graph", self._source.statement_of(call),
                                  "retain_graph=True, and no other backward() in the loop needs the graph: where a variable is carried into the next iteration, the graphs of all iterations stay connected",
                                  "leave retain_graph out; if backward() then fails, detach what is carried over: hidden = hidden.detach()")
            if _is_true(options.get("create_graph")) and not contains_call([inner], "zero_grad", "autograd") and not any(
                    isinstance(one, ast.Attribute) and one.attr == "grad" and isinstance(one.ctx, ast.Store) for one in ast.walk(inner)):
                yield Finding("retain-graph", self._source.statement_of(call),
                              "create_graph=True makes each parameter and its gradient refer to each other, and nothing in the loop breaks the cycle",
                              "use torch.autograd.grad(..., create_graph=True), or call optimizer.zero_grad(set_to_none=True) in each iteration")

    # Compiling, graphs and streams.

    def _compiled(self) -> Iterator[Finding]:
        for call in self._source.calls:
            name = _COMPILERS.get(self._source.full_name(call.func))
            loop = self._loop_without_condition(call)
            if name is not None and loop is not None:
                yield Finding("compile-in-loop", self._source.statement_of(call), f"{name} makes a new function in each iteration of the loop on line {loop.lineno}; what was compiled for each stays in its cache",
                              f"call {name} once before the loop")

    def _per_step(self) -> Iterator[Finding]:
        for call in self._source.calls:
            what = _PER_STEP.get(self._source.full_name(call.func))
            loop = self._loop_without_condition(call)
            if what is not None and loop is not None:
                yield Finding("made-per-step", self._source.statement_of(call), f"{what} is made in each iteration of the loop on line {loop.lineno}; each has memory of its own that the others cannot use",
                              "create it once before the loop and reuse it")

    def _loop_without_condition(self, call: ast.Call) -> Optional[Loop]:
        """The loop over data in which it runs every time: not guarded by `if ... is None` or `not in cache`, nor in a `while` that ends
        because of its result."""
        statement = self._source.statement_of(call)
        pair = element_and_container(statement.value) if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call) else None
        made = self._source.places_of(statement) | ({self._source.place(pair[1])} if pair is not None else set())
        for one in self._source.above(call):
            if isinstance(one, ast.While) and made & self._source.places_in(one.test):
                return None
            if isinstance(one, (ast.If, ast.IfExp, *FUNCTIONS, ast.Lambda, ast.ClassDef)):
                return None
            if isinstance(one, LOOPS) and call is not getattr(one, "iter", None) and self._source.is_over_data(one):
                return one if one in self._source.loops_of(call) else None
        return None

    # Evaluation.

    def _evaluations(self, reported: Set[Loop]) -> Iterator[Finding]:
        """Reports a loop over data that calls a network in eval() mode, with gradients on and without backward()."""
        seen: Set[ast.AST] = set(reported)
        for call in self._source.calls:
            loops = [loop for loop in self._source.loops_of(call) if self._source.is_over_data(loop)]
            if not loops or loops[-1] in seen or not self._values.is_network(call.func) or self._values.without_gradients(call):
                continue
            function = self._source.function_of(call)
            scope: ast.AST = function if function is not None else self._source.tree
            network = text_of(call.func)
            if not self._is_set_to_eval(self._source.place(call.func), scope, call) or self._source.is_trained(scope) or contains_call([scope], "grad", "requires_grad_", "requires_grad"):
                continue
            if any(isinstance(one, (ast.Yield, ast.YieldFrom)) for one in ast.walk(scope)):
                continue
            seen.add(loops[-1])
            yield Finding("no-grad", self._source.statement_of(call), f"`{network}` runs with gradients enabled during evaluation: each forward pass keeps all activations for a backward() that never comes",
                          "put the loop under `with torch.inference_mode():`, or decorate the function with @torch.no_grad()")

    def _is_set_to_eval(self, network: Optional[Place], scope: ast.AST, call: ast.Call) -> bool:
        last: Optional[ast.Call] = None
        for one in self._source.calls:
            if one.lineno < call.lineno and isinstance(one.func, ast.Attribute) and self._source.scope_of(one) is scope:
                if one.func.attr in ("eval", "train") and network is not None and network in self._source.places_in(one.func.value):
                    last = one
        return last is not None and (last.func.attr == "eval") != bool(last.args and isinstance(last.args[0], ast.Constant) and last.args[0].value is True)  # type: ignore[attr-defined]


def check(text: str) -> List[Finding]:
    """The findings in one source text. Raises the exceptions of ast.parse()."""
    return Rules(Source(text)).findings()


def ast_text(node: ast.AST, limit: int = 60) -> str:
    """An expression in a form that fits into a sentence."""
    text = ast.unparse(node) if hasattr(ast, "unparse") else text_of(node) or "the value"  # Python 3.8 has no unparse()
    text = " ".join(text.split())
    return text if len(text) <= limit else text[:limit - 3] + "..."


def _base(container: ast.expr) -> ast.expr:
    """history["loss"] -> history; groups.setdefault(name, []) -> groups"""
    while isinstance(container, ast.Subscript) or isinstance(container, ast.Call) and last_name(container.func) in ("setdefault", "get") and isinstance(container.func, ast.Attribute):
        container = container.value if isinstance(container, ast.Subscript) else container.func.value  # type: ignore[union-attr]
    return container


def _detached(what: str) -> str:
    return f"{what}.detach()"


def _what_is_kept(what: str, holds: Holds) -> str:
    if holds == Holds.GRAPH:
        return f"`{what}` in memory, with its graph and the activations behind it"
    return f"`{what}` in GPU memory"


def _fix_of_keeping(what: str, holds: Holds, container: str) -> str:
    if holds == Holds.GRAPH:
        short = what if what.replace(".", "").replace("_", "").isalnum() else ""
        return f"keep the number ({short}.item()) or the values ({short}.detach().cpu())" if short else "keep a number (.item()) or the values (.detach().cpu()) instead of the tensor"
    return f"keep it on the CPU (.cpu()), or give `{container}` a bound: deque(maxlen=...), or remove what is old"


def _is_copy_of_weights(node: ast.expr) -> bool:
    return contains_call([node], "deepcopy", "clone") and (contains_state(node) or contains_call([node], "parameters", "named_parameters")) and not contains_call([node], "cpu")


def _is_unbounded_cache(decorator: ast.expr) -> bool:
    if isinstance(decorator, ast.Call) and last_name(decorator.func) == "lru_cache":
        bounds = [*decorator.args[:1], *(one.value for one in decorator.keywords if one.arg == "maxsize")]
        return any(isinstance(one, ast.Constant) and one.value is None for one in bounds)
    return text_of(decorator) in ("functools.cache", "cache")


def _has_bound(made: ast.expr) -> bool:
    """Whether the new value may not only grow: losses[-100:], deque(maxlen=8), LRUCache(); also as a field of a dataclass."""
    if not isinstance(made, ast.Call):
        return isinstance(made, ast.Subscript) and has_slice(made)
    if last_name(made.func) == "field":
        factory = next((one.value for one in made.keywords if one.arg == "default_factory"), None)
        return _has_bound(factory.body) if isinstance(factory, ast.Lambda) else factory is not None and last_name(factory) not in _GROWING
    return last_name(made.func) not in _GROWING or any(one.arg == "maxlen" for one in made.keywords) or last_name(made.func) == "deque" and len(made.args) == 2


def _is_of_fixed_set(annotation: Optional[ast.expr]) -> bool:
    return annotation is not None and last_name(annotation) in ("bool", "dtype", "device", "type", "Literal", "Enum")


def _is_exc_info(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and last_name(node.func) == "exc_info"


def _part_of_exc_info(position: object) -> str:
    """The part of (type, exception, traceback) at the position."""
    if isinstance(position, ast.UnaryOp):  # [-1]
        position = -getattr(position.operand, "value", 0)
    number = getattr(position, "value", position)
    return "exception" if number in (1, -2) else "traceback" if number in (2, -1) else ""


def _is_none(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _is_true(node: Optional[ast.expr]) -> bool:
    return isinstance(node, ast.Constant) and node.value is True


def _counts(loop: Loop) -> bool:
    """for step in range(...): a computation with many steps, whose results are its purpose."""
    return isinstance(loop, (ast.For, ast.AsyncFor)) and isinstance(loop.iter, ast.Call) and last_name(loop.iter.func) in ("range", "trange", "count")


