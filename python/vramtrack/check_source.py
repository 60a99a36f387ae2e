"""A Python source file as `check` reads it: its names, functions, loops and containers, by the syntax tree. Nothing is imported or run, and
only the standard library is needed, from Python 3.8 on: the program `vramtrack` carries this file."""
from __future__ import annotations

import ast
import re
from typing import Dict, Iterable, Iterator, List, Optional, Set, Tuple, Union

Function = Union[ast.FunctionDef, ast.AsyncFunctionDef]
Loop = Union[ast.For, ast.AsyncFor, ast.While]
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
LOOPS = (ast.For, ast.AsyncFor, ast.While)
#: Whose bodies are scopes of their own.
SCOPES = (*FUNCTIONS, ast.Lambda, ast.ClassDef)

#: Frameworks that hold GPU memory, and packages that bring one of them.
_FRAMEWORKS = {
    "torch": "torch", "torchvision": "torch", "lightning": "torch", "pytorch_lightning": "torch", "accelerate": "torch", "transformers": "torch",
    "diffusers": "torch", "timm": "torch", "jax": "jax", "flax": "jax", "optax": "jax", "tensorflow": "tensorflow", "keras": "tensorflow", "cupy": "cupy",
}
_WITHOUT_GRADIENTS = re.compile(r"(^|\W|_)(no_grad|inference_mode|inference_context|no_gradients)\b")
#: Loops that run as often as there is data, and not as often as there are layers.
_DATA = re.compile(
    r"(^|_)(loader|dataloader|dataset|data_?iter\w*|batches|minibatches|requests|queue|stream|samples|sequences|frames|videos|images|prompts|documents|"
    r"trainloader|testloader|valloader|(train|test|val|valid|eval)(_?(dl|iter|ds|set|data|loader|dataloader))?)$", re.IGNORECASE)
_COUNT = re.compile(r"(^|_)(n_?)?(steps?|epochs?|iters?|iterations?|episodes?|batches|updates|max_steps|total_steps|num_steps)$", re.IGNORECASE)
_MANY = 50  # a constant number of rounds from which a loop counts as one over data


def text_of(node: ast.AST) -> str:
    """A name or a chain of attributes ("self.losses"); other expressions have none."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        base = text_of(node.value)
        return f"{base}.{node.attr}" if base else ""
    return ""


def last_name(node: ast.AST) -> str:
    """The name that says what an expression is: `self.train_loader` -> train_loader, `heads[0]` -> heads, `loaders()` -> loaders."""
    if isinstance(node, ast.Call):
        return last_name(node.func)
    if isinstance(node, (ast.Subscript, ast.Starred, ast.Await)):
        return last_name(node.value)
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def targets_of(node: ast.AST) -> Iterator[ast.expr]:
    """What a statement binds, tuples taken apart."""
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
    """What a statement gives to the name: of `a, b = 1, 2`, its own part."""
    value: Optional[ast.expr] = getattr(statement, "value", None)
    if isinstance(statement, ast.Assign) and isinstance(value, (ast.Tuple, ast.List)):
        for target in statement.targets:
            if isinstance(target, (ast.Tuple, ast.List)) and len(target.elts) == len(value.elts):
                return next((right for left, right in zip(target.elts, value.elts) if name in names_in(left)), value)
    return value


def names_in(node: ast.AST) -> Set[str]:
    """Every name and chain of attributes in it."""
    return {text for text in (text_of(one) for one in ast.walk(node) if isinstance(one, (ast.Name, ast.Attribute))) if text}


class Source:
    """One file. REQUIRES: `text` is valid Python; ast.parse() raises SyntaxError, RecursionError or ValueError otherwise."""

    def __init__(self, text: str) -> None:
        self.lines = text.splitlines()
        self.tree = ast.parse(text)
        self.frameworks: Set[str] = set()
        self.functions: List[Function] = []
        self.classes: Dict[str, ast.ClassDef] = {}
        self.calls: List[ast.Call] = []
        self._modules: Dict[str, str] = {}  # what an imported name stands for
        self._parents: Dict[ast.AST, ast.AST] = {}
        self._bound: Dict[ast.AST, Dict[str, List[ast.AST]]] = {}  # by scope: the statements that bind a name
        self._dropped: Dict[ast.AST, Dict[str, List[ast.AST]]] = {}  # by scope: where a container gets smaller
        self._by_name: Dict[str, List[Function]] = {}
        self._calls_of: Dict[str, List[ast.Call]] = {}
        self._read(self.tree)

    def _read(self, root: ast.AST) -> None:
        waiting: List[Tuple[ast.AST, ast.AST]] = [(root, root)]
        while waiting:
            node, scope = waiting.pop()
            self._note(node, scope)
            inner = node if isinstance(node, SCOPES) else scope
            for child in ast.iter_child_nodes(node):
                self._parents[child] = node
                # Decorators, defaults and annotations belong to the scope around.
                outside = isinstance(node, SCOPES) and (child in getattr(node, "decorator_list", ()) or isinstance(child, ast.arguments))
                waiting.append((child, scope if outside else inner))
        for found in (*self._bound.values(), *self._dropped.values()):
            for nodes in found.values():
                nodes.sort(key=lambda one: getattr(one, "lineno", 0))
        self.functions.sort(key=lambda one: one.lineno)
        self.calls.sort(key=lambda one: (one.lineno, one.col_offset))
        self.backward_calls = [one for one in self.calls if is_backward(one)]
        for one in self.functions:
            self._by_name.setdefault(one.name, []).append(one)
        for call in self.calls:
            self._calls_of.setdefault(last_name(call.func), []).append(call)

    def _note(self, node: ast.AST, scope: ast.AST) -> None:
        if isinstance(node, ast.Import):
            for one in node.names:
                self._modules[one.asname or one.name.split(".")[0]] = one.name if one.asname else one.name.split(".")[0]
                self._note_framework(one.name)
        elif isinstance(node, ast.ImportFrom):
            for one in node.names:
                self._modules[one.asname or one.name] = f"{'.' * node.level}{node.module or ''}.{one.name}"
            self._note_framework(node.module or "")
        elif isinstance(node, FUNCTIONS):
            self.functions.append(node)
        elif isinstance(node, ast.ClassDef):
            self.classes[node.name] = node
        elif isinstance(node, ast.Call):
            self.calls.append(node)
            if isinstance(node.func, ast.Attribute) and node.func.attr in ("pop", "popleft", "popitem", "clear", "remove", "discard"):
                self._note_drop(node.func.value, node, scope)
        elif isinstance(node, ast.Delete):
            for target in node.targets:
                self._note_drop(target.value if isinstance(target, ast.Subscript) else target, node, scope)
        elif isinstance(node, ast.Compare):
            for one in ast.walk(node):  # its size is looked at: somebody bounds it
                if isinstance(one, ast.Call) and text_of(one.func) == "len" and len(one.args) == 1:
                    self._note_drop(one.args[0], node, scope)
        for target in targets_of(node):
            name = text_of(target)
            if name:
                self._bound.setdefault(scope, {}).setdefault(name, []).append(node)
            elif isinstance(target, ast.Subscript) and isinstance(target.slice, ast.Slice):
                self._note_drop(target.value, node, scope)

    def _note_framework(self, module: str) -> None:
        known = _FRAMEWORKS.get(module.split(".")[0])
        if known:
            self.frameworks.add(known)

    def _note_drop(self, container: ast.AST, node: ast.AST, scope: ast.AST) -> None:
        base = container.value if isinstance(container, ast.Subscript) else container
        if text_of(base):
            self._dropped.setdefault(scope, {}).setdefault(text_of(base), []).append(node)

    # Where a node stands.

    def functions_named(self, name: str) -> List[Function]:
        return self._by_name.get(name, [])

    def calls_of(self, *names: str) -> List[ast.Call]:
        """The calls of functions and methods of these names."""
        return [call for name in names for call in self._calls_of.get(name, ())]

    def parent(self, node: ast.AST) -> Optional[ast.AST]:
        return self._parents.get(node)

    def above(self, node: ast.AST) -> Iterator[ast.AST]:
        """Its parents, the nearest first."""
        one = self._parents.get(node)
        while one is not None:
            yield one
            one = self._parents.get(one)

    def function_of(self, node: ast.AST) -> Optional[Function]:
        return next((one for one in self.above(node) if isinstance(one, FUNCTIONS)), None)

    def scope_of(self, node: ast.AST) -> ast.AST:
        """The function, lambda or class that it stands in, else the module."""
        return next((one for one in self.above(node) if isinstance(one, SCOPES)), self.tree)

    def class_of(self, node: ast.AST) -> Optional[ast.ClassDef]:
        return next((one for one in self.above(node) if isinstance(one, ast.ClassDef)), None)

    def statement_of(self, node: ast.AST) -> ast.stmt:
        if isinstance(node, ast.stmt):
            return node
        return next(one for one in self.above(node) if isinstance(one, ast.stmt))

    def loops_of(self, node: ast.AST) -> List[Loop]:
        """The loops of its function whose body it is in, the innermost first."""
        found: List[Loop] = []
        below = node
        for one in self.above(node):
            if isinstance(one, SCOPES):
                break
            if isinstance(one, LOOPS) and below in one.body:
                found.append(one)
            below = one
        return found

    def is_in(self, node: ast.AST, loop: ast.AST) -> bool:
        return any(one is loop for one in self.above(node))

    # What names stand for.

    def full_name(self, node: ast.AST) -> str:
        """`F.relu` -> torch.nn.functional.relu, by the imports of the file."""
        text = text_of(node)
        first, dot, rest = text.partition(".")
        return f"{self._modules.get(first, first)}{dot}{rest}"

    def bindings(self, name: str, scope: ast.AST) -> List[ast.AST]:
        """The statements of this scope that bind it, in the order of lines."""
        return self._bound.get(scope, {}).get(name, [])

    def parameter(self, name: str, function: ast.AST) -> Optional[ast.arg]:
        arguments = getattr(function, "args", None)
        if not isinstance(arguments, ast.arguments):
            return None
        every = [*getattr(arguments, "posonlyargs", []), *arguments.args, *arguments.kwonlyargs, *filter(None, (arguments.vararg, arguments.kwarg))]
        return next((one for one in every if one.arg == name), None)

    def default_of(self, name: str, function: Function) -> Optional[ast.expr]:
        arguments = function.args
        every = [*getattr(arguments, "posonlyargs", []), *arguments.args]
        pairs = [*zip(reversed(every), reversed(arguments.defaults)), *zip(arguments.kwonlyargs, arguments.kw_defaults)]
        return next((default for one, default in pairs if one.arg == name), None)

    def methods(self, kind: ast.ClassDef) -> Dict[str, Function]:
        return {one.name: one for one in kind.body if isinstance(one, FUNCTIONS)}

    def is_network(self, kind: Optional[ast.ClassDef]) -> bool:
        """A subclass of torch's Module, as far as this file shows."""
        seen: Set[str] = set()
        while kind is not None and kind.name not in seen:
            seen.add(kind.name)
            names = [last_name(base) for base in kind.bases]
            if any(name.endswith(("Module", "Model", "Layer", "Block", "Mixin", "Net")) for name in names):
                return True
            kind = next((self.classes[name] for name in names if name in self.classes), None)
        return False

    # Loops.

    def is_over_data(self, loop: Loop) -> bool:
        """It runs once for each batch, request, step or epoch, and not once for each layer."""
        if isinstance(loop, ast.While):
            return True
        over = loop.iter
        while isinstance(over, ast.Call) and over.args and last_name(over.func) in ("enumerate", "tqdm", "trange", "zip", "iter", "islice", "track", "reversed", "list"):
            over = over.args[0]
        if isinstance(over, ast.Call):
            name = last_name(over.func)
            if name == "range" and over.args:
                end = over.args[min(1, len(over.args) - 1)]
                if isinstance(end, ast.Constant):
                    return isinstance(end.value, int) and end.value >= _MANY or any(_COUNT.search(text_of(one)) for one in targets_of(loop))
                return any(_COUNT.search(last) for last in (part.rpartition(".")[2] for part in names_in(end))) or any(
                    _COUNT.search(text_of(one)) for one in targets_of(loop))
            if name == "count" or name.endswith("DataLoader"):
                return True
        return bool(_DATA.search(last_name(over)))

    def is_trained(self, loop: ast.AST) -> bool:
        """Its body calls backward()."""
        return loop is self.tree and bool(self.backward_calls) or any(self.is_in(one, loop) for one in self.backward_calls)

    # Gradients.

    def is_without_gradients(self, node: ast.AST, depth: int = 3) -> bool:
        """It runs under no_grad() or inference_mode(), also where each caller in this file has it."""
        for one in self.above(node):
            if isinstance(one, (ast.With, ast.AsyncWith)) and any(self._switches_off(item.context_expr) for item in one.items):
                return True
            if isinstance(one, FUNCTIONS):
                if any(self._switches_off(decorator) for decorator in one.decorator_list) or self._is_switched_off_in(one):
                    return True
                callers = [call for call in self.calls_of(one.name) if not self.is_in(call, one)]
                return depth > 0 and bool(callers) and all(self.is_without_gradients(call, depth - 1) for call in callers)
        return self._is_switched_off_in(self.tree)

    def _switches_off(self, node: ast.AST) -> bool:
        for one in ast.walk(node):
            if isinstance(one, ast.Call) and last_name(one.func) == "set_grad_enabled":
                return bool(one.args) and not (isinstance(one.args[0], ast.Constant) and one.args[0].value is True)
            if isinstance(one, (ast.Name, ast.Attribute)) and _WITHOUT_GRADIENTS.search(self.full_name(one)):
                return True
        return False

    def _is_switched_off_in(self, scope: ast.AST) -> bool:
        """A statement of its own: torch.set_grad_enabled(False), model.requires_grad_(False), p.requires_grad = False."""
        for call in self.calls_of("set_grad_enabled", "requires_grad_", "_set_grad_enabled"):
            if scope is self.tree or self.is_in(call, scope):
                if call.args and isinstance(call.args[0], ast.Constant) and call.args[0].value is False and isinstance(self.parent(call), ast.Expr):
                    return True
        return any(name.endswith(".requires_grad") and any(isinstance(getattr(one, "value", None), ast.Constant) and one.value.value is False for one in nodes)
                   for name, nodes in self._bound.get(scope, {}).items())

    # Containers.

    def drops(self, name: str, scope: Optional[ast.AST] = None) -> List[ast.AST]:
        """Where a container gets smaller, or its size is looked at: in a scope, or in the whole file by its last name."""
        if scope is not None:
            return self._dropped.get(scope, {}).get(name, [])
        last = name.rpartition(".")[2]
        return [one for found in self._dropped.values() for key, nodes in found.items() if key.rpartition(".")[2] == last for one in nodes]

    def bound_anywhere(self, name: str) -> Iterator[Tuple[ast.AST, ast.AST]]:
        """(scope, statement) of each binding of this last name in the file."""
        last = name.rpartition(".")[2]
        for scope, found in self._bound.items():
            for key, nodes in found.items():
                if key.rpartition(".")[2] == last:
                    for one in nodes:
                        yield scope, one

    def sources_of_backward(self, scope: ast.AST) -> Set[str]:
        """The names of a scope whose graphs are needed: backward() or grad() is called on what is computed from them."""
        needed: Set[str] = set()
        for one in self.backward_calls:
            if self.scope_of(one) is scope:
                if isinstance(one.func, ast.Attribute):
                    needed |= names_in(one.func.value)
                for argument in one.args:
                    needed |= names_in(argument)
        waiting = list(needed)
        while waiting:
            for statement in self.bindings(waiting.pop(), scope):
                value = getattr(statement, "value", None)
                fresh = (names_in(value) if value is not None else set()) - needed
                needed |= fresh
                waiting += fresh
        return needed


def is_backward(call: ast.Call) -> bool:
    """loss.backward(), accelerator.backward(loss), self.manual_backward(loss), torch.autograd.grad(loss, ...)."""
    name = last_name(call.func)
    return name in ("backward", "manual_backward") or name == "grad" and "autograd" in text_of(call.func)


def contains_call(nodes: Iterable[ast.AST], *names: str) -> bool:
    return any(isinstance(one, ast.Call) and last_name(one.func) in names for node in nodes for one in ast.walk(node))
