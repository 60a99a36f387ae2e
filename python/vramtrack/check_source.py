"""A Python source file as `check` sees it: its frameworks, loops, gradients and containers, from the syntax tree. It imports and runs
nothing, and needs only the standard library, from Python 3.8 on: the program `vramtrack` contains this file."""
from __future__ import annotations

import ast
import re
from typing import Dict, List, Optional, Set, Tuple

from vramtrack.check_scopes import Place, Scopes
from vramtrack.check_syntax import FUNCTIONS, LOOPS, Loop, is_backward, last_name, targets_of, text_of

#: Frameworks that use GPU memory, and packages that import one of them.
_FRAMEWORKS = {
    "torch": "torch", "torchvision": "torch", "lightning": "torch", "pytorch_lightning": "torch", "accelerate": "torch", "transformers": "torch",
    "diffusers": "torch", "timm": "torch", "jax": "jax", "flax": "jax", "optax": "jax", "tensorflow": "tensorflow", "keras": "tensorflow", "cupy": "cupy",
}
_WITHOUT_GRADIENTS = re.compile(r"(^|\W|_)(no_grad|inference_mode|inference_context|no_gradients)\b")
#: Loops that run as often as there is data, rather than as often as there are layers.
_DATA = re.compile(
    r"(^|_)(loader|dataloader|dataset|data_?iter\w*|batches|minibatches|requests|queue|stream|samples|sequences|frames|videos|images|prompts|documents|"
    r"trainloader|testloader|valloader|(train|test|val|valid|eval)(_?(dl|iter|ds|set|data|loader|dataloader))?)$", re.IGNORECASE)
_COUNT = re.compile(r"(^|_)(n_?)?(steps?|epochs?|iters?|iterations?|episodes?|batches|updates|max_steps|total_steps|num_steps)$", re.IGNORECASE)
_MANY = 50  # a constant number of rounds from which a loop counts as one over data


class Source(Scopes):
    """One file. REQUIRES: `text` is valid Python; ast.parse() raises SyntaxError, RecursionError or ValueError otherwise."""

    def __init__(self, text: str) -> None:
        super().__init__(ast.parse(text))
        self.backward_calls = [one for one in self.calls if is_backward(one)]
        self.frameworks: Set[str] = set()
        self._dropped: Dict[str, List[Tuple[Place, ast.AST]]] = {}  # by name: the places of containers, and where they shrink
        self._needed: Optional[Set[Place]] = None
        for node in ast.walk(self.tree):
            self._note_frameworks(node)
            self._note_drops(node)

    def _note_frameworks(self, node: ast.AST) -> None:
        names = [one.name for one in node.names] if isinstance(node, ast.Import) else [node.module or ""] if isinstance(node, ast.ImportFrom) else []
        self.frameworks |= {_FRAMEWORKS[first] for first in (name.split(".")[0] for name in names) if first in _FRAMEWORKS}

    def _note_drops(self, node: ast.AST) -> None:
        containers: List[ast.AST] = []
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in ("pop", "popleft", "popitem", "clear", "remove", "discard"):
            containers = [node.func.value]
        elif isinstance(node, ast.Delete):
            containers = list(node.targets)
        elif isinstance(node, ast.Compare):  # its size is checked, so it is probably bounded
            containers = [one.args[0] for one in ast.walk(node) if isinstance(one, ast.Call) and text_of(one.func) == "len" and len(one.args) == 1]
        else:
            containers = [one for one in targets_of(node) if isinstance(one, ast.Subscript) and isinstance(one.slice, ast.Slice)]
        for container in containers:
            place = self.place(container.value if isinstance(container, ast.Subscript) else container)
            for one in self.stands_for(place) if place is not None else ():
                self._dropped.setdefault(one.name, []).append((one, node))

    # Classes.

    def is_network(self, kind: Optional[ast.ClassDef]) -> bool:
        """Whether it is a subclass of torch's Module, as far as this file shows."""
        lineage = self.lineage(kind) if kind is not None else []
        return any(last_name(base).endswith(("Module", "Model", "Layer", "Block", "Mixin", "Net")) for one in lineage for base in one.bases)

    # Loops.

    def loops_of(self, node: ast.AST) -> List[Loop]:
        """The loops of its function that contain it in their body, innermost first."""
        found: List[Loop] = []
        below = node
        for one in self.above(node):
            if isinstance(one, (*FUNCTIONS, ast.Lambda, ast.ClassDef)):
                break
            if isinstance(one, LOOPS) and below in one.body:
                found.append(one)
            below = one
        return found

    def is_over_data(self, loop: Loop) -> bool:
        """Whether it runs once per batch, request, step or epoch, rather than once per layer."""
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
                    return isinstance(end.value, int) and end.value >= _MANY or any(_COUNT.search(one.name) for one in self.places_of(loop))
                return any(_COUNT.search(one.name) for one in self.places_in(end) | self.places_of(loop))
            if name == "count" or name.endswith("DataLoader"):
                return True
        return bool(_DATA.search(last_name(over)))

    def is_trained(self, loop: ast.AST) -> bool:
        """Whether its body calls backward()."""
        return loop is self.tree and bool(self.backward_calls) or any(self.is_in(one, loop) for one in self.backward_calls)

    # Gradients.

    def is_without_gradients(self, node: ast.AST, depth: int = 3) -> bool:
        """Whether it runs under no_grad() or inference_mode(), including when every caller in this file uses them."""
        for one in self.above(node):
            if isinstance(one, (ast.With, ast.AsyncWith)) and any(self._switches_off(item.context_expr) for item in one.items):
                return True
            if isinstance(one, FUNCTIONS):
                if any(self._switches_off(decorator) for decorator in one.decorator_list) or self._is_switched_off_in(one):
                    return True
                callers = self.callers(one)
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
        """Whether a statement switches them off: torch.set_grad_enabled(False), model.requires_grad_(False), p.requires_grad = False."""
        for call in self.calls_of("set_grad_enabled", "requires_grad_", "_set_grad_enabled"):
            if scope is self.tree or self.is_in(call, scope):
                if call.args and isinstance(call.args[0], ast.Constant) and call.args[0].value is False and isinstance(self.parent(call), ast.Expr):
                    return True
        return any(isinstance(one, ast.Assign) and isinstance(one.value, ast.Constant) and one.value.value is False
                   for place in self.attributes_named("requires_grad") for one in self.bindings(place, scope))

    # Containers.

    def drops(self, place: Place) -> List[ast.AST]:
        """Where, anywhere in the file, the object of the place shrinks or its size is checked."""
        return [node for one in self.stands_for(place) for known, node in self._dropped.get(one.name, ()) if self.may_be_one(known, one)]

    def needed_by_backward(self, place: Place) -> bool:
        """Whether backward() or grad() is called on a value computed from it."""
        if self._needed is None:
            self._needed = set()
            for one in self.backward_calls:
                for part in [*one.args, *([one.func.value] if isinstance(one.func, ast.Attribute) else [])]:
                    self._needed |= self.places_in(part)
            waiting = list(self._needed)
            while waiting:
                for statement in self.bindings(waiting.pop()):
                    fresh = self.places_in(getattr(statement, "value", None)) - self._needed
                    self._needed |= fresh
                    waiting += fresh
        return place in self._needed
