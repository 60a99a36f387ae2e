"""What keeps tensors alive: variables, containers and attributes, found by asking the garbage collector once, within a time limit."""
from __future__ import annotations

import gc
import inspect
import os
import re
import sys
import time
import types
from typing import Any, Callable, Dict, Iterable, List, NamedTuple, Optional, Tuple

_FILE = sys._getframe().f_code.co_filename
#: referrers are asked for so many tensors at once; all tensors of a container that one of them names are done with it
_SAMPLE = 48
#: steps from a container up to a variable: a list in a dict in an attribute of an object in a global takes four
_DEPTH = 8
#: objects that are followed on one step: a question takes longer for more
_WIDTH = 48
#: so much of the time is for finding what holds the tensors; the rest is for naming it
_SEARCH_SHARE = 0.6
_GENERATORS = (types.GeneratorType, types.CoroutineType, types.AsyncGeneratorType)
_UNNAMED = "the autograd graph of other tensors, or other C++ code,"


def _printable(text: str) -> str:
    """Names of the program's own may hold anything. This file runs where the package is not."""
    return "".join(c if c.isprintable() else "?" for c in text)


class Keeper(NamedTuple):
    """One place that keeps tensors. str() gives it in words."""

    path: str  # "losses (list, 5,632 items) in train.py module globals"
    tensors: int  # kept there
    bytes: int  # of their storages, each counted once
    graphs: int  # so many of these tensors have a grad_fn, which keeps the graph of their step
    grown_tensors: int = 0  # more than at an earlier look
    grown_bytes: int = 0
    made_at: str = ""  # the line that made most of them, where PyTorch's recorder knows it

    def __str__(self) -> str:
        words = f"{_printable(self.path)} keeps {self.tensors:,} tensor{'' if self.tensors == 1 else 's'} of {self.bytes / 2**20:,.1f} MiB"
        if self.grown_tensors or self.grown_bytes:
            words += f", {self.grown_tensors:+,} and {self.grown_bytes / 2**20:+,.1f} MiB since the first look"
        if self.graphs and self.path != _UNNAMED:
            words += f"; {self.graphs:,} with the graph of the step (grad_fn): keep .item() or .detach() instead"
        return words + (f"; made at {_printable(self.made_at)}" if self.made_at else "")


class Kept(NamedTuple):
    """What one look found, the most bytes first. It refers to no object of the program."""

    keepers: Tuple[Keeper, ...]
    tensors: int
    bytes: int
    seconds: float
    is_complete: bool  # False: the time was up before every tensor had a keeper

    def since(self, before: "Kept") -> "Kept":
        """The keepers that have grown since an earlier look. Those that keep more and more graphs come first: a tensor of a few bytes
        keeps all of its step's activations with its graph. Then the largest growth."""
        known = {_identity(keeper.path): keeper for keeper in before.keepers}
        grown = []
        for keeper in self.keepers:
            old = known.get(_identity(keeper.path))
            if old is None and not before.is_complete and keeper.tensors < _SAMPLE:
                continue  # perhaps it was there, and was not looked at
            tensors, size, graphs = (0, 0, 0) if old is None else (old.tensors, old.bytes, old.graphs)
            if keeper.tensors > tensors or keeper.bytes > size:
                more = keeper._replace(grown_tensors=keeper.tensors - tensors, grown_bytes=keeper.bytes - size)
                grown.append((keeper.graphs - graphs > 1 and keeper.path != _UNNAMED, more.grown_bytes, more.grown_tensors, more))
        grown.sort(key=lambda one: one[:3], reverse=True)
        return self._replace(keepers=tuple(one[3] for one in grown))

    def _repr_html_(self) -> str:
        from vramtrack.html_table import table  # not at the top: `vramtrack attach` takes this file to programs without the package

        rows = [(one.path, f"{one.tensors:,}", f"{one.bytes / 2**20:,.1f} MiB", f"{one.graphs:,}", one.made_at) for one in self.keepers]
        notes = [] if self.is_complete else [f"stopped after {self.seconds:.1f} s, with tensors left: give it more time"]
        if any(one.graphs for one in self.keepers if one.path != _UNNAMED):
            notes.append("A tensor with a graph keeps its step's activations: keep .item() or .detach() instead")
        return table(f"{self.tensors:,} tensors of {self.bytes / 2**20:,.1f} MiB on GPUs", ("kept by", "tensors", "bytes", "with a graph", "made at."), rows, notes)

    def __str__(self) -> str:
        lines = [str(keeper) for keeper in self.keepers] or ["no tensor on a GPU is known to Python"]
        if not self.is_complete:
            lines.append(f"stopped after {self.seconds:.1f} s, with tensors left: give it more time")
        return "\n".join(lines)


def kept_by(
    objects: Optional[Iterable[Any]] = None, limit: int = 10, seconds: float = 2.0, site_of: Optional[Callable[[int, int], str]] = None
) -> Kept:
    """Which variables and containers keep tensors on a GPU alive, the most bytes first.

    objects   these objects, of any type; default: all tensors on GPUs
    limit     at most this many places
    seconds   the time it may take. A look at a process with PyTorch takes about a second
    site_of   the line that made the storage at (device, address)

    It runs in the calling thread, which waits for it: call it between two steps. Afterwards it refers to no object of the program."""
    begun = time.monotonic()
    search = _Search(objects, site_of or (lambda device, address: ""), begun + seconds)
    try:
        is_complete = search.run()
        keepers = search.keepers()
        total = sum(dict(facts[:2] for facts in search.facts.values()).values())
        return Kept(tuple(keepers[:limit]), len(search.facts), total, time.monotonic() - begun, is_complete)
    finally:
        search.clear()


def _identity(path: str) -> str:
    """A path without the numbers of items in it."""
    return re.sub(r"[\d,]+ items", "items", path)


class _Search:
    """
    tensors --holders_of()--> containers, frames --climb()--> their referrers, level by level --name()--> words

    One level is one question to the garbage collector, which takes about as long as a full collection."""

    def __init__(self, objects: Optional[Iterable[Any]], site_of: Callable[[int, int], str], until: float) -> None:
        self.begun = time.monotonic()
        self.until = until
        self.objects: List[Any] = []
        self.facts: Dict[int, Tuple[int, int, bool, str]] = {}  # by id: its storage, the bytes of that, has it a graph, its line
        self.nodes: Dict[int, Any] = {}  # what keeps, by id
        self.parents: Dict[int, List[Any]] = {}
        self.names: Dict[int, str] = {}
        self.found: Dict[str, Dict[int, None]] = {}  # path -> ids of tensors
        self.modules = {id(m.__dict__): m for m in list(sys.modules.values()) if isinstance(m, types.ModuleType)}
        self.frames = _frames()
        self.own = {id(self), id(self.__dict__)} | {id(value) for value in self.__dict__.values()}
        self._take(objects, site_of)

    def clear(self) -> None:
        for its in (self.objects, self.facts, self.nodes, self.parents, self.frames, self.modules):
            its.clear()  # type: ignore[attr-defined]

    def _take(self, objects: Optional[Iterable[Any]], site_of: Callable[[int, int], str]) -> None:
        kind = getattr(sys.modules.get("torch"), "Tensor", None)
        known: Dict[type, bool] = {}
        everything = gc.get_objects() if objects is None else list(objects)
        for one in everything:
            its = type(one)
            if its not in known:
                known[its] = kind is not None and issubclass(its, kind)
            facts = _facts(one, site_of) if known[its] else None
            if facts is None and objects is not None:
                facts = (id(one), sys.getsizeof(one, 0), False, "")
            if facts is not None and id(one) not in self.facts:
                self.facts[id(one)] = facts
                self.objects.append(one)
        if objects is not None:
            self.own.add(id(objects))

    def is_late(self) -> bool:
        return time.monotonic() >= self.until

    def referrers(self, of: List[Any]) -> List[Any]:
        arguments = tuple(of)
        self.own.update((id(of), id(arguments)))
        found = gc.get_referrers(*arguments)
        self.own.add(id(found))
        return [one for one in found if id(one) not in self.own and not isinstance(one, types.FrameType)]

    def run(self) -> bool:
        """Whether every tensor got a keeper in time."""
        left = list(self.facts)
        holders: List[Any] = []
        held: Dict[int, Dict[int, None]] = {}  # id of the holder -> ids of tensors
        seen: Dict[int, None] = {}
        self.own.update((id(left), id(holders), id(held)))

        def take(holder: Any) -> None:
            members = dict.fromkeys(i for i in _members(holder) if i in self.facts)
            if members and id(holder) not in held and id(holder) not in self.facts and not _is_no_keeper(holder):
                holders.append(holder)
                held[id(holder)] = members
                seen.update(members)

        for frame in self.frames:
            take(frame)
        # A few tensors name the containers that hold most of them.
        sample = self.objects[:: max(1, len(left) // _SAMPLE)][:_SAMPLE]
        for holder in self.referrers(sample):
            take(holder)
        sample.clear()
        is_complete = self._search_all([i for i in left if i not in seen], take)
        holders.sort(key=lambda holder: len(held[id(holder)]), reverse=True)
        self._climb(holders)
        for holder in holders:
            for i in held[id(holder)]:
                for path in self._edges(holder, i):
                    self.found.setdefault(path, {})[i] = None
        for i in self.facts:
            if is_complete and i not in seen:
                self.found.setdefault(_UNNAMED, {})[i] = None
        holders.clear()
        return is_complete

    def _search_all(self, left: List[int], take: Callable[[Any], None]) -> bool:
        """Looks for the holders of the other tensors among all objects. False: the time was up."""
        if not left:
            return True
        wanted = frozenset(left)
        self.own.update((id(left), id(wanted)))
        everything = gc.get_objects()
        self.own.add(id(everything))
        until = self.until - (1 - _SEARCH_SHARE) * (self.until - self.begun)
        for n, one in enumerate(everything):
            if n % 4096 == 0 and time.monotonic() >= until:
                return False
            if not wanted.isdisjoint(map(id, gc.get_referents(one))) and id(one) not in self.own and not isinstance(one, types.FrameType):
                take(one)
        return True

    def keepers(self) -> List[Keeper]:
        out = []
        for path, ids in self.found.items():
            storages = {self.facts[i][0]: self.facts[i][1] for i in ids}
            lines: Dict[str, int] = {}
            for i in ids:
                line = self.facts[i][3]
                if line:
                    lines[line] = lines.get(line, 0) + self.facts[i][1]
            made_at = max(lines, key=lambda line: lines[line]) if lines else ""
            out.append(Keeper(path, len(ids), sum(storages.values()), sum(self.facts[i][2] for i in ids), made_at=made_at))
        out.sort(key=lambda keeper: (keeper.bytes, keeper.tensors), reverse=True)
        return out

    # ---- up from the containers

    def _is_root(self, one: Any) -> bool:
        return id(one) in self.modules or isinstance(one, (_Frame, type, types.ModuleType, types.FunctionType))

    def _climb(self, level: List[Any]) -> None:
        for one in level:
            self.nodes[id(one)] = one
        for _ in range(_DEPTH):
            asked = [one for one in level if not self._is_root(one)][:_WIDTH]
            if not asked or self.is_late():
                return
            wanted = {id(one) for one in asked}
            self.own.update((id(level), id(wanted)))
            level = []
            for parent in [*self.frames, *self.referrers(asked)]:
                children = wanted.intersection(_members(parent))
                for child in children:
                    its = self.parents.setdefault(child, [])
                    self.own.add(id(its))
                    if len(its) < _WIDTH:
                        its.append(parent)
                if children and id(parent) not in self.nodes:
                    self.nodes[id(parent)] = parent
                    level.append(parent)

    # ---- words

    def _edges(self, holder: Any, member: int) -> List[str]:
        """Each name by which `holder` keeps the tensor: a namespace is no container, so each of its names is a keeper."""
        module = self.modules.get(id(holder))
        if module is not None:
            return [f"{name} in {_module_words(module)}" for name in _keys(holder, member)]
        if isinstance(holder, _Frame):
            return [f"{holder.names[member]} in {holder.words}"]
        if isinstance(holder, _GENERATORS):
            return [f"a local variable of {_describe(holder)}"]
        owner = self._owner(holder)
        if owner is not None:
            return [self._attribute(owner, name, "") for name in _keys(holder, member)]
        if not _is_container(holder):
            return [self._attribute(holder, name, "") for name in _attribute_names(holder, member)] or [self.name(holder)]
        return [self.name(holder)]

    def _owner(self, attributes: Any) -> Any:
        """The object whose __dict__ this is."""
        if isinstance(attributes, dict):
            for parent in self.parents.get(id(attributes), ()):
                if isinstance(parent, type):
                    if list(vars(parent)) == list(attributes):
                        return parent
                elif not isinstance(parent, (dict, _Frame)) and _dict_of(parent) is attributes:
                    return parent
        return None

    def name(self, one: Any) -> str:
        """What keeps `one`, up to a global, a local variable or a class."""
        known = self.names.get(id(one))
        if known is None:
            self.names[id(one)] = _describe(one)  # a circle ends here
            ways = [way for way in (self._way(one, parent) for parent in self.parents.get(id(one), ())) if way]
            ways.sort(key=lambda way: (not way.endswith("module globals"), len(way)))
            known = self.names[id(one)] = ways[0] if ways else _describe(one)
        return known

    def _way(self, one: Any, parent: Any) -> str:
        what = _describe(one) if _is_container(one) else ""
        module = self.modules.get(id(parent))
        if module is not None:
            return "".join(f"{_named(name, one)} in {_module_words(module)}" for name in _keys(parent, id(one))[:1])
        if isinstance(parent, _Frame):
            return f"{_named(parent.names[id(one)], one)} in {parent.words}"
        if isinstance(parent, type):
            return "".join(self._attribute(parent, name, what) for name in _keys(dict(vars(parent)), id(one))[:1])
        if isinstance(parent, types.FunctionType):
            return f"the {'closure' if parent.__closure__ is one else 'default arguments'} of {parent.__qualname__}()"
        owner = self._owner(parent)
        if owner is not None:
            return "".join(self._attribute(owner, name, what) for name in _keys(parent, id(one))[:1])
        if isinstance(parent, dict):
            return "".join(f"[{name!r}] ({what or 'object'}) of {self.name(parent)}" for name in _keys(parent, id(one))[:1])
        if _is_container(parent):
            return f"{what or _describe(one)} within {self.name(parent)}"
        return "".join(self._attribute(parent, name, what) for name in _attribute_names(parent, id(one))[:1])

    def _attribute(self, owner: Any, name: str, what: str) -> str:
        if isinstance(owner, type):
            return f"{owner.__qualname__}.{name}" + (f" ({what})" if what else "") + ", attribute of the class"
        where, plain = self.name(owner), _describe(owner)
        words = f"{type(owner).__qualname__}.{name}" + (f" ({what})" if what else "")
        return f"{words}, attribute of " + (f"an object of {type(owner).__module__}.{type(owner).__qualname__}" if where == plain else where)


def _facts(tensor: Any, site_of: Callable[[int, int], str]) -> Optional[Tuple[int, int, bool, str]]:
    try:
        if not tensor.is_cuda:
            return None
        storage = tensor.untyped_storage() if hasattr(tensor, "untyped_storage") else tensor.storage()
        address = int(storage.data_ptr())
        return address, int(storage.nbytes()), tensor.grad_fn is not None, site_of(int(tensor.device.index or 0), address)
    except Exception:  # sparse, nested and fake tensors have no storage
        return None


class _Frame:
    """A function that runs: its local variables by the ids of their values, which it does not refer to."""

    def __init__(self, frame: Any) -> None:
        code = frame.f_code
        self.words = f"{getattr(code, 'co_qualname', code.co_name)}() at {os.path.basename(code.co_filename)}:{frame.f_lineno}"
        names = frame.f_locals
        self.names = {id(value): str(name) for name, value in list(names.items())}
        # Before Python 3.13 this dictionary stays with the frame, and would keep the values alive. If the program has asked for its
        # locals(), it is the program's, and stays as it is.
        if sys.version_info < (3, 13) and sys.getrefcount(names) <= 3:
            names.clear()


def _frames() -> List[Any]:
    """The functions that run in all threads, but for this module's own. Modules and class bodies have namespaces instead."""
    out = []
    running: Dict[int, Any] = sys._current_frames()
    for thread in list(running):
        at = running.pop(thread)  # one of them is this function's: a reference that stays would be a circle
        while at is not None:
            if at.f_code.co_filename != _FILE and at.f_code.co_flags & inspect.CO_OPTIMIZED:
                out.append(_Frame(at))
            at = at.f_back
    return out


def _members(holder: Any) -> List[int]:
    return list(holder.names) if isinstance(holder, _Frame) else [id(one) for one in gc.get_referents(holder)]


def _is_container(one: Any) -> bool:
    return isinstance(one, (dict, list, tuple, set, frozenset)) or type(one).__name__ in ("deque", "OrderedDict", "dict_values")


def _is_no_keeper(holder: Any) -> bool:
    """What refers to a tensor for a moment only: a weak reference, a bound method."""
    return isinstance(holder, (types.BuiltinMethodType, types.MethodType)) or "weak" in type(holder).__name__.lower()


def _keys(namespace: Dict[Any, Any], member: int) -> List[str]:
    for _ in range(3):  # another thread may change it meanwhile
        try:
            return [str(key)[:80] for key, value in namespace.items() if id(value) == member] or [
                "a key" for key in namespace if id(key) == member
            ]
        except RuntimeError:
            pass
    return []


def _dict_of(one: Any) -> Any:
    try:
        return object.__getattribute__(one, "__dict__")
    except Exception:
        return None


def _attribute_names(owner: Any, member: int) -> List[str]:
    attributes = _dict_of(owner)
    if isinstance(attributes, dict):
        names = _keys(attributes, member)
        if names:
            return names
    out = []
    for kind in type(owner).__mro__:
        for name, slot in list(vars(kind).items()):
            if isinstance(slot, types.MemberDescriptorType):
                try:
                    if id(slot.__get__(owner, kind)) == member:
                        out.append(name)
                except AttributeError:
                    pass
    return out


def _describe(one: Any) -> str:
    kind = type(one).__name__
    if isinstance(one, types.CellType):
        return "a variable"
    if isinstance(one, _GENERATORS):
        return f"the {kind} {one.__qualname__}()"
    if not _is_container(one):
        return f"an object of {type(one).__module__}.{type(one).__qualname__}"
    try:
        return f"{kind}, {len(one):,} items"
    except Exception:
        return kind


def _named(name: str, one: Any) -> str:
    return f"{name} ({_describe(one)})" if _is_container(one) else name


def _module_words(module: Any) -> str:
    file = getattr(module, "__file__", None)
    return f"{os.path.basename(str(file)) if file else module.__name__} module globals"


def _frame_words(frame: Any) -> str:
    code = frame.f_code
    return f"{getattr(code, 'co_qualname', code.co_name)}() at {os.path.basename(code.co_filename)}:{frame.f_lineno}"
