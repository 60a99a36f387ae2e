"""What keeps tensors: on a stand-in for PyTorch's tensors, so that no other object of the process is one."""
import asyncio
import collections
import contextvars
import functools
import gc
import itertools
import re
import sys
import threading
import time
import types
import weakref

import pytest

import vramtrack
from vramtrack import referrers
from vramtrack.referrers import is_rooted, kept_by
from vramtrack.safe_point import MarkClock, at_safe_point

MIB = 2**20


class Tensor:
    is_cuda = True
    device = types.SimpleNamespace(index=0)

    def __init__(self, mib, graph=False, storage=None):
        self.mib, self.grad_fn, self.storage_at = mib, "SumBackward0" if graph else None, storage or id(self)

    def untyped_storage(self):
        return types.SimpleNamespace(data_ptr=lambda: self.storage_at, nbytes=lambda: self.mib * MIB)


class Trainer:
    kept_for_all = None

    def __init__(self):
        self.history = []
        self.last = None


class Slots:
    __slots__ = ("inner",)


losses = []
caches = {}


@pytest.fixture(autouse=True)
def torch(monkeypatch):
    module = types.ModuleType("torch")
    module.Tensor = Tensor
    monkeypatch.setitem(sys.modules, "torch", module)
    yield module
    losses.clear()
    caches.clear()
    Trainer.kept_for_all = None
    gc.collect()


def _line(function, after):
    return function.__code__.co_firstlineno + after


def paths(kept):
    return [keeper.path for keeper in kept.keepers]


def test_a_list_of_a_module():
    losses.extend(Tensor(1, graph=True) for _ in range(200))
    kept = kept_by(seconds=20)
    assert paths(kept) == ["losses (list, 200 items) in test_referrers.py module globals"]
    assert (kept.keepers[0].tensors, kept.keepers[0].bytes, kept.keepers[0].graphs) == (200, 200 * MIB, 200)
    assert (kept.tensors, kept.bytes, kept.is_complete) == (200, 200 * MIB, True)
    assert "keeps 200 tensors of 200.0 MiB; 200 with the graph of the step (grad_fn)" in str(kept)


def test_small_tensors_have_their_size():
    losses.extend(Tensor(4 / MIB, graph=True) for _ in range(11))
    kept = kept_by(seconds=20)
    assert "keeps 11 tensors of 44 bytes;" in str(kept) and "11 tensors of 44 bytes on GPUs" in kept._repr_html_()
    losses.extend(Tensor(4 / MIB, graph=True) for _ in range(600))
    assert "+600 and +2.3 KiB since the first look" in str(kept_by(seconds=20).since(kept))


def test_a_notebooks_variables_are_not_those_of_its_kernels_file(monkeypatch):
    main = sys.modules["__main__"]
    monkeypatch.setattr(main, "get_ipython", lambda: None, raising=False)
    monkeypatch.setattr(main, "cells", [Tensor(1), Tensor(1)], raising=False)
    assert paths(kept_by(seconds=20)) == ["cells (list, 2 items) in IPython module globals"]


def test_containers_within_containers():
    caches["a"] = {"b": [Tensor(2), Tensor(2)]}
    (path,) = paths(kept_by(seconds=20))
    assert path == "['b'] (list, 2 items) of ['a'] (dict, 1 items) of caches (dict, 1 items) in test_referrers.py module globals"


def test_attributes():
    trainer = Trainer()
    trainer.history.append(Tensor(4))
    trainer.last = Tensor(3)
    Trainer.kept_for_all = [Tensor(2)]
    slots = Slots()
    slots.inner = Tensor(1)
    where = ", local of test_attributes() at test_referrers.py:"
    found = [path.rpartition(where) for path in paths(kept_by(seconds=20))]
    assert {tail for _, tail_of, tail in found if tail_of} == {str(_line(test_attributes, 1)), str(_line(test_attributes, 5))}
    assert [head or tail for head, _, tail in found] == [
        "Trainer.history (list, 1 items), attribute of trainer",
        "Trainer.last, attribute of trainer",
        "Trainer.kept_for_all (list, 1 items), attribute of the class",
        "Slots.inner, attribute of slots",
    ]


def test_variables():
    local = Tensor(3)
    held = Tensor(2)
    closure = (lambda it: lambda: it)(Tensor(1))

    def default(it=[Tensor(4)]):  # noqa: B006
        return it

    found = paths(kept_by(seconds=20))
    here = ", local of test_variables() at test_referrers.py:"
    assert found == [
        f"it (list, 1 items) in the default arguments of test_variables.<locals>.default(), default{here}{_line(test_variables, 5)}",
        f"local{here}{_line(test_variables, 1)}",
        f"held{here}{_line(test_variables, 2)}",
        f"it in the closure of test_variables.<locals>.<lambda>.<locals>.<lambda>(), closure{here}{_line(test_variables, 3)}",
    ]
    assert closure() and local and held and default()


def test_what_a_waiting_thread_and_a_generator_hold():
    event, ready = threading.Event(), threading.Event()

    def works():
        mine = [Tensor(5)]
        ready.set()
        event.wait()
        mine.clear()

    def generates():
        inside = Tensor(4)
        yield inside.mib

    thread = threading.Thread(target=works)
    thread.start()
    ready.wait()
    generator = generates()
    next(generator)
    try:
        first, second = paths(kept_by(seconds=20))
    finally:
        event.set()
        thread.join()
    assert first.startswith("mine (list, 1 items), local of ") and "works() at test_referrers.py:" in first
    assert second.startswith("inside, local of ") and "generates() at test_referrers.py:" in second
    assert ", in generator, local of test_what_a_waiting_thread" in second


def test_a_container_of_a_generator_that_waits():
    def collects():
        best = []
        while True:
            best.append((yield))

    sink = collects()
    next(sink)
    for _ in range(50):
        sink.send(Tensor(1))
    (path,) = paths(kept_by(seconds=20))
    assert path.startswith("best (list, 50 items), local of ") and f"collects() at test_referrers.py:{_line(collects, 1)}, in sink, local of" in path


class Link:
    def __init__(self, tensor, before):
        self.tensor, self.before = tensor, before


class Step(Tensor):
    def __init__(self, *saved):
        super().__init__(1)
        self.saved = saved


def test_what_keeps_each_other_in_turn_leads_to_where_it_begins():
    last = None
    for _ in range(300):
        last = Link(Tensor(1), last)
    (most, *_) = kept_by(seconds=20).keepers
    assert re.match(r"Link.tensor, attribute of a chain of [\w.]*Link \(\d+ items\) that begins at last, local of ", most.path), most
    assert most.tensors > 290
    del last
    total = Step()
    for _ in range(300):
        total = Step(total, Step())
    (most, *_) = kept_by(seconds=20).keepers
    assert re.match(r"a chain of [\w.]*Step \(\d+ items\) that begins at total, local of ", most.path), most


class Leaf:
    def __init__(self, tensor, parent):
        self.tensor, self.parent, self.children = tensor, parent, []


def deep_tree(count):
    root = leaf = Leaf(None, None)
    for _ in range(count):
        leaf.children.append(Leaf(Tensor(1), leaf))
        leaf = leaf.children[0]
    return root


def test_what_knows_its_parents_leads_to_a_variable_that_refers_to_any_of_it():
    root = deep_tree(300)
    (most, *_) = kept_by(seconds=20).keepers
    assert re.match(r"Leaf.tensor, attribute of a chain of [\w.]*Leaf \(\d+ items\) that begins at root, local of ", most.path), most
    assert most.tensors > 250
    trainer = Trainer()
    trainer.last, root = root, None  # no variable refers to any of it, but an object that one does
    (most, *_) = kept_by(seconds=20).keepers
    assert "that begins at Trainer.last, attribute of trainer, local of " in most.path
    assert most.tensors > 250
    trainer.last = None
    assert not any(map(is_rooted, paths(kept_by(seconds=20))))  # until the garbage collector finds the circle


def test_what_only_refers_to_each_other_is_not_followed_for_long(monkeypatch):
    asked, ask = [], referrers._Search.referrers
    monkeypatch.setattr(referrers._Search, "referrers", lambda self, of: asked.append(len(of)) or ask(self, of))
    gc.disable()
    try:
        deep_tree(300)
        found = paths(kept_by(seconds=20))
    finally:
        gc.enable()
    assert found and not any(map(is_rooted, found)) and len(asked) <= 1 + referrers._DEPTH


class Package:
    """Something that is a long way from its variable."""

    def __init__(self, inner):
        self.inner = inner


def test_a_long_way_leads_to_its_variable():
    package = [Tensor(1) for _ in range(40)]
    for kind in (dict, list, Package, set) * 3:
        package = {"a": package} if kind is dict else [package] if kind is list else Package(package) if kind is Package else (package,)
    losses.append(package)
    del package
    (keeper,) = kept_by(seconds=20).keepers
    assert keeper.path.startswith("['a'] (dict, 1 items)") or "list, 40 items" in keeper.path
    assert keeper.path.endswith("within losses (list, 1 items) in test_referrers.py module globals")


def test_names_that_a_program_makes_are_one_keeper(monkeypatch):
    module = types.ModuleType("results")
    monkeypatch.setitem(sys.modules, "results", module)
    store, mixed = types.SimpleNamespace(), Trainer()
    for i in range(40):
        setattr(store, f"t{i}", Tensor(4))
        setattr(Slots, f"kept{i}", Tensor(3))
        setattr(module, f"loss_{i}", [Tensor(2)])
        setattr(mixed, "".join(chr(97 + int(digit)) for digit in str(i * 7919)), Tensor(1))
    mixed.history.extend(Tensor(90) for _ in range(3))
    module.scale = Tensor(80)
    try:
        found = {(keeper.path.partition(" at ")[0], keeper.tensors) for keeper in kept_by(seconds=20).keepers}
    finally:
        for i in range(40):
            delattr(Slots, f"kept{i}")
    here = "local of test_names_that_a_program_makes_are_one_keeper()"
    assert found == {
        (f"SimpleNamespace.t* (40 items), attributes of store, {here}", 40),
        ("Slots.kept* (40 items), attributes of the class", 40),
        ("list, 1 items within loss_* (40 items) in results module globals", 40),
        (f"Trainer.* (40 items), attributes of mixed, {here}", 40),
        (f"Trainer.history (list, 3 items), attribute of mixed, {here}", 3),
        ("scale in results module globals", 1),
    }
    assert all(is_rooted(path) for path, _ in found)


def test_keys_of_which_there_are_many_are_not_named():
    for i in range(300):
        caches[i] = {"state": Tensor(1)}
    assert paths(kept_by(seconds=20)) == ["dict, 1 items within caches (dict, 300 items) in test_referrers.py module globals"]


def test_a_circle_ends():
    first = link = Link(Tensor(1), None)
    for _ in range(50):
        link = Link(Tensor(1), link)
    first.before = link
    del first, link
    try:
        assert kept_by(seconds=20).tensors == 51
    finally:
        gc.collect()


def test_a_context_variable():
    seen = contextvars.ContextVar("seen")
    contextvars.copy_context().run(lambda: None)
    context = contextvars.copy_context()
    context.run(seen.set, [Tensor(1) for _ in range(20)])
    assert paths(kept_by(seconds=20)) == ["seen (list, 20 items), a context variable"]


def test_the_results_of_tasks():
    async def infers():
        return Tensor(1)

    async def main():
        tasks = []
        for _ in range(20):
            tasks.append(asyncio.ensure_future(infers()))
            await tasks[-1]
        return paths(kept_by(seconds=20))

    (path,) = asyncio.run(main())
    assert "an object of _asyncio.Task within tasks (list, 20 items), local of " in path


def test_iterators_lead_to_their_variable():
    left, right = itertools.tee(Tensor(1) for _ in range(200))
    collections.deque(right, maxlen=0)
    most, last = kept_by(seconds=20).keepers
    assert most.path.startswith("left, local of test_iterators_lead_to_their_variable() at ") and most.tensors > 2 * last.tensors
    assert last.path.startswith("right, local of ")  # the last block of both


def test_views_share_their_storage():
    base = Tensor(10)
    caches["views"] = [Tensor(10, storage=base.storage_at) for _ in range(3)]
    kept = kept_by(seconds=20)
    views = next(keeper for keeper in kept.keepers if keeper.path.startswith("['views']"))
    assert (views.tensors, views.bytes) == (3, 10 * MIB)
    assert (kept.tensors, kept.bytes) == (4, 10 * MIB)


def test_what_has_grown():
    losses.extend(Tensor(1, graph=True) for _ in range(5))
    caches["all"] = [Tensor(1)]
    caches["same"] = [Tensor(50)]
    before = kept_by(seconds=20)
    losses.extend(Tensor(1, graph=True) for _ in range(3))
    caches["all"].append(Tensor(100))
    grown = kept_by(seconds=20).since(before)
    assert [(keeper.path.split(" ")[0], keeper.grown_tensors, keeper.grown_bytes) for keeper in grown.keepers] == [
        ("losses", 3, 3 * MIB),  # its graphs keep more than its bytes
        ("['all']", 1, 100 * MIB),
    ]
    assert "+3 and +3.0 MiB since the first look" in str(grown)


def test_nothing_is_kept_afterwards():
    class Held:
        pass

    objects = [Tensor(1) for _ in range(30)]
    seen = [weakref.ref(one) for one in objects]
    holder = Held()
    holder.objects = objects
    gc.disable()  # nor by a circle that the garbage collector would have to find
    try:
        kept = kept_by(seconds=20)
        del holder, objects
        assert [one() for one in seen] == [None] * 30
    finally:
        gc.enable()
    assert kept.tensors == 30


def test_locals_that_the_program_asked_for_stay_its_own():
    number = 7
    mine = locals()
    losses.append(Tensor(1))
    kept_by(seconds=20)
    assert mine["number"] == 7 == number


def test_searches_at_once_do_not_find_each_other(run_at_once):
    losses.extend(Tensor(1) for _ in range(2000))
    found = []
    run_at_once([lambda: found.append(paths(kept_by(seconds=20)))] * 4, switch_s=1e-4)
    assert found == [["losses (list, 2,000 items) in test_referrers.py module globals"]] * 4


def test_any_object():
    class Model:
        pass

    model = Model()
    losses.append(model)
    found = paths(kept_by([model], seconds=20))
    assert "losses (list, 1 items) in test_referrers.py module globals" in found
    assert any(path.startswith("model, local of test_any_object() at") for path in found)


def test_the_time_is_bounded():
    for n in range(50):
        caches[n] = [Tensor(1)]
    kept = kept_by(seconds=0.0)
    assert not kept.is_complete
    assert "stopped after" in str(kept)
    search = referrers._Search(None, lambda device, address: "", time.monotonic(), is_whole=False)
    assert not search.run(), "nor is one of a sample"
    search.clear()


def test_what_only_c_code_holds(monkeypatch):
    losses.append(Tensor(1))
    monkeypatch.setattr(referrers._Search, "referrers", lambda self, of: [])
    monkeypatch.setattr(referrers._Search, "_search_all", lambda self, left, take: True)
    assert paths(kept_by(seconds=20)) == ["the autograd graph of other tensors, or other C++ code,"]


def in_thread(function):
    out = []
    thread = threading.Thread(target=lambda: out.append(function()))
    thread.start()
    return thread, out


def test_a_safe_point_in_the_main_thread():
    where = []
    thread, out = in_thread(lambda: at_safe_point(lambda: where.append(threading.current_thread()), MarkClock(), 30))
    while thread.is_alive():  # lines of Python
        time.sleep(0.001)
    assert out == [(None, "in the main thread")] and where == [threading.main_thread()]


def test_a_safe_point_at_a_mark():
    clock = MarkClock()
    clock.begin()
    vramtrack.mark("step")
    ran = threading.Event()
    marking = threading.Event()
    threads = []

    def marks():
        while not ran.is_set():
            vramtrack.mark("step")
            marking.wait(0.001)

    marker = threading.Thread(target=marks)
    marker.start()
    try:
        out = []
        asking = threading.Thread(target=lambda: out.append(at_safe_point(lambda: threads.append(threading.current_thread()), clock, 30)))
        asking.start()
        asking.join()
    finally:
        ran.set()
        marker.join()
        clock.end()
    assert out == [(None, "at a mark")] and threads == [marker]


def test_a_safe_point_that_does_not_come():
    """The main thread waits in C."""
    thread, out = in_thread(lambda: at_safe_point(lambda: 5, MarkClock(), 0.01))
    thread.join()
    assert out in ([(5, "beside the program")], [(5, "in the main thread")])
    with pytest.raises(ZeroDivisionError):
        at_safe_point(lambda: 1 / 0, MarkClock())


def test_an_exception_that_is_kept_names_the_variable_of_the_function_that_raised():
    def fails():
        activations = Tensor(3)
        raise ValueError(activations.mib)

    for _ in range(60):  # more than are followed
        try:
            fails()
        except ValueError as error:
            losses.append(error)
    (keeper,) = kept_by(seconds=20).keepers
    where = "in the traceback of an object of builtins.ValueError within losses (list, 60 items) in test_referrers.py module globals"
    assert keeper.path.startswith("activations, local of ") and keeper.path.endswith(where)
    assert keeper.tensors == 60


def test_containers_that_are_alike_are_one_keeper_however_many_there_are():
    caches["pairs"] = [(i, Tensor(1)) for i in range(300)]
    (keeper,) = kept_by(seconds=20).keepers
    assert keeper.path == "tuple, 2 items within ['pairs'] (list, 300 items) of caches (dict, 1 items) in test_referrers.py module globals"
    assert keeper.tensors == 300


def test_a_hook_leads_to_what_keeps_it():
    for i in range(60):
        caches[i] = lambda it=Tensor(1): it
    (keeper,) = kept_by(seconds=20).keepers
    assert keeper.path.endswith("function in caches (dict, 60 items) in test_referrers.py module globals")
    assert (keeper.tensors, is_rooted(keeper.path)) == (60, True)


def test_a_cache_of_functools():
    cached = functools.lru_cache(maxsize=None)(lambda length: Tensor(length))
    for length in range(5):
        cached(length)
    (keeper,) = kept_by(seconds=20).keepers
    assert "cached (lru_cache, 5 items), local of test_a_cache_of_functools()" in keeper.path


def test_arrays_that_say_where_their_memory_is(monkeypatch):
    class Array:
        def __init__(self, at):
            self.at, self.nbytes = at, MIB

        @property
        def __cuda_array_interface__(self):
            return {"data": (self.at, False)}

    losses.extend(Array(at) for at in (16, 32, 48))
    (keeper,) = kept_by(seconds=20).keepers
    assert (keeper.path, keeper.tensors, keeper.bytes) == ("losses (list, 3 items) in test_referrers.py module globals", 3, 3 * MIB)


def test_nothing_of_the_programs_own_runs_for_words():
    class Key:
        def __str__(self):
            raise AssertionError("a tensor would copy itself from its device")

        __repr__ = __format__ = __str__

    class Own(list):
        def __len__(self):
            raise AssertionError("who knows what it does")

    caches[Key()] = Own([Tensor(1), Tensor(1)])
    (keeper,) = kept_by(seconds=20).keepers
    assert keeper.path == "['a Key'] (Own, 2 items) of caches (dict, 1 items) in test_referrers.py module globals"


def look():
    """As a program under `vramtrack run` is searched: by a sample of its tensors. How many each path keeps."""
    search = referrers._Search(None, lambda device, address: "", time.monotonic() + 20, is_whole=False)
    try:
        assert search.run()
        found = {re.sub(r"[\d,]+ items", "items", path): len(ids) for path, ids in search.found.items()}
        return found, len(search.unheld)
    finally:
        search.clear()


def test_a_sample_finds_containers_that_are_filled_in_turn():
    outputs = []
    for i in range(400):
        losses.append(Tensor(1))
        outputs.append(Tensor(1))
        caches[i] = Tensor(1)
    found, unheld = look()
    assert sorted(found.values()) == [400, 400, 400] and unheld == 0


def test_a_sample_finds_a_container_of_a_few_among_many():
    losses.extend(Tensor(1) for _ in range(2000))
    caches.update((i, Tensor(1)) for i in range(100))
    found, _ = look()
    assert found["caches (dict, items) in test_referrers.py module globals"] == 100


def test_what_is_alike_and_lies_in_two_containers_is_divided():
    outputs = []
    for i in range(300):
        losses.append((i, Tensor(1)))
        outputs.append((i, Tensor(1)))
    found, unheld = look()
    in_losses = sum(count for path, count in found.items() if "within losses (list, items)" in path)
    in_outputs = sum(count for path, count in found.items() if "within outputs (list, items)" in path)
    assert (in_losses, in_outputs, unheld) == (300, 300, 0), found


def test_a_chain_is_one_of_what_it_keeps_and_not_of_the_container_that_it_begins_at():
    for _ in range(60):
        losses.append([functools.reduce(lambda inner, _: Step(inner), range(depth), Step()) for depth in (5, 20)])
    found, _ = look()
    chains = [path for path in found if path.startswith("a chain of ")]
    assert chains and all(re.match(r"a chain of [\w.]*Step \(items\) that begins at .*losses \(list, items\) in ", path) for path in chains), found


def test_of_the_ways_into_one_container_the_shortest_is_named():
    outer, other = "losses (list, 9 items) in a.py module globals", "others (list, 9 items) in a.py module globals"
    once, twice = f"tuple, 1 items within {outer}", f"tuple, 1 items within tuple, 1 items within {outer}"
    paths = {"tuple, 1 items": [1] * 9, twice: [1, 2, 3], once: [4], f"tuple, 1 items within {other}": [5, 6]}
    assert referrers._by_container(paths) == [once, twice, f"tuple, 1 items within {other}", "tuple, 1 items"]


def test_what_a_graph_nests_is_kept_where_its_end_is():
    class Node:
        def __init__(self, *saved):
            self.tensor, self.saved = Tensor(1), saved

    for _ in range(100):
        losses.append(Node(Node(Node())))
        caches[len(caches)] = Node(Node())
    found, unheld = look()
    assert unheld == 0
    assert sum(count for path, count in found.items() if "losses (list, items)" in path) == 300, found
    assert sum(count for path, count in found.items() if "caches (dict, items)" in path) == 200, found
