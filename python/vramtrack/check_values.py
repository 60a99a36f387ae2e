"""What an expression in a source file holds: a graph of gradients, device memory, a shape, or none of these. Judged by names, assignments
and calls, on the safe side: an expression that cannot be determined holds nothing."""
from __future__ import annotations

import ast
import enum
import re
from typing import Dict, List, Optional, Set, Tuple

from vramtrack.check_scopes import Place, line_of
from vramtrack.check_source import Source
from vramtrack.check_syntax import COMPREHENSIONS, FUNCTIONS, index_of, last_name, value_of


class Holds(enum.IntEnum):
    """If an expression has several, the largest applies."""

    NOTHING = 0
    SHAPE = 1  # the size of a tensor: a key of caches
    TENSOR = 2  # a tensor on an unknown device
    DEVICE = 3  # device memory
    GRAPH = 4  # a tensor with the graph that backward() needs, and so all activations behind it


_NETWORK = re.compile(
    r"^(.*_)?(model|net|network|backbone|encoder|decoder|generator|discriminator|critic|actor|policy|unet|vae|transformer|rnn|lstm|gru|cell|classifier|"
    r"regressor|student|teacher|embedder|resnet|vit|bert|gpt|llm|nn)(_?\d+)?$")
_LOSS = re.compile(r"^(.*_)?(criterion|criteria|crit|loss|loss_?(fn|func|function))$", re.IGNORECASE)
#: Methods and functions with results that have no graph and no significant memory.
NUMBERS = {
    "item", "tolist", "numpy", "numel", "dim", "data_ptr", "element_size", "backward", "float", "int", "bool", "str", "len", "repr", "print", "isinstance", "format", "id",
    "hash", "type", "range", "enumerate", "device_get", "asarray", "is_floating_point", "get_device", "generate", "hasattr", "getattr", "any", "all", "save", "sorted",
}
#: Their result is a tensor without a graph.
_WITHOUT_GRAPH = {
    "detach", "detach_", "argmax", "argmin", "argsort", "eq", "ne", "gt", "lt", "ge", "le", "long", "nonzero", "isnan", "isfinite", "isinf", "sign", "no_grad", "stop_gradient",
    "zeros_like", "ones_like", "empty_like", "full_like", "rand_like", "randn_like", "bernoulli", "multinomial", "equal", "allclose",
}
FACTORIES = {"zeros", "ones", "empty", "full", "rand", "randn", "randint", "arange", "tensor", "as_tensor", "from_numpy", "eye", "linspace"}
_PLAIN_ATTRIBUTES = {"data", "grad", "dtype", "device", "requires_grad", "is_cuda", "ndim", "grad_fn", "itemsize", "layout", "names", "is_leaf"}
_CARRIERS = {"to", "cuda", "half", "float", "bfloat16", "double", "eval", "train", "compile", "DataParallel", "DistributedDataParallel", "DDP", "FSDP",
             "FullyShardedDataParallel", "prepare", "script", "initialize", "setup"}
_CONTAINERS = (ast.Dict, ast.DictComp, ast.List, ast.ListComp)
_BRINGS = re.compile(r"(^|\.)(from_pretrained|create_model|resnet\d+|vit_\w+)$")


class Values:
    """The judgements for one file. Each is made once."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._known: Dict[ast.AST, Holds] = {}
        self._open: Set[ast.AST] = set()  # being judged: a name that is computed from itself
        self._without: Dict[ast.AST, bool] = {}
        self._direct = self._given_to_backward()

    def without_gradients(self, node: ast.AST) -> bool:
        """As in Source; only torch keeps graphs."""
        if "torch" not in self._source.frameworks:
            return True
        statement = self._source.statement_of(node)
        if statement not in self._without:
            self._without[statement] = self._source.is_without_gradients(statement)
        return self._without[statement]

    def holds(self, node: ast.AST) -> Holds:
        known = self._known.get(node)
        if known is not None:
            return known
        if node in self._open or len(self._open) > 200:
            return Holds.NOTHING
        self._open.add(node)
        found = self._judge(node)
        self._open.discard(node)
        if found == Holds.GRAPH and self.without_gradients(node):
            found = Holds.DEVICE
        self._known[node] = found
        return found

    def most(self, *nodes: Optional[ast.AST]) -> Holds:
        return max((self.holds(node) for node in nodes if node is not None), default=Holds.NOTHING)

    def _judge(self, node: ast.AST) -> Holds:
        if isinstance(node, ast.Name):
            return self._of_name(node)
        if isinstance(node, ast.Attribute):
            return self._of_attribute(node)
        if isinstance(node, ast.Call):
            return self._of_call(node)
        if isinstance(node, ast.BinOp):
            found = self.most(node.left, node.right)
            return found if found != Holds.SHAPE else Holds.NOTHING
        if isinstance(node, ast.UnaryOp):
            return Holds.NOTHING if isinstance(node.op, ast.Not) else self.holds(node.operand)
        if isinstance(node, ast.Subscript):
            return self.holds(node.value)
        if isinstance(node, (ast.Tuple, ast.List, ast.Set)):
            return self.most(*node.elts)
        if isinstance(node, ast.Dict):
            return self.most(*node.values)
        if isinstance(node, ast.IfExp):
            return self.most(node.body, node.orelse)
        if isinstance(node, (ast.Starred, ast.Await, ast.NamedExpr)):
            return self.holds(node.value)
        if isinstance(node, (ast.ListComp, ast.SetComp, ast.GeneratorExp)):
            return self.holds(node.elt)
        if isinstance(node, ast.DictComp):
            return self.holds(node.value)
        if isinstance(node, ast.Lambda):  # its references live as long as it does
            return self.most(*(one for one in ast.walk(node.body) if isinstance(one, ast.Name) and self._place_of(one).owner is not node))
        return Holds.NOTHING

    # Names.

    def _place_of(self, node: ast.Name) -> Place:
        place = self._source.place(node)
        assert place is not None
        return place

    def _of_name(self, node: ast.Name) -> Holds:
        source, place = self._source, self._place_of(node)
        bindings = source.bindings(place)
        if isinstance(place.owner, COMPREHENSIONS):
            return max((self._of_binding(one, node.id) for one in bindings), default=Holds.NOTHING)
        if bindings:
            return self._of_bound(node, place, bindings)
        parameter = source.parameter(place)
        if parameter is None:
            return Holds.NOTHING
        if place in self._direct:
            return Holds.GRAPH
        return Holds.TENSOR if parameter.annotation is not None and self._is_tensor_annotation(parameter.annotation) else Holds.NOTHING

    def _given_to_backward(self) -> Set[Place]:
        """The names that backward() is called on or receives."""
        found: Set[Place] = set()
        for call in self._source.backward_calls:
            if isinstance(call.func, ast.Attribute) and self._source.full_name(call.func).startswith("torch.autograd."):
                continue
            receiver = call.func.value if isinstance(call.func, ast.Attribute) else None
            candidates = [receiver, *call.args[:1]] if not isinstance(receiver, ast.Call) else [*receiver.args[:1]]
            found |= {place for place in (self._source.place(one) for one in candidates if one is not None) if place is not None}
        return found

    def _of_bound(self, node: ast.Name, place: Place, bindings: List[ast.AST]) -> Holds:
        """Judged by the last binding above the use or, if there is none, by those below it, from the previous round."""
        own = self._source.statement_of(node)
        before = [one for one in bindings if line_of(one) < own.lineno or (line_of(one) == own.lineno and one is not own)]
        if not before and self._source.scope_of(node) is not place.owner:
            before = bindings
        if not before:
            # The statement itself: total = total + loss
            return max((self._of_binding(one, node.id) for one in bindings), default=Holds.NOTHING)
        last = before[-1]
        found = self._of_binding(last, node.id)
        if isinstance(last, ast.AugAssign):
            found = max([found, *(self._of_binding(one, node.id) for one in before[:-1])])
        elif self._source.loops_of(own) and found == Holds.NOTHING and len(before) < len(bindings) and _is_start(last):
            shared = self._source.loops_of(own)
            later = [one for one in bindings if one not in before and any(self._source.is_in(one, loop) for loop in shared)]
            found = max([found, *(self._of_binding(one, node.id) for one in later)])
        if found < Holds.GRAPH and place in self._direct and isinstance(last, ast.Assign) and self._may_have_graph(last.value):
            found = Holds.GRAPH
        return found

    def _may_have_graph(self, value: ast.AST) -> bool:
        """Whether it is a call or a calculation about which nothing is known: if backward() is called on it, it has a graph."""
        if isinstance(value, ast.Call):
            return last_name(value.func) not in NUMBERS | _WITHOUT_GRAPH
        return isinstance(value, (ast.BinOp, ast.Attribute, ast.Subscript, ast.UnaryOp))

    def _of_binding(self, statement: ast.AST, name: str) -> Holds:
        if isinstance(statement, (ast.For, ast.AsyncFor, ast.comprehension)):
            return self._of_element(statement.iter, statement.target, name)
        value = value_of(statement, name)
        return Holds.NOTHING if value is None else self.holds(value)

    def _of_element(self, over: ast.AST, target: ast.expr, name: str) -> Holds:
        """For the elements that a loop takes from a container, except by enumerate() and zip()."""
        if isinstance(over, ast.Call):
            return Holds.DEVICE if last_name(over.func) in ("parameters", "buffers") else Holds.NOTHING
        place = self._source.place(over)
        parameter = self._source.parameter(place) if place is not None and not self._source.bindings(place) else None
        if parameter is not None and parameter.annotation is not None:
            element = _part_of_annotation(parameter.annotation, 0)
            return Holds.TENSOR if self._is_tensor_annotation(_part_of_target(element, target, name)) else Holds.NOTHING
        return self.holds(over)

    # Attributes and calls.

    def _of_attribute(self, node: ast.Attribute) -> Holds:
        if node.attr == "shape":
            return Holds.SHAPE
        if node.attr in _PLAIN_ATTRIBUTES:
            return Holds.NOTHING
        if self._source.is_of_its_class(node):
            return Holds.NOTHING
        found = self.holds(node.value)
        return found if found >= Holds.DEVICE else Holds.NOTHING

    def _of_call(self, node: ast.Call) -> Holds:
        name = last_name(node.func)
        arguments: List[ast.AST] = [*node.args, *(one.value for one in node.keywords)]
        receiver = node.func.value if isinstance(node.func, ast.Attribute) else None
        if name == "size" and receiver is not None:
            return Holds.SHAPE
        if name == "tuple" and len(node.args) == 1 or name == "str" and self.most(*arguments) == Holds.SHAPE:
            return self.holds(node.args[0])
        if name == "float" and isinstance(node.func, ast.Attribute) and not node.args:
            return self.holds(node.func.value)
        if name == "deepcopy" and arguments:
            return Holds.DEVICE if self.is_network(arguments[0]) or contains_state(arguments[0]) else self.holds(arguments[0])
        if name in NUMBERS:
            return Holds.NOTHING
        full = self._source.full_name(node.func)
        inputs = self.most(receiver, *arguments)
        if name in _WITHOUT_GRAPH:
            return Holds.DEVICE if inputs == Holds.GRAPH else inputs
        if name == "cpu":
            return inputs if inputs == Holds.GRAPH else Holds.NOTHING
        if name == "cuda" or name == "to" and any(map(self._is_device, arguments)):
            return Holds.GRAPH if inputs == Holds.GRAPH else Holds.NOTHING if receiver is None or self.is_network(receiver) else Holds.DEVICE
        if name in FACTORIES and full.startswith(("torch.", "cupy.")):
            return Holds.DEVICE if any(one.arg == "device" and self._is_device(one.value) for one in node.keywords) else Holds.TENSOR
        if self.is_network(node.func):
            return Holds.GRAPH
        if receiver is not None and name == "forward" and self.is_network(receiver):
            return Holds.GRAPH
        if _LOSS.match(name) or isinstance(node.func, ast.Call) and name.endswith("Loss"):
            return Holds.GRAPH if inputs == Holds.GRAPH else Holds.NOTHING
        if full.startswith("torch."):
            return inputs if inputs != Holds.SHAPE else Holds.TENSOR
        if receiver is not None and self.holds(receiver) >= Holds.TENSOR:
            return inputs  # a method of a tensor
        if name in ("sum", "max", "min", "list", "dict", "abs", "next"):
            return inputs if inputs >= Holds.DEVICE else Holds.NOTHING
        return self._of_own_function(node)

    def _of_own_function(self, call: ast.Call) -> Holds:
        """For a function in this file: its return values, computed from the networks that it refers to."""
        if isinstance(call.func, ast.Attribute) and not self._source.is_of_its_class(call.func):
            return Holds.NOTHING
        found = self._source.functions_of(call.func)
        if len(found) != 1 or any(isinstance(one, (ast.Yield, ast.YieldFrom)) for one in ast.walk(found[0])):
            return Holds.NOTHING
        returns = [one for one in ast.walk(found[0]) if isinstance(one, ast.Return) and self._source.function_of(one) is found[0]]
        best = self.most(*(one.value for one in returns))
        return best if best >= Holds.DEVICE else Holds.NOTHING

    # Devices.

    def _is_device(self, node: ast.AST) -> bool:
        """Whether it is `"cuda:0"`, `device`, `self.device` or `torch.device("cuda")`; not "cpu", nor a name that is known to hold it."""
        if isinstance(node, ast.Constant):
            return isinstance(node.value, str) and node.value.partition(":")[0] in ("cuda", "xpu", "mps", "hip")
        if isinstance(node, ast.Call):
            return any(map(self._is_device, node.args))
        return last_name(node).endswith("device") and not self._is_processor(node)

    def _is_processor(self, node: ast.AST, depth: int = 4) -> bool:
        """Whether it is "cpu", torch.device("cpu"), or a name with only such values in this file, by assignment or as a default."""
        if isinstance(node, ast.Constant) or depth == 0:
            return getattr(node, "value", None) == "cpu"
        if isinstance(node, ast.Call):
            return last_name(node.func) == "device" and bool(node.args) and self._is_processor(node.args[0], depth - 1)
        place = self._source.place(node)
        if place is None:
            return False
        default = self._source.default_of(place)
        values = [*self._source.values(place), *([default] if default is not None else [])]
        return bool(values) and all(self._is_processor(value, depth - 1) for value in values)

    def is_tensor(self, indexed: ast.expr) -> bool:
        """Whether `indexed[key] = value` writes into a tensor, or an element of an object with tensors; not into a container of them."""
        if self.holds(indexed) >= Holds.TENSOR:
            return True
        base, is_element = indexed, False
        while isinstance(base, ast.Subscript):
            base, is_element = base.value, True
        place = self._source.place(base)
        values = self._source.values(place) if place is not None else []
        return any(self.holds(value) >= Holds.TENSOR for value in values if is_element or not isinstance(value, _CONTAINERS))

    # Networks.

    def is_network(self, node: ast.AST, depth: int = 4) -> bool:
        """Whether the called object is a torch Module: by its name, or by a value assigned to it."""
        source = self._source
        if "torch" not in source.frameworks or depth == 0:
            return False
        if isinstance(node, ast.Call):
            name, full = last_name(node.func), source.full_name(node.func)
            if full.startswith("torch.nn.") and not full.startswith(("torch.nn.functional", "torch.nn.utils", "torch.nn.init")):
                return name[:1].isupper() and not name.endswith("Loss") and name != "Parameter"
            kind = source.class_named(node.func)
            if kind is not None:
                return source.is_network(kind)
            if _BRINGS.search(full) and not re.search(r"(Tokenizer|Processor|Config|FeatureExtractor|Scheduler)", full):
                return True
            if name in _CARRIERS:
                return self.is_network(node.func.value, depth - 1) if isinstance(node.func, ast.Attribute) and not node.args else any(
                    self.is_network(one, depth - 1) for one in [*node.args, *([node.func.value] if isinstance(node.func, ast.Attribute) else [])])
            return False
        if isinstance(node, ast.Subscript):
            return self.is_network(node.value, depth - 1)
        place = source.place(node)
        if place is None:
            return False
        if any(self.is_network(value, depth - 1) for value in source.values(place)):
            return True
        if isinstance(node, ast.Name) and any(isinstance(one, (ast.ClassDef, *FUNCTIONS)) for one in source.bindings(place)):
            return False
        return bool(_NETWORK.match(last_name(node)))

    def _is_tensor_annotation(self, node: ast.AST) -> bool:
        words = node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else " ".join(one.name for one in self._source.places_in(node))
        return bool(re.search(r"\bTensor\b", words)) and "Callable" not in words


def contains_state(node: ast.AST) -> bool:
    return any(isinstance(one, ast.Call) and last_name(one.func) == "state_dict" for one in ast.walk(node))


def _part_of_annotation(annotation: ast.AST, n: int) -> ast.AST:
    """The n-th type in the brackets: for Iterable[tuple[str, Tensor]], the tuple. Without brackets, the type itself."""
    if isinstance(annotation, ast.BinOp):  # ... | None
        return _part_of_annotation(annotation.left, n)
    if not isinstance(annotation, ast.Subscript):
        return annotation
    inside = index_of(annotation)
    if last_name(annotation.value) == "Optional":
        return _part_of_annotation(inside, n)
    return inside.elts[min(n, len(inside.elts) - 1)] if isinstance(inside, ast.Tuple) and inside.elts else inside


def _part_of_target(annotation: ast.AST, target: ast.expr, name: str) -> ast.AST:
    """The type of `name` when an object of the annotated type is unpacked into `target`: (key, (first, second))."""
    if isinstance(target, (ast.Tuple, ast.List)):
        for n, one in enumerate(target.elts):
            if any(isinstance(each, ast.Name) and each.id == name for each in ast.walk(one)):
                return _part_of_target(_part_of_annotation(annotation, n), one, name)
    return annotation


def _is_start(statement: ast.AST) -> bool:
    """Whether it is an initial value such as hidden = None or total = 0, which a loop then replaces."""
    return isinstance(statement, ast.Assign) and isinstance(statement.value, (ast.Constant, ast.List, ast.Tuple, ast.Dict))


def has_slice(subscript: ast.Subscript) -> bool:
    """Whether it is `x[1:]` or `x[:, rows]`: a part of a sequence or of a tensor, not the entry of a dict."""
    key = subscript.slice
    return type(key).__name__ in ("Slice", "ExtSlice") or isinstance(key, ast.Tuple) and any(isinstance(one, ast.Slice) for one in key.elts)


def element_and_container(call: ast.Call) -> Optional[Tuple[ast.expr, ast.expr]]:
    """The parts of `container.append(element)` and similar calls."""
    if isinstance(call.func, ast.Attribute) and call.func.attr in ("append", "appendleft", "add", "extend", "insert", "setdefault", "put") and call.args:
        return call.args[-1], call.func.value
    return None
