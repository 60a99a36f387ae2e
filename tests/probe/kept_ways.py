"""Ways in which programs keep the memory of each step. Run under the probe with the name of one: kept.py says what is to be found."""
import collections
import ctypes
import functools
import logging
import select
import signal
import sys
import threading
import time
import types

from tensors import T, context, cuda

STEPS = 400


def step():
    """What a step allocates and releases, and how long it takes."""
    T(1 << 16), T(1 << 14)
    time.sleep(0.003)


def a_local_list():
    losses = []
    for _ in range(STEPS):
        step()
        loss = T(1 << 12)
        losses.append(loss)


cache = {}


def a_global_dict():
    for i in range(STEPS):
        step()
        cache["shape", i] = T(1 << 12)


class Replay:
    def __init__(self):
        self.memory = collections.deque()

    def push(self, item):
        self.memory.append(item)


replay = Replay()


def a_deque_of_an_object():
    for _ in range(STEPS):
        step()
        replay.push((T(1 << 12), 1.0))


def a_closure():
    seen = []

    def remember(tensor):
        seen.append(tensor)

    return remember


remember = a_closure()


def a_variable_of_a_closure():
    for _ in range(STEPS):
        step()
        remember(T(1 << 12))


errors = []


def fails():
    activations = T(1 << 12)
    raise ValueError(f"a batch that is wrong, {activations.nbytes}")


def a_traceback():
    for _ in range(STEPS):
        step()
        try:
            fails()
        except ValueError as error:
            errors.append(error)


@functools.lru_cache(maxsize=None)
def mask(length):
    return T(1 << 12)


def an_lru_cache():
    for length in range(STEPS):
        step()
        mask(length)


class Model:
    def __init__(self):
        self.hooks = {}

    def register(self, hook):
        self.hooks[len(self.hooks)] = hook


model = Model()


def a_hook():
    for _ in range(STEPS):
        step()
        batch = T(1 << 12)
        model.register(lambda output, batch=batch: batch)


class Metric:
    history = []


def a_class_attribute():
    for _ in range(STEPS):
        step()
        Metric.history.append(T(1 << 12))


def batches():
    batch = T(1 << 12)
    yield 1
    yield batch


def a_generator():
    iterators = []
    for _ in range(STEPS):
        step()
        iterator = batches()
        next(iterator)
        iterators.append(iterator)


def a_thread():
    """Python is asked after a second: on a loaded machine somewhat later, and then the thread has to be there."""

    def work():
        cuda.cuCtxSetCurrent(context)
        local = threading.local()
        local.outputs = []
        for _ in range(3 * STEPS):
            step()
            local.outputs.append(T(1 << 12))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()


def two_lists():
    losses, outputs = [], []
    for _ in range(STEPS):
        step()
        for each in (losses, outputs):
            each.append(T(1 << 12))


def a_thread_that_is_over():
    """Before Python is asked for the first time, after a second."""

    def work():
        cuda.cuCtxSetCurrent(context)
        outputs = []
        for _ in range(300):
            T(1 << 16)
            outputs.append(T(1 << 12))
            time.sleep(0.001)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()


def an_extension():
    slots = (ctypes.py_object * STEPS)()
    for i in range(STEPS):
        step()
        slots[i] = T(1 << 12)


def no_list_but_a_chain():
    last = None
    for _ in range(STEPS):
        step()
        last = T(1 << 12, last)


def an_attribute_each():
    store = types.SimpleNamespace()
    for i in range(STEPS):
        step()
        setattr(store, f"t{i}", T(1 << 12))


def a_global_each():
    for i in range(STEPS):
        step()
        globals()[f"output_{i}"] = T(1 << 12)


class Node:
    def __init__(self, tensor, parent):
        self.tensor, self.parent, self.children = tensor, parent, []


def a_tree_that_knows_its_parents():
    root = node = Node(None, None)
    for _ in range(STEPS):
        step()
        node.children.append(Node(T(1 << 12), node))
        node = node.children[0]


class Collects(logging.Handler):
    def __init__(self):
        super().__init__()
        self.records = []

    def emit(self, record):
        self.records.append(record)


def a_handler_of_records():
    """When Python is asked at the end, what led to the handler is the table of all loggers alone."""
    logger = logging.getLogger("kept")
    logger.addHandler(Collects())
    logger.propagate = False
    for _ in range(STEPS):
        step()
        logger.warning("loss %s", T(1 << 12))


def healthy():
    weights = [T(1 << 20) for _ in range(20)]
    for _ in range(STEPS):
        step()
    del weights


def ends_with_an_error():
    weights = [T(1 << 12) for _ in range(40)]
    raise SystemExit(f"an error of {len(weights)} weights")


def ends_with_a_status():
    weights = [T(1 << 12) for _ in range(40)]
    print(len(weights))
    sys.exit(7)


def to_the_limit():
    outputs = []
    while True:
        step()
        outputs.append(T(1 << 14))


class Stop(Exception):
    pass


def stopped_by_signals():
    """A handler that raises, as those of time limits do: no exception of it is lost, wherever Python is."""
    kept, raised, caught, is_armed = [], 0, 0, False

    def stop(number, frame):
        nonlocal raised, is_armed
        if is_armed:
            is_armed, raised = False, raised + 1
            raise Stop

    signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, 0.002, 0.002)
    for _ in range(STEPS):
        try:
            is_armed = True
            kept.append(T(1 << 12))
            time.sleep(0.004)
            is_armed = False
        except Stop:
            caught += 1
    signal.setitimer(signal.ITIMER_REAL, 0)
    print("all caught" if raised == caught else f"{raised} raised, {caught} caught")


def until_its_input_ends():
    outputs = []
    while not select.select([sys.stdin], [], [], 0)[0]:
        step()
        outputs.append(T(1 << 12))
        if len(outputs) == 50:  # more bytes than those of one step
            print("at work", flush=True)


class Slow(T):
    """Whoever asks it first waits longer than a search waits for another one."""

    begun = threading.Event()
    holds = None

    @property
    def __cuda_array_interface__(self):
        if threading.current_thread().name.startswith("Dummy") and not Slow.begun.is_set():
            Slow.begun.set()
            Slow.holds(3000)
        return super().__cuda_array_interface__


class Lingers:
    def __del__(self):
        time.sleep(1)


def ends_while_it_is_searched():
    global lingers
    Slow.holds = ctypes.PyDLL(sys.argv[2]).holds
    outputs = cache["outputs"] = [Slow(1 << 12)]
    lingers = Lingers()  # until the end of the interpreter, which it makes longer

    def work():
        assert cuda.cuCtxSetCurrent(context) == 0
        while not Slow.begun.is_set():
            outputs.append(T(1 << 12))
            time.sleep(0.005)

    worker = threading.Thread(target=work)
    worker.start()
    print(Slow.begun.wait(60))  # in which the main thread does not stand still for the search
    worker.join()


globals()[sys.argv[1]]()
