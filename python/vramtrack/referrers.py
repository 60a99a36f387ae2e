"""What keeps tensors alive: variables, containers and attributes, found by querying the garbage collector once, within a time limit."""
from __future__ import annotations

import _thread
import collections
import contextvars
import dis
import gc
import inspect
import os
import re
import sys
import time
import types
import weakref
from typing import Any, Callable, Dict, Iterable, List, NamedTuple, Optional, Tuple

from vramtrack.units import format_change, format_size

_FILE = sys._getframe().f_code.co_filename
#: the collector is queried about this many tensors at once; all tensors in a container named by one of them are done with it
_SAMPLE = 48
#: steps from a container up to a variable: a list in a dict in an attribute of an object in a global takes four. Before Python 3.11 an
#: attribute takes two: its dictionary is a separate object.
_DEPTH = 8 if sys.version_info >= (3, 11) else 12
#: objects that are followed in one step: a query takes longer for more
_WIDTH = 48
#: of similar objects, this many are followed: a query about few objects takes less time
_ALIKE = 8
#: links of a chain (nodes of a linked list, steps of a graph) that are more than nesting
_CHAIN = 6
#: while an object has no variable and there is time, the number of steps is multiplied by this
_FURTHER = 3
#: variables at which a chain may begin are chosen from this many
_HEADS = 8
#: More names in one namespace, or keys in one dictionary, were created by the program as it ran: together they are one keeper.
_SERIES = 24
#: this share of the time is for finding the holders of the tensors; the rest is for naming them
_SEARCH_SHARE = 0.6
#: a look at a sample makes this many queries, each about tensors without a known holder, until there are so few
_ROUNDS, _FEW, _FEW_ONE_IN = 3, 6, 50
#: objects that are visited to determine in which of several containers others are
_VISITS = 200_000
#: at most this many nodes of graphs are visited, in this share of the time
_NODES, _GRAPH_SHARE = 20_000, 0.25
_GOLDEN = 0.6180339887498949
_LRU = "_lru_cache_wrapper"
_LOCAL = _thread._local
_CONTAINERS = (dict, list, tuple, set, frozenset)
_GENERATORS = (types.GeneratorType, types.CoroutineType, types.AsyncGeneratorType)
#: Two searches at once would find each other's lists. For all copies of this module in the process: `run` and `attach` have theirs.
_ONE_AT_A_TIME = vars(sys).setdefault("_vramtrack_search", _thread.allocate_lock())
_UNNAMED = "the autograd graph of other tensors, or other C++ code,"
#: a path that contains one of these begins at a variable
_ROOTS = (
    "module globals",
    ", local of ",
    "attribute of the class",
    "attributes of the class",
    "the closure of ",
    "the default arguments of ",
    ", a context variable",
)


def _printable(text: str) -> str:
    """The program's own names may contain anything. This file also runs without the package."""
    return "".join(c if c.isprintable() else "?" for c in text)


class Keeper(NamedTuple):
    """One place that keeps tensors. str() gives it in words."""

    path: str  # "losses (list, 5,632 items) in train.py module globals"
    tensors: int  # kept there
    bytes: int  # of their storages, and of memory that only their graphs keep, each counted once
    graphs: int  # the number of these tensors with a grad_fn, which keeps the graph of their step
    grown_tensors: int = 0  # more than at an earlier look
    grown_bytes: int = 0
    made_at: str = ""  # the line that created most of them, if PyTorch's recorder has it

    def __str__(self) -> str:
        words = f"{_printable(self.path)} keeps {self.tensors:,} tensor{'' if self.tensors == 1 else 's'} of {format_size(self.bytes)}"
        if self.grown_tensors or self.grown_bytes:
            words += f", {self.grown_tensors:+,} and {format_change(self.grown_bytes)} since the first look"
        if self.graphs and self.path != _UNNAMED:
            words += f"; {self.graphs:,} with the graph of the step (grad_fn): keep .item() or .detach() instead"
        return words + (f"; made at {_printable(self.made_at)}" if self.made_at else "")


class Kept(NamedTuple):
    """The result of one look, most bytes first. It refers to no object of the program."""

    keepers: Tuple[Keeper, ...]
    tensors: int
    bytes: int
    seconds: float
    is_complete: bool  # False: the time was up before every tensor had a keeper

    def since(self, before: "Kept") -> "Kept":
        """The keepers that have grown since an earlier look. Those that keep more and more graphs come first, because a tensor of a few
        bytes keeps all activations of its step with its graph. Then the largest growth."""
        known = {_identity(keeper.path): keeper for keeper in before.keepers}
        grown = []
        for keeper in self.keepers:
            old = known.get(_identity(keeper.path))
            if old is None and not before.is_complete and keeper.tensors < _SAMPLE:
                continue  # perhaps it was there, but not visited
            tensors, size, graphs = (0, 0, 0) if old is None else (old.tensors, old.bytes, old.graphs)
            if keeper.tensors > tensors or keeper.bytes > size:
                more = keeper._replace(grown_tensors=keeper.tensors - tensors, grown_bytes=keeper.bytes - size)
                grown.append((keeper.graphs - graphs > 1 and keeper.path != _UNNAMED, more.grown_bytes, more.grown_tensors, more))
        grown.sort(key=lambda one: one[:3], reverse=True)
        return self._replace(keepers=tuple(one[3] for one in grown))

    def _repr_html_(self) -> str:
        from vramtrack.html_table import table  # not at the top: `vramtrack attach` takes this file to programs without the package

        rows = [(one.path, f"{one.tensors:,}", format_size(one.bytes), f"{one.graphs:,}", one.made_at) for one in self.keepers]
        notes = [] if self.is_complete else [f"stopped after {self.seconds:.1f} s, with tensors left: give it more time"]
        if any(one.graphs for one in self.keepers if one.path != _UNNAMED):
            notes.append("A tensor with a graph keeps its step's activations: keep .item() or .detach() instead")
        return table(f"{self.tensors:,} tensors of {format_size(self.bytes)} on GPUs", ("kept by", "tensors", "bytes", "with a graph", "made at."), rows, notes)

    def __str__(self) -> str:
        lines = [str(keeper) for keeper in self.keepers] or ["no tensor on a GPU is known to Python"]
        if not self.is_complete:
            lines.append(f"stopped after {self.seconds:.1f} s, with tensors left: give it more time")
        return "\n".join(lines)


def kept_by(
    objects: Optional[Iterable[Any]] = None, limit: int = 10, seconds: float = 2.0, site_of: Optional[Callable[[int, int], str]] = None
) -> Kept:
    """Which variables and containers keep tensors on a GPU alive, most bytes first.

    objects   these objects, of any type; default: all tensors on GPUs
    limit     at most this many places
    seconds   the time it may take. A look at a process with PyTorch takes about a second
    site_of   the line that made the storage at (device, address)

    It runs in the calling thread: call it between two steps. Afterwards it refers to no object of the program."""
    is_alone = _ONE_AT_A_TIME.acquire(timeout=seconds)
    begun = time.monotonic()
    search = _Search(objects, site_of or (lambda device, address: ""), begun + seconds)
    try:
        is_complete = search.run()
        keepers = search.keepers()
        total = sum(dict(facts[:2] for facts in search.facts.values()).values())
        return Kept(tuple(keepers[:limit]), len(search.facts), total, time.monotonic() - begun, is_complete)
    finally:
        search.clear()
        if is_alone:
            _ONE_AT_A_TIME.release()


def _identity(path: str) -> str:
    """A path without the item numbers in it."""
    return re.sub(r"[\d,]+ items", "items", path)


def is_rooted(path: str) -> bool:
    """Whether a keeper's path leads to a variable, rather than to an object without a name."""
    return any(root in path for root in _ROOTS)


class _Search:
    """
    tensors --holders_of()--> containers, frames --climb()--> their referrers, level by level --name()--> words

    One level is one query to the garbage collector, which takes about as long as a full collection. Objects that keep each other in
    turn have hundreds of levels: chains() finds where they begin in one more query."""

    def __init__(self, objects: Optional[Iterable[Any]], site_of: Callable[[int, int], str], until: float, is_whole: bool = True) -> None:
        self.begun = time.monotonic()
        self.is_whole = is_whole  # False: only keepers of many tensors are found, in a third of the time
        self.until = until
        self.objects: List[Any] = []
        self.facts: Dict[int, Tuple[int, int, bool, str]] = {}  # by id: its storage and that one's bytes, whether it has a graph, its line
        self.nodes: Dict[int, Any] = {}  # keepers, by id
        self.parents: Dict[int, List[Any]] = {}
        self.asked: Any = frozenset()  # of the direct keepers of tensors, those that were followed
        self.asked_tensors: Dict[int, None] = {}  # ids of the tensors about which the garbage collector was queried
        self.unheld: List[int] = []  # ids of tensors without a known holder
        self.chains: Dict[int, Tuple[Any, str]] = {}  # for objects in a chain: where it begins, and the chain in words
        self.closed: Any = set()  # ids of objects that refer only to each other: the garbage collector will find them
        self.hidden: List[Any] = []  # objects that gc.get_referrers() does not see through
        self.names: Dict[int, str] = {}
        self.far: Dict[int, int] = {}  # for each visited object: steps to a variable, if one was found
        self.series: Dict[int, Dict[int, List[str]]] = {}  # for namespaces, by id: the names by the ids of their values
        self.kinds: Dict[int, Dict[type, int]] = {}  # for dictionaries, by id: the number of values of each type
        self.visits = 0
        self.steps = 0  # in the name being built: in a chain of objects, each keeps the next
        self.found: Dict[str, Dict[int, None]] = {}  # path -> ids of tensors
        self.graphs: Dict[int, Tuple[Dict[int, int], Dict[int, None]]] = {}  # by id of a tensor: bytes by storage, ids of the tensors below
        self.within: Dict[int, None] = {}  # ids of the tensors that a graph leads to or has saved
        self.saved: Dict[int, Dict[int, int]] = {}  # id of a tensor -> bytes by storage that its graph keeps, and no other variable
        self.modules = {id(m.__dict__): m for m in list(sys.modules.values()) if isinstance(m, types.ModuleType)}
        self.running: Dict[int, None] = {}
        self.frames = _frames(self.running)
        self.own = {id(self), id(self.__dict__)} | {id(value) for value in self.__dict__.values()}
        self._take(objects, site_of)

    def clear(self) -> None:
        for its in (self.objects, self.facts, self.nodes, self.parents, self.chains, self.hidden, self.frames, self.running, self.modules):
            its.clear()  # type: ignore[attr-defined]

    def _take(self, objects: Optional[Iterable[Any]], site_of: Callable[[int, int], str]) -> None:
        kind = getattr(sys.modules.get("torch"), "Tensor", None)
        known: Dict[type, bool] = {}
        everything = gc.get_objects() if objects is None else list(objects)
        for one in everything:
            its = type(one)
            if its not in known:
                known[its] = (kind is not None and issubclass(its, kind)) or _is_device_array(its)
            if its.__module__ == "_asyncio":  # before Python 3.12, a Task does not show that it keeps its result
                self.hidden.append(one)
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
        if self.hidden:
            wanted, seen = set(map(id, of)), set(map(id, found))
            found += [one for one in self.hidden if id(one) not in seen and not wanted.isdisjoint(map(id, gc.get_referents(one)))]
        return [one for one in found if id(one) not in self.own and not self._is_running(one)]

    def _is_running(self, one: Any) -> bool:
        """A running frame is a _Frame. A frame that has ended may be kept by a traceback."""
        return isinstance(one, types.FrameType) and (id(one) in self.running or one.f_code.co_filename == _FILE)

    def run(self) -> bool:
        """Returns whether every tensor got a keeper in time."""
        left = list(self.facts)
        holders: List[Any] = []
        held: Dict[int, Dict[int, None]] = {}  # id of the holder -> ids of tensors
        seen: Dict[int, None] = {}
        self.own.update((id(left), id(holders), id(held)))

        def take(holder: Any) -> None:
            members = dict.fromkeys(filter(self.facts.__contains__, _members(holder)))
            if members and id(holder) not in held and id(holder) not in self.facts and not _is_no_keeper(holder):
                holders.append(holder)
                held[id(holder)] = members
                seen.update(members)

        for frame in self.frames:
            take(frame)
        self._walk_graphs()
        # A few tensors name the containers that hold most of them.
        for n in range(1 if self.is_whole else _ROUNDS):
            sample = self._sample(seen if n else {})
            for holder in self.referrers(sample):
                take(holder)
            self.asked_tensors.update(dict.fromkeys(map(id, sample)))
            sample.clear()
            if len(left) - len(seen) < max(_FEW, len(left) // _FEW_ONE_IN) or 3 * time.monotonic() >= 2 * self.begun + self.until:
                break
        is_complete = not self.is_whole or self._search_all([i for i in left if i not in seen], take)
        groups = self._alike(holders, held)
        paths: Dict[str, List[Any]] = {}  # of one group: path -> the followed holders
        followed_of: Dict[str, List[Any]] = {}  # of all groups
        self._climb([one for group in groups for one in _spread(group, _ALIKE)])
        self.far = self._distances()
        for group in groups:
            followed = [holder for holder in group if self._is_root(holder) or id(holder) in self.asked]
            rest = [holder for holder in group if not self._is_root(holder) and id(holder) not in self.asked]
            paths = {}
            for holder in followed if followed else rest:
                for i in held[id(holder)]:
                    for path in self._edges(holder, i):
                        its = paths.setdefault(path, [])
                        if not its or its[-1] is not holder:
                            its.append(holder)
                        self.found.setdefault(path, {})[i] = None
            if followed and paths:
                # Only some of many similar ones are followed: the others are kept in the same place.
                most = _by_container(paths)[0]
                apart = {i: its for i, its in self._containers_of(paths).items() if len(its) < len(paths)} if len(paths) > 1 else {}
                where = self._paths_to(set(map(id, rest)), apart)
                for holder in rest:
                    for path in where.get(id(holder), [most]):
                        self.found.setdefault(path, {}).update(held[id(holder)])
            for path, its in paths.items():
                if is_rooted(path):
                    followed_of.setdefault(path, []).extend(its)
        groups.clear()
        if not self.is_whole:  # nested containers: a sample of the holders leads to the others
            for i, of_this in self._paths_to({i for i in left if i not in seen}, self._containers_of(followed_of)).items():
                seen[i] = None
                for path in of_this:
                    self.found.setdefault(path, {})[i] = None
        followed_of.clear()
        is_in_time = not self.is_late()
        self._keep_saved(seen)
        saved = {address for its in self.saved.values() for address in its}
        self.unheld = [i for i in left if i not in seen and self.facts[i][0] not in saved]
        if self.is_whole and is_complete and self.unheld:
            self.found[_UNNAMED] = dict.fromkeys(self.unheld)
        holders.clear()
        return is_complete and is_in_time

    def _walk_graphs(self) -> None:
        """Finds the tensors that graphs save for a backward pass, and those they lead to. Each node belongs to the nearest tensor."""
        roots = [one for one in self.objects if self.facts[id(one)][2]]
        nodes: Dict[int, Any] = {}
        of: Dict[int, int] = {}  # the ids of tensors by those of their nodes
        names_of: Dict[type, List[str]] = {}
        until = min(self.until, time.monotonic() + _GRAPH_SHARE * (self.until - self.begun))
        self.own.update((id(roots), id(nodes)))
        for one in _scattered(roots, _NODES // 2):
            node = one.grad_fn
            if node is not None and id(node) not in of:
                nodes[id(node)] = node
                of[id(node)] = id(one)
                self.graphs[id(one)] = ({}, {})
        ways = collections.deque(of.items())
        while ways and len(nodes) < _NODES and time.monotonic() < until:
            i, owner = ways.popleft()
            saved, below = self.graphs[owner]
            for tensor in _saved_by(nodes[i], names_of):
                self.within[id(tensor)] = None
                facts = _facts(tensor, lambda device, address: "")
                if facts is not None:
                    saved[facts[0]] = facts[1]
            for node, _ in getattr(nodes[i], "next_functions", ()):  # tensors of other libraries may have none
                if node is None:
                    continue
                if id(node) in of:
                    below[of[id(node)]] = None
                    self.within[of[id(node)]] = None
                elif id(node) not in nodes:
                    nodes[id(node)] = node
                    ways.append((id(node), owner))

    def _keep_saved(self, held: Dict[int, None]) -> None:
        """Assigns tensors saved by graphs to the nearest tensors that something holds: for a sum over all steps, everything that no
        variable of the current step leads to."""
        known = {self.facts[i][0] for i in held}
        ways = collections.deque((i, i) for i in held if i in self.graphs)
        met: Any = set(held)
        while ways:
            i, owner = ways.popleft()
            saved, below = self.graphs[i]
            for address, size in (*saved.items(), self.facts[i][:2]):
                if address not in known:
                    known.add(address)
                    self.saved.setdefault(owner, {})[address] = size
            ways.extend((each, owner) for each in below if each not in met)
            met.update(below)

    def _sample(self, seen: Dict[int, None]) -> List[Any]:
        """Some tensors of each kind that are not `seen`, because parameters outnumber the tensors that one line of a program keeps. Tensors
        within a graph are most often kept by it alone, and outnumber those at its start."""
        kinds: Dict[Any, List[Any]] = {}
        for one in self.objects:
            if id(one) not in seen:
                kinds.setdefault((type(one), self.facts[id(one)][2], id(one) in self.within), []).append(one)
        self.own.update(map(id, [kinds, *kinds.values()]))
        most = _SAMPLE if self.is_whole else _SAMPLE // 4
        sample = [one for its in kinds.values() for one in _scattered(its, most)][: 2 * _SAMPLE]
        for its in kinds.values():
            its.clear()
        return sample

    def _containers_of(self, paths: Dict[str, List[Any]]) -> Dict[int, List[str]]:
        """The containers of many items that lead to these holders or are among them, by id, largest first: for each, the words for its
        contents, ordered as in _by_container()."""
        above: Dict[int, List[str]] = {}
        for path in _by_container(paths):
            known: Dict[int, None] = {}
            way = list(paths[path])
            while way:
                for parent in self.parents.get(id(way.pop()), ()):
                    if id(parent) not in known:
                        known[id(parent)] = None
                        way.append(parent)
            for i in known:
                if i in self.nodes and self._is_many(self.nodes[i]):
                    above.setdefault(i, []).append(path)
        for path, holders in paths.items():
            for holder in holders:
                if self._is_many(holder) and "objects within " + path not in above.setdefault(id(holder), []):
                    above[id(holder)].append("objects within " + path)
        return dict(sorted(above.items(), key=lambda one: -len(gc.get_referents(self.nodes[one[0]])))[:_WIDTH])

    def _below(self, container: int) -> Any:
        """The ids of the objects it leads to, as far as nothing else names them."""
        level, met = [self.nodes[container]], {container}
        while level and self.visits < _VISITS and not self.is_late():
            below = []
            for one in level:
                for child in gc.get_referents(one):
                    if id(child) in met or isinstance(child, (type, types.ModuleType)) or self._is_running(child) or self._namespace(child):
                        continue
                    met.add(id(child))
                    below.append(child)
            self.visits += len(below)
            level = below
        return met

    def _paths_to(self, wanted: Any, containers: Dict[int, List[str]]) -> Dict[int, List[str]]:
        """For the objects with these ids, the paths of those containers that lead to them."""
        out: Dict[int, List[str]] = {}
        passed: Any = set()
        for i, paths in containers.items():
            if i in passed:  # it is inside a larger one
                continue
            met = self._below(i)
            passed |= met
            for one in wanted & met:
                out.setdefault(one, []).append(paths[0])
        return out

    def _is_many(self, one: Any) -> bool:
        return _is_container(one) and not self._namespace(one) and len(gc.get_referents(one)) >= _CHAIN

    def _alike(self, holders: List[Any], held: Dict[int, Dict[int, None]]) -> List[List[Any]]:
        """Groups holders of the same kind, most tensors first; so are the members of a group."""
        kinds: Dict[Any, List[Any]] = {}
        for holder in holders:
            code = getattr(holder, "f_code", None) or getattr(holder, "gi_code", None) or getattr(holder, "__code__", None)
            own = id(holder) if self._is_root(holder) else len(held[id(holder)]).bit_length()
            kinds.setdefault((type(holder), id(code), own), []).append(holder)
        groups = list(kinds.values())
        self.own.update((id(kinds), id(groups)), map(id, groups))
        for group in groups:
            group.sort(key=lambda holder: len(held[id(holder)]), reverse=True)
        groups.sort(key=lambda group: sum(len(held[id(holder)]) for holder in group), reverse=True)
        return groups

    def _search_all(self, left: List[int], take: Callable[[Any], None]) -> bool:
        """Searches all objects for holders of the remaining tensors. False: the time was up."""
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
            if not wanted.isdisjoint(map(id, gc.get_referents(one))) and id(one) not in self.own and not self._is_running(one):
                take(one)
        return True

    def storages(self, path: str) -> Dict[int, int]:
        """The memory kept there, including that kept only by graphs: bytes by address."""
        storages: Dict[int, int] = {}
        for i in self.found[path]:
            storages[self.facts[i][0]] = self.facts[i][1]
            storages.update(self.saved.get(i, {}))
        return storages

    def keepers(self) -> List[Keeper]:
        out = []
        for path, ids in self.found.items():
            lines: Dict[str, int] = {}
            for i in ids:
                line = self.facts[i][3]
                if line:
                    lines[line] = lines.get(line, 0) + self.facts[i][1]
            made_at = max(lines, key=lambda line: lines[line]) if lines else ""
            out.append(Keeper(path, len(ids), sum(self.storages(path).values()), sum(self.facts[i][2] for i in ids), made_at=made_at))
        out.sort(key=lambda keeper: (keeper.bytes, keeper.tensors), reverse=True)
        return out

    # ---- up from the containers

    def _is_root(self, one: Any) -> bool:
        """Whether a path may begin with its name. A nested function needs a keeper of its own, like a hook."""
        if isinstance(one, types.FunctionType):
            return "<locals>" not in one.__qualname__
        return id(one) in self.modules or isinstance(one, (_Frame, type, types.ModuleType)) or _is_namespace(one)

    def _climb(self, level: List[Any]) -> None:
        first = list(level)
        for one in level:
            self.nodes[id(one)] = one
        kinds: Dict[type, int] = {}  # on how many levels
        self.own.update((id(kinds), id(first)))
        for depth in range(_FURTHER * _DEPTH):
            for kind in set(map(type, level)):
                kinds[kind] = kinds.get(kind, 0) + 1
            asked = _spread([one for one in level if not self._is_root(one)], _WIDTH)
            if depth == 0 and not self.asked:
                self.asked = {id(one) for one in asked}
            self.own.update((id(level), id(asked)))
            # A variable's object has its name: the garbage collector is not queried about it.
            named: Dict[int, None] = {}
            self._link([*self.frames, *(module.__dict__ for module in self.modules.values())], asked, named)
            asked = [one for one in asked if id(one) not in named]
            if not asked or self.is_late():
                break
            level = []
            self._link(self.referrers(asked), asked, {}, level)
            if depth >= _DEPTH - 1:
                wanted = self._above_what_has_no_variable(first)
                if wanted and depth == _DEPTH - 1 and not self.chains:
                    self._find_chains([kind for kind, count in kinds.items() if 4 * count >= _DEPTH])
                    wanted = self._above_what_has_no_variable(first)
                level = [one for one in level if id(one) in wanted]
        first.clear()

    def _distances(self) -> Dict[int, int]:
        """The number of steps from a variable to each visited object."""
        below: Dict[int, List[int]] = {}
        for child, its in self.parents.items():
            for parent in its:
                below.setdefault(id(parent), []).append(child)
        for child, (head, _) in self.chains.items():
            below.setdefault(id(head), []).append(child)
        level = [i for i, one in self.nodes.items() if self._is_root(one) or isinstance(one, contextvars.Context)]
        far = dict.fromkeys(level, 0)
        steps = 0
        while level:
            steps += 1
            level = list(dict.fromkeys(child for i in level for child in below.get(i, ()) if child not in far))
            far.update(dict.fromkeys(level, steps))
        return far

    def _above_what_has_no_variable(self, objects: List[Any]) -> Any:
        """The ids of these objects, and of all visited objects that lead to them."""
        far = self._distances()
        way = [id(one) for one in objects if id(one) not in far and id(one) not in self.closed]
        met = set(way)
        while way:
            for parent in self.parents.get(way.pop(), ()):
                if id(parent) not in met:
                    met.add(id(parent))
                    way.append(id(parent))
        return met

    def _find_chains(self, often: List[type]) -> None:
        """Finds where chains begin: visited objects of these kinds that are kept by others of these kinds. A chain may be a circle, like
        tree nodes that refer to their parents. It begins at a variable, if one refers to any part of it."""
        # From Python 3.11 on, an object gets a dictionary of its own at the first access, such as a look.
        kinds = {*often, dict} if often else set()
        keepers: Dict[int, List[Any]] = {}
        self.own.update((id(kinds), id(keepers)))
        everything = gc.get_objects() if kinds else []
        self.own.add(id(everything))
        for n, one in enumerate(everything):
            if n % 4096 == 0 and self.is_late():
                break
            if type(one) in kinds and id(one) not in self.own and not self._is_root(one):
                for each in gc.get_referents(one):
                    if type(each) in kinds:
                        its = keepers.setdefault(id(each), [])
                        if len(its) < _ALIKE:
                            its.append(one)
        nodes = [node for node in self.nodes.values() if type(node) in kinds and not self._is_root(node)]
        # Everything above the nodes, and the references within it.
        above = {id(node): node for node in nodes}
        below: Dict[int, List[int]] = {}
        way = list(nodes)
        self.own.update(map(id, (nodes, above, below, way)))
        while way:
            one = way.pop()
            for parent in keepers.get(id(one), ()):
                below.setdefault(id(parent), []).append(id(one))
                if id(parent) not in above:
                    above[id(parent)] = parent
                    way.append(parent)
        keepers.clear()
        heads = self._heads(above, below, everything)
        everything.clear()
        for head, links in heads:
            counts = collections.Counter(type(above[i]) for i in links)
            kind = max(counts, key=lambda kind: (not issubclass(kind, _CONTAINERS), counts[kind], kind.__qualname__))
            words = f"a chain of {kind.__module__}.{kind.__qualname__} ({counts[kind]:,} items)"
            for node in nodes:
                if links.get(id(node), 0) >= _CHAIN:
                    self.chains.setdefault(id(node), (head, words))
        level = [head for head, _ in heads if any(its[0] is head for its in self.chains.values())]
        self.own.update((id(level), id(heads), id(self.chains)), map(id, heads), map(id, self.chains.values()))
        for its in (nodes, above, below, heads):
            its.clear()  # type: ignore[attr-defined]
        if level:
            self._climb(level)

    def _heads(self, above: Dict[int, Any], below: Dict[int, List[int]], everything: List[Any]) -> List[Tuple[Any, Dict[int, int]]]:
        """Where chains begin, with the number of steps to everything each leads to, largest first: objects that variables refer to,
        otherwise those that nothing in the chains refers to, otherwise those that anything else refers to."""
        out: List[Tuple[Any, Dict[int, int]]] = []
        covered: Dict[int, None] = {}

        def try_heads(candidates: Iterable[int]) -> None:
            for head in candidates:
                if head in covered or head not in above or len(out) >= _HEADS or self.is_late():
                    continue
                links = {head: 0}
                level, steps = [head], 0
                while level:
                    steps += 1
                    level = list(dict.fromkeys(i for at in level for i in below.get(at, ()) if i not in links))
                    links.update(dict.fromkeys(level, steps))
                covered.update(dict.fromkeys(links))
                out.append((above[head], links))

        everywhere = list(above.values())
        self.own.update((id(out), id(everywhere)))
        self._link([*self.frames, *(module.__dict__ for module in self.modules.values())], everywhere, {})
        # The variables of the functions that began first, ordered by name.
        for frame in reversed(self.frames):
            try_heads(reversed(list(frame.names)))
        for module in self.modules.values():
            try_heads(i for i in _members(module.__dict__) if i in above)
        is_kept = {i for its in below.values() for i in its}
        try_heads(i for i in above if i not in is_kept)
        if len(covered) < len(above):
            outside: Dict[int, Any] = {}
            self.own.add(id(outside))
            for n, one in enumerate(everything):
                if n % 4096 == 0 and self.is_late():
                    break
                if id(one) in above or id(one) in self.own or above.keys().isdisjoint(map(id, gc.get_referents(one))):
                    continue
                if not self._is_running(one):
                    outside[id(one)] = one
            referrers = list(outside.values())
            linked: Dict[int, None] = {}
            self.own.update((id(referrers), id(linked)))
            self._link(referrers, everywhere, linked)
            try_heads(linked)
            outside.clear()
            referrers.clear()
            if not self.is_late():
                self.closed.update(i for i in above if i not in covered)
        everywhere.clear()
        out.sort(key=lambda its: -len(its[1]))
        return out

    def _link(self, parents: List[Any], children: List[Any], linked: Dict[int, None], level: Optional[List[Any]] = None) -> None:
        """Records which of `parents` refer to which of `children`, and adds new ones to `level`."""
        wanted = {id(one) for one in children}
        self.own.update(map(id, (parents, children, wanted, linked, level)))
        for parent in parents:
            found = wanted.intersection(_members(parent))
            for child in found:
                linked[child] = None
                its = self.parents.setdefault(child, [])
                self.own.add(id(its))
                if len(its) < _WIDTH:
                    its.append(parent)
            if found and id(parent) not in self.nodes:
                self.nodes[id(parent)] = parent
                if level is not None:
                    level.append(parent)

    # ---- words

    def _edges(self, holder: Any, member: int) -> List[str]:
        """Each name by which `holder` keeps the tensor. A namespace is not a container, so each of its names is a keeper."""
        where = self._namespace(holder)
        if where:
            return [f"{name} in {where}" for name in self._keys_of(holder, member)]
        if isinstance(holder, _Frame):
            return [holder.local(member)]
        if isinstance(holder, types.FrameType):
            return [self._of_a_frame_that_ended(holder, member)]
        if isinstance(holder, _GENERATORS):
            return [self._suspended(holder, member)]
        if isinstance(holder, types.CellType):
            return [self._closure(None, holder)]
        owner = self._owner(holder)
        if owner is not None:
            return [self._attribute(owner, name, "") for name in self._keys_of(holder, member)]
        if not _is_container(holder):
            return [self._attribute(holder, name, "") for name in self._attributes_of(holder, member)] or [self.name(holder)]
        return [self.name(holder)]

    def _of_a_frame_that_ended(self, frame: Any, member: int, one: Any = None) -> str:
        """The local variable of an ended function that a traceback keeps."""
        local, where = _Frame(frame).local(member, one), self.name(frame)
        return local if where == _describe(frame) else f"{local}, in {where}"

    def _suspended(self, generator: Any, member: int, one: Any = None) -> str:
        """The local variable of a suspended generator or coroutine."""
        frame = next((f for f in (getattr(generator, name, None) for name in ("gi_frame", "cr_frame", "ag_frame")) if f is not None), None)
        local = _Frame(frame).local(member, one) if frame is not None else f"a local variable of {_describe(generator)}"
        where = self.name(generator)
        return local if where == _describe(generator) else f"{local}, in {where}"

    def _namespace(self, one: Any) -> str:
        """The words for a module, or for code run as one; otherwise empty."""
        module = self.modules.get(id(one))
        if module is not None:
            return _module_words(module)
        return f"{os.path.basename(str(one.get('__file__') or one['__name__']))} module globals" if _is_namespace(one) else ""

    def _owner(self, attributes: Any) -> Any:
        """The object with this __dict__."""
        if isinstance(attributes, dict):
            for parent in self.parents.get(id(attributes), ()):
                if isinstance(parent, type):
                    if list(vars(parent)) == list(attributes):
                        return parent
                elif not isinstance(parent, (dict, _Frame)) and _dict_of(parent) is attributes:
                    return parent
        return None

    def name(self, one: Any) -> str:
        """The words for the keepers of `one`, up to a global, a local variable or a class."""
        known = self.names.get(id(one))
        if known is None and id(one) in self.chains:
            head, words = self.chains[id(one)]
            self.names[id(one)] = words  # a circle ends here
            where = self.name(head)
            known = self.names[id(one)] = words if where == _describe(head) else f"{words} that begins at {where}"
        if known is None and self.steps < _FURTHER * _DEPTH:
            self.names[id(one)] = _describe(one)  # a circle ends here
            self.steps += 1
            parents = self.parents.get(id(one), [])
            # Those nearer to a variable first: of two objects that refer to each other, only one gets its name from the other.
            nearer = [parent for parent in parents if self.far.get(id(parent), sys.maxsize) < self.far.get(id(one), sys.maxsize)]
            ways = [way for way in (self._way(one, parent) for parent in nearer) if way]
            if not any(map(is_rooted, ways)):
                ways += [way for way in (self._way(one, parent) for parent in parents) if way]
            self.steps -= 1
            ways.sort(key=lambda way: (not is_rooted(way), not way.endswith("module globals"), len(way)))
            known = self.names[id(one)] = ways[0] if ways else _describe(one)
        return known or _describe(one)

    def _way(self, one: Any, parent: Any) -> str:
        what = _describe(one) if _is_container(one) else ""
        where = self._namespace(parent)
        if where:
            return "".join(f"{_with(name, what)} in {where}" for name in self._keys_of(parent, id(one))[:1])
        if isinstance(parent, _Frame):
            return parent.local(id(one), one)
        if isinstance(parent, types.FrameType):
            return "" if isinstance(one, types.FrameType) else self._of_a_frame_that_ended(parent, id(one), one)
        if isinstance(parent, types.TracebackType) or (isinstance(parent, _GENERATORS) and isinstance(one, types.FrameType)):
            return self.name(parent)
        if isinstance(parent, _GENERATORS):
            return self._suspended(parent, id(one), one)
        if isinstance(parent, BaseException) and isinstance(one, types.TracebackType):
            return f"the traceback of {self.name(parent)}"
        if isinstance(parent, type):
            return "".join(self._attribute(parent, name, what) for name in self._keys_of(parent, id(one))[:1])
        if isinstance(parent, types.FunctionType):
            words = f"the {'closure' if parent.__closure__ is one else 'default arguments'} of {parent.__qualname__}()"
            where = "" if self._is_root(parent) else self.name(parent)
            return words if where in ("", _describe(parent)) else f"{words}, {where}"
        if isinstance(parent, types.CellType):
            return self._closure(one, parent)
        if isinstance(parent, _LOCAL):
            return f"the values of a thread in {self.name(parent)}"
        owner = self._owner(parent)
        if owner is not None:
            return "".join(self._attribute(owner, name, what) for name in self._keys_of(parent, id(one))[:1])
        if isinstance(parent, dict):
            if isinstance(one, types.FunctionType) or any(_is_of_thread(key) for key in list(parent)[:1]):
                return f"{what or 'function'} in {self.name(parent)}"  # the key is a number of a hook, or no name
            if self._is_one_of_many(parent, one):
                return f"{what or _describe(one)} within {self.name(parent)}"
            return "".join(f"[{name!r}] ({what or 'object'}) of {self.name(parent)}" for name in _keys(parent, id(one))[:1])
        if _is_container(parent):
            default = self._default_argument(one, parent) if type(parent) is tuple and what else ""
            return default or f"{what or _describe(one)} within {self.name(parent)}"
        for name in self._attributes_of(parent, id(one)):
            return self._attribute(parent, name, what)
        variable = self._context_variable(one)
        if variable:
            return variable
        # An iterator, or a tree node in C: it has no names, and has a keeper of its own.
        where = self.name(parent)
        return "" if where == _describe(parent) else f"{what} within {where}" if what else where

    def _default_argument(self, one: Any, values: Any) -> str:
        """A container that is the default value of an argument."""
        for function in self.parents.get(id(values), ()):
            if isinstance(function, types.FunctionType) and function.__defaults__ is values:
                code = function.__code__
                names = code.co_varnames[code.co_argcount - len(values) : code.co_argcount]
                return next((f"{_named(name, one)} in {self._way(values, function)}" for name, value in zip(names, values) if value is one), "")
        return ""

    def _context_variable(self, one: Any) -> str:
        for node in self.nodes.values():
            if isinstance(node, contextvars.Context):
                for variable, value in node.items():
                    if value is one:
                        return f"{_named(variable.name, one)}, a context variable"
        return ""

    def _closure(self, one: Any, cell: Any) -> str:
        for closure in self.parents.get(id(cell), ()):
            for function in self.parents.get(id(closure), ()):
                if isinstance(function, types.FunctionType) and function.__closure__ is closure:
                    name = next((n for n, c in zip(function.__code__.co_freevars, function.__closure__ or ()) if c is cell), "a variable")
                    return f"{name if one is None else _named(name, one)} in {self._way(closure, function)}"
        return self.name(cell) if one is None else f"{_describe(one)} in {self.name(cell)}"

    def _attribute(self, owner: Any, name: str, what: str) -> str:
        of = "attributes of" if _is_series(name) else "attribute of"
        if isinstance(owner, type):
            return f"{_with(f'{owner.__qualname__}.{name}', what)}, {of} the class"
        where, plain = self.name(owner), _describe(owner)
        return f"{_with(f'{type(owner).__qualname__}.{name}', what)}, {of} {plain if where == plain else where}"

    def _keys_of(self, namespace: Any, member: int) -> List[str]:
        """The names of a value in a module, a class, or the attributes of an object. Many that differ only at the end count as one name."""
        names = dict(vars(namespace)) if isinstance(namespace, type) else namespace
        if id(namespace) not in self.series:
            self.series[id(namespace)] = _series_in(names, self.facts)
        return self.series[id(namespace)].get(member) or _keys(names, member)

    def _is_one_of_many(self, values: Dict[Any, Any], one: Any) -> bool:
        """Whether a dictionary has many values like this one: then its key is irrelevant, and may differ at the next look."""
        if id(values) not in self.kinds:
            self.kinds[id(values)] = collections.Counter(map(type, list(dict.values(values))))
        return self.kinds[id(values)][type(one)] > _SERIES

    def _attributes_of(self, owner: Any, member: int) -> List[str]:
        attributes = _dict_of(owner)
        return (self._keys_of(attributes, member) if isinstance(attributes, dict) else []) or _slots_of(owner, member)


def _facts(tensor: Any, site_of: Callable[[int, int], str]) -> Optional[Tuple[int, int, bool, str]]:
    try:
        if not hasattr(tensor, "is_cuda"):  # CuPy, Numba, and others that report where their memory is
            address = int(tensor.__cuda_array_interface__["data"][0])
            return address, int(getattr(tensor, "nbytes", 0)), False, site_of(0, address)
        if not tensor.is_cuda:
            return None
        storage = tensor.untyped_storage() if hasattr(tensor, "untyped_storage") else tensor.storage()
        address = int(storage.data_ptr())
        return address, int(storage.nbytes()), tensor.grad_fn is not None, site_of(int(tensor.device.index or 0), address)
    except Exception:  # sparse, nested and fake tensors have no storage
        return None


def _saved_by(node: Any, names_of: Dict[type, List[str]]) -> Iterable[Any]:
    """The tensors that a node of a graph has saved. Those with hooks (checkpoints, tensors moved to the host) are not read, because the
    hooks would run. PyTorch before about 2.6 does not expose them."""
    if type(node) not in names_of:
        names_of[type(node)] = [name for base in type(node).__mro__ for name in vars(base) if name.startswith("_raw_saved_")]
    for name in names_of[type(node)]:
        try:
            raw = object.__getattribute__(node, name)
            yield from (one.data for one in (raw if isinstance(raw, (tuple, list)) else (raw,)) if one.unpack_hook is None)
        except Exception:  # freed by a backward pass, or an earlier PyTorch
            pass


def _is_device_array(kind: type) -> bool:
    """Judged by the type alone: no code of the program runs."""
    return any("__cuda_array_interface__" in vars(base) for base in kind.__mro__)


class _Frame:
    """A running function: its local variables by the ids of their values, to which it does not refer."""

    def __init__(self, frame: Any) -> None:
        self.code = frame.f_code
        names = frame.f_locals
        # If two variables have the same value, use the first: the other may be a loop variable.
        self.names = {id(value): str(name) for name, value in reversed(list(names.items()))}
        # Before Python 3.13, this dictionary stays with the frame and would keep the values alive. If the program has called locals(), the
        # dictionary is the program's, and stays as it is.
        if sys.version_info < (3, 13) and sys.getrefcount(names) <= 3:
            names.clear()

    def local(self, member: int, one: Any = None) -> str:
        """The variable in words, with the line that first assigns it: the line where the function is running may change between looks."""
        name, code = self.names.get(member, "a value"), self.code
        words = name if one is None else _named(name, one)
        function = getattr(code, "co_qualname", code.co_name)
        return f"{words}, local of {function}() at {os.path.basename(code.co_filename)}:{_first_line(code, name)}"


def _first_line(code: Any, name: str) -> int:
    """The line that first assigns the variable; for an argument, where the function begins."""
    line = int(code.co_firstlineno)
    if name in code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]:
        return line
    try:
        for step in dis.get_instructions(code):
            starts = getattr(step, "line_number", None) or step.starts_line
            line = starts if isinstance(starts, int) and not isinstance(starts, bool) else line
            if step.opname.startswith("STORE_") and (step.argval == name or (isinstance(step.argval, tuple) and name in step.argval)):
                return line
    except Exception:  # code that was created by hand
        pass
    return int(code.co_firstlineno)


def _frames(running: Dict[int, None]) -> List[Any]:
    """The running functions of all threads, except for this module's own, and those of the exception that is being handled or that ended
    the program. Modules and class bodies have namespaces instead. `running`: receives the ids of all their frames."""
    out = []

    def take(frame: Any) -> None:
        if id(frame) not in running:
            running[id(frame)] = None
            if frame.f_code.co_filename != _FILE and frame.f_code.co_flags & inspect.CO_OPTIMIZED:
                out.append(_Frame(frame))

    threads: Dict[int, Any] = sys._current_frames()
    for thread in list(threads):
        at = threads.pop(thread)  # one of them is this function's: a remaining reference would be a circle
        while at is not None:
            take(at)
            at = at.f_back
    for traceback in (sys.exc_info()[2], getattr(sys, "last_traceback", None)):
        while traceback is not None:
            take(traceback.tb_frame)
            traceback = traceback.tb_next
    return out


def _by_container(paths: Dict[str, List[Any]]) -> List[str]:
    """Paths to a variable first, then those into the outermost container with most holders; among these, shortest first: which levels of
    nested containers are followed may change between looks."""
    count: Dict[str, int] = {}
    for path, holders in paths.items():
        outermost = path.rpartition(" within ")[2]
        count[outermost] = count.get(outermost, 0) + len(holders)
    return sorted(paths, key=lambda path: (not is_rooted(path), -count[path.rpartition(" within ")[2]], len(path), path))


def _members(holder: Any) -> List[int]:
    return list(holder.names) if isinstance(holder, _Frame) else list(map(id, gc.get_referents(holder)))


def _is_of_thread(key: Any) -> bool:
    """The object that represents a thread in the values of a threading.local."""
    return isinstance(key, weakref.ref) or type(key).__name__ == "_localdummy"


def _is_namespace(one: Any) -> bool:
    return type(one) is dict and "__builtins__" in one and "__name__" in one


def _spread(items: List[Any], most: int) -> List[Any]:
    """At most this many; if there are more, half of them from the beginning, and the others spread over the rest."""
    if len(items) <= most:
        return items
    first, rest = items[: most // 2], items[most // 2 :]
    return first + rest[:: -(-len(rest) // (most - len(first)))]


def _scattered(items: List[Any], most: int) -> List[Any]:
    """At most this many, spread at unequal distances, so that items in alternating order are not all from the same place."""
    if len(items) <= most:
        return list(items)
    return [items[i] for i in dict.fromkeys(int(len(items) * (n * _GOLDEN % 1)) for n in range(most))]


def _is_container(one: Any) -> bool:
    return isinstance(one, _CONTAINERS) or type(one).__name__ in ("deque", "OrderedDict", "dict_values", _LRU)


def _is_no_keeper(holder: Any) -> bool:
    """Whether it refers to a tensor only temporarily: a weak reference, a bound method."""
    return isinstance(holder, (types.BuiltinMethodType, types.MethodType)) or "weak" in type(holder).__name__.lower()


def _keys(namespace: Dict[Any, Any], member: int) -> List[str]:
    for _ in range(3):  # another thread may change it meanwhile
        try:
            return [_key_words(key) for key, value in dict.items(namespace) if id(value) == member] or [
                "a key" for key in dict.keys(namespace) if id(key) == member
            ]
        except RuntimeError:
            pass
    return []


def _key_words(key: Any) -> str:
    """For other types, the words would need the program's own code: a tensor copies itself from its device for them."""
    plain = (str, int, float, bool, bytes, type(None))
    if type(key) in plain or (type(key) is tuple and all(type(each) in plain for each in key)):
        return str(key)[:80]
    return f"a {type(key).__name__}"


def _dict_of(one: Any) -> Any:
    try:
        return object.__getattribute__(one, "__dict__")
    except Exception:
        return None


def _slots_of(owner: Any, member: int) -> List[str]:
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


def _series_in(names: Dict[Any, Any], tensors: Dict[int, Any]) -> Dict[int, List[str]]:
    """By the ids of their values, the patterns for groups of many similar names: names whose values have one type and whose texts are equal
    except for digits. Names of tensors may have nothing in common."""
    alike: Dict[Tuple[type, str], List[int]] = {}
    for name, value in list(names.items()):
        if type(name) is str and not name.startswith("__"):
            alike.setdefault((type(value), re.split(r"\d", name, maxsplit=1)[0]), []).append(id(value))
    few = [i for its in alike.values() if len(its) <= _SERIES for i in its if i in tensors]
    series = [(stem, its) for (_, stem), its in alike.items() if len(its) > _SERIES] + [("", few)] * (len(few) > _SERIES)
    return {i: [f"{stem[:80]}* ({len(its):,} items)"] for stem, its in series for i in its}


def _is_series(name: str) -> bool:
    return name.endswith(" items)")


def _with(name: str, what: str) -> str:
    """A name with its container."""
    if not what:
        return name
    return f"{what} within {name}" if _is_series(name) else f"{name} ({what})"


def _describe(one: Any) -> str:
    kind = type(one).__name__
    if isinstance(one, types.CellType):
        return "a variable"
    if isinstance(one, _GENERATORS):
        return f"the {kind} {one.__qualname__}()"
    if not _is_container(one):
        return f"an object of {type(one).__module__}.{type(one).__qualname__}"
    try:
        if kind == _LRU:
            return f"lru_cache, {one.cache_info().currsize:,} items"
        own = next(base for base in (dict, list, tuple, set, frozenset, collections.deque) if isinstance(one, base))
        return f"{kind}, {own.__len__(one):,} items"
    except Exception:
        return kind


def _named(name: str, one: Any) -> str:
    return f"{name} ({_describe(one)})" if _is_container(one) else name


def _module_words(module: Any) -> str:
    if module.__name__ == "__main__" and "get_ipython" in module.__dict__:  # a notebook's file is that of its kernel
        return "IPython module globals"
    # Python forgets the name of the program's file when it ends.
    file = getattr(module, "__file__", None) or (sys.argv[0] if module.__name__ == "__main__" and sys.argv else None)
    return f"{os.path.basename(str(file)) if file else module.__name__} module globals"
