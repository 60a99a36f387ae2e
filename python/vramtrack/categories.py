"""Classifies this process's memory by the framework's objects: parameters, their gradients, optimizer state, key-value caches. The objects
are inspected in place; nothing is copied, and no tensor is kept alive."""
from __future__ import annotations

import gc
import os
import sys
import threading
import time
import weakref
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Optional, Tuple

from vramtrack.html_table import table
from vramtrack.units import format_size

#: src/trace/category_name.hpp
CATEGORIES = ("weights", "gradients", "optimizer_state", "activations", "kv_cache", "other_cache", "workspaces", "communication", "inputs", "unknown")

#: at a mark: a look takes at most 1 % of the time, a search with gc at most 0.1 %
_LOOK_SHARE, _SEARCH_SHARE = 0.01, 0.001
_LOOK_S = 1.0
_DEPTH = 4  # of lists and dictionaries in an optimizer's state

#: classes of caches: the module that defines them, and the end of their names
_CACHES = (("transformers.cache_utils", "Cache"), ("transformers.cache_utils", "Layer"), ("sglang.srt.mem_cache", "KVCache"),
           ("sglang.srt.mem_cache", "KVPool"), ("vllm.", "CacheEngine"), ("exllamav2.cache", "Cache"))  # fmt: skip
#: and attributes with which objects of other classes hold one
_HOLDERS = (("vllm.", "ModelRunner", "kv_caches"),)


class Label(NamedTuple):
    """One storage: its start, size, category and name ("Net.layers.3.weight")."""

    address: int
    bytes: int
    category: str
    name: str
    device: int


class Categories(NamedTuple):
    """The result of categorize(). str() gives it in words."""

    labels: Tuple[Label, ...]
    allocated: int  # the memory of the process according to the allocator, on all devices
    seconds: float  # the duration of the look

    def bytes_of(self, category: str) -> int:
        return sum(label.bytes for label in self.labels if label.category == category)

    @property
    def by_category(self) -> Dict[str, int]:
        """Bytes, largest first; "other" is the rest of the allocated memory: activations, workspaces, batches, and rounding."""
        sums: Dict[str, int] = {}
        for label in self.labels:
            sums[label.category] = sums.get(label.category, 0) + label.bytes
        found = dict(sorted(sums.items(), key=lambda item: -item[1]))
        found["other"] = max(0, self.allocated - sum(sums.values()))
        return found

    def __str__(self) -> str:
        return "\n".join(f"{name.replace('_', ' '):<24}{format_size(size):>14}" for name, size in self.by_category.items())

    def _repr_html_(self) -> str:
        share = 100 / max(1, self.allocated)
        rows = [(name.replace("_", " "), format_size(size), f"{size * share:.0f} %") for name, size in self.by_category.items()]
        return table(f"{format_size(self.allocated)} allocated on GPUs", ("what it is", "bytes", "share"), rows)


_lock = threading.Lock()
_modules: "weakref.WeakSet[Any]" = weakref.WeakSet()
_optimizers: "weakref.WeakSet[Any]" = weakref.WeakSet()
_caches: "weakref.WeakSet[Any]" = weakref.WeakSet()
_hooked = False
_next_look = 0.0
_next_search = 0.0


def _after_fork() -> None:
    global _lock
    _lock = threading.Lock()


os.register_at_fork(after_in_child=_after_fork)


def _find_probe() -> Optional[Callable[[int, bytes, bytes], None]]:
    """The probe of `vramtrack run`, if this process has it."""
    if not os.environ.get("VRAMTRACK_PROBE_DIR") or os.environ.get("VRAMTRACK_PROBE_CATEGORIES", "") == "0":
        return None
    import ctypes

    try:
        function = ctypes.CDLL(None).vramtrack_probe_label
    except (OSError, AttributeError):
        return None
    function.argtypes = [ctypes.c_uint64, ctypes.c_char_p, ctypes.c_char_p]
    function.restype = None
    return function


_label = _find_probe()
is_wanted = _label is not None


def _add(to: "weakref.WeakSet[Any]", found: Any) -> None:
    try:
        to.add(found)
    except TypeError:  # a class that cannot be hashed, or without weak references
        pass


def attach() -> None:
    """From now on, modules and optimizers are found without a search: torch reports each when it is created or makes its first step. Costs
    a microsecond per parameter that a module registers, and per step."""
    global _hooked
    torch = sys.modules.get("torch")
    if _hooked or torch is None or not hasattr(torch, "nn"):
        return
    _hooked = True

    def module_of(module: Any, *_: Any) -> None:
        _add(_modules, module)

    def optimizer_of(optimizer: Any, *_: Any) -> None:
        _add(_optimizers, optimizer)

    # Before PyTorch 2.0 there are no such hooks: search() finds the objects.
    for where, name, hook in (
        (torch.nn.modules.module, "register_module_parameter_registration_hook", module_of),
        (torch.nn.modules.module, "register_module_module_registration_hook", module_of),
        (getattr(torch.optim, "optimizer", None), "register_optimizer_step_post_hook", optimizer_of),
    ):
        register = getattr(where, name, None)
        if register is not None:
            register(hook)


def _kind_of(cls: type, torch: Any) -> Optional["weakref.WeakSet[Any]"]:
    if issubclass(cls, torch.nn.Module):
        return _modules
    if issubclass(cls, torch.optim.Optimizer):
        return _optimizers
    for base in cls.__mro__:
        place = str(getattr(base, "__module__", ""))
        if any(place.startswith(module) and base.__name__.endswith(name) for module, name in _CACHES):
            return _caches
        if any(place.startswith(module) and name in base.__name__ for module, name, _ in _HOLDERS):
            return _caches
    return None


def search() -> None:
    """Finds the existing modules, optimizers and caches among all objects of the process: 0.2 us each, 70 ms for a program that has
    imported PyTorch. Objects hidden by gc.freeze() are not found."""
    torch = sys.modules["torch"]
    kinds: Dict[type, Any] = {}
    for found in gc.get_objects():
        cls = type(found)
        kind = kinds.get(cls, kinds)
        if kind is kinds:
            try:
                kind = _kind_of(cls, torch)
            except TypeError:  # a class that is being created
                kind = None
            kinds[cls] = kind
        if kind is not None:
            _add(kind, found)


def _list(weak: "weakref.WeakSet[Any]") -> List[Any]:
    for _ in range(3):
        try:
            return list(weak)
        except RuntimeError:  # another thread created one meanwhile
            continue
    return []


class _Look:
    """One pass. Each storage counts once, under the first category found for it."""

    def __init__(self) -> None:
        self.labels: List[Label] = []
        self._seen: Dict[int, None] = {}
        self.names: Dict[int, str] = {}  # of parameters, by id, while their modules hold them

    def add(self, tensor: Any, category: str, name: str) -> None:
        try:
            flatten = getattr(type(tensor), "__tensor_flatten__", None)
            if flatten is not None:  # DTensor, quantised tensors
                if type(tensor).__name__ != "FakeTensor":
                    for inner in flatten(tensor)[0]:
                        self.add(getattr(tensor, inner), category, name)
                return
            if not tensor.is_cuda or type(tensor).__name__ == "FakeTensor":
                return
            storage = tensor.untyped_storage()
            address = storage.data_ptr()
            if address == 0 or address in self._seen:
                return
            size = storage.nbytes()
        except (AttributeError, NotImplementedError, RuntimeError, TypeError):  # sparse, lazy, functional: no storage
            return
        self._seen[address] = None
        if _label is not None:  # while the tensor is held here, no other can get its address
            _label(address, category.encode(), name.encode(errors="replace"))
        self.labels.append(Label(address, size, category, name, int(tensor.get_device())))

    def add_all(self, held: Any, category: str, name: str, depth: int = _DEPTH) -> None:
        """Tensors in lists and dictionaries."""
        if hasattr(held, "untyped_storage"):
            self.add(held, category, name)
        elif depth > 0 and isinstance(held, dict):
            for key, value in list(held.items()):
                self.add_all(value, category, f"{name}.{key}" if isinstance(key, (str, int)) else name, depth - 1)
        elif depth > 0 and isinstance(held, (list, tuple)):
            for place, value in enumerate(list(held)):
                self.add_all(value, category, f"{name}.{place}", depth - 1)


def _named_modules(modules: List[Any]) -> Iterator[Tuple[str, Any]]:
    """Each module once, with its path from a module that no other holds."""
    held = {id(child) for module in modules for child in list(module.__dict__.get("_modules", {}).values())}
    counts: Dict[str, int] = {}
    seen: Dict[int, None] = {}
    for root in [module for module in modules if id(module) not in held] + modules:
        if id(root) in seen:
            continue
        name = type(root).__name__
        counts[name] = counts.get(name, 0) + 1
        open_ = [(name if counts[name] == 1 else f"{name}#{counts[name]}", root)]
        while open_:
            path, module = open_.pop()
            if id(module) in seen:
                continue
            seen[id(module)] = None
            yield path, module
            open_ += [(f"{path}.{key}", child) for key, child in reversed(list(module.__dict__.get("_modules", {}).items())) if child is not None]


def _walk(look: _Look) -> None:
    parameters: List[Tuple[str, Any]] = []
    for path, module in _named_modules(_list(_modules)):
        for kind in ("_parameters", "_buffers"):
            for key, tensor in list(module.__dict__.get(kind, {}).items()):
                if tensor is None:
                    continue
                look.add(tensor, "weights", f"{path}.{key}")
                if kind == "_parameters":
                    look.names.setdefault(id(tensor), f"{path}.{key}")
                    parameters.append((f"{path}.{key}", tensor))
    optimizers = _list(_optimizers)
    for optimizer in optimizers:
        place = 0
        for group in list(optimizer.__dict__.get("param_groups", ())):
            for tensor in list(group.get("params", ())):
                name = look.names.setdefault(id(tensor), f"{type(optimizer).__name__}.params.{place}")
                place += 1
                look.add(tensor, "weights", name)
                parameters.append((name, tensor))
    for name, tensor in parameters:
        gradient = getattr(tensor, "grad", None) if tensor.is_leaf else None
        if gradient is not None:
            look.add(gradient, "gradients", f"{name}.grad")
    for optimizer in optimizers:
        for parameter, state in list(optimizer.__dict__.get("state", {}).items()):
            of = look.names.get(id(parameter), "") if not isinstance(parameter, (str, int)) else str(parameter)
            items = state.items() if isinstance(state, dict) else [("state", state)]
            for key, value in list(items):
                look.add_all(value, "optimizer_state", f"{of}.{key}" if of else f"{type(optimizer).__name__}.{key}")
        for group in list(optimizer.__dict__.get("param_groups", ())):
            for key, value in list(group.items()):
                if key != "params":
                    look.add_all(value, "optimizer_state", f"{type(optimizer).__name__}.{key}")
    for cache in _list(_caches):
        for key, value in list(getattr(cache, "__dict__", {}).items()):
            holder = next((attribute for module, name, attribute in _HOLDERS if name in type(cache).__name__), None)
            if holder is None or key == holder:
                look.add_all(value, "kv_cache", f"{type(cache).__name__}.{key}")


def _is_ready() -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and hasattr(torch, "nn") and hasattr(torch, "cuda") and bool(torch.cuda.is_initialized())


def _look() -> List[Label]:
    look = _Look()
    try:
        _walk(look)
    except RuntimeError:  # another thread changed the inspected objects; the results so far are valid
        pass
    return look.labels


def _allocated() -> int:
    torch = sys.modules["torch"]
    try:
        return sum(int(torch.cuda.memory_allocated(device)) for device in range(torch.cuda.device_count()))
    except RuntimeError:  # a pluggable allocator
        return 0


def categorize() -> Categories:
    """Classifies the memory of this process that the framework's objects hold: searches all objects and inspects each tensor (3 us each).
    Under `vramtrack run`, the trace records the result as well. Call it at a safe point: the end of a step. It takes no GPU memory, does
    not synchronise, and does not start CUDA."""
    begun = time.perf_counter()
    if not _is_ready():
        return Categories((), 0, 0.0)
    attach()
    with _lock:
        search()
        labels = _look()
    return Categories(tuple(labels), _allocated(), time.perf_counter() - begun)


def look_now_and_then() -> None:
    """Reports to the probe, if there is one, at most once per second and using at most 1 % of the time. Never raises."""
    global _next_look, _next_search
    now = time.monotonic()
    if now < _next_look or not _is_ready() or not _lock.acquire(blocking=False):
        return
    try:
        attach()
        if now >= _next_search:
            search()
            _next_search = time.monotonic() + (time.monotonic() - now) / _SEARCH_SHARE
        begun = time.monotonic()
        _look()
        _next_look = time.monotonic() + max(_LOOK_S, (time.monotonic() - begun) / _LOOK_SHARE)
    except Exception:  # a look must not end a training; the next one is a minute later
        _next_look = now + 60
    finally:
        _lock.release()


def labels_for_snapshot(found: Categories) -> List[Dict[str, Any]]:
    """The field "vramtrack_categories" of a snapshot, as `vramtrack snapshot` reads it."""
    return [{"address": label.address, "category": label.category, "name": label.name} for label in found.labels]


def dump_snapshot(path: str) -> Categories:
    """Like torch.cuda.memory._dump_snapshot(path), with the categories of the blocks from categorize(): `vramtrack snapshot summary` and
    `leaks` show them by category and name."""
    import pickle

    import torch

    found = categorize()
    taken = torch.cuda.memory._snapshot()
    with open(path, "wb") as file:
        pickle.dump({**taken, "vramtrack_categories": labels_for_snapshot(found)}, file)
    return found
