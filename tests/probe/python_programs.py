"""Calls the hook from many kinds of Python frames. Run by each Python under test; prints what Python itself says of each stack.

    python python_programs.py LIBRARY            -> one JSON line a call: {"address", "frames": [[function, file, line], ...]}
"""
import asyncio
import contextlib
import ctypes
import functools
import gc
import json
import sys
import threading

library = ctypes.CDLL(sys.argv[1])
library.probe_call.argtypes = [ctypes.c_uint64, ctypes.c_uint64]
addresses = iter(range(0x1000, 1 << 30, 0x1000))
told = []


def frames_of(frame):
    said = []
    while frame is not None:
        code = frame.f_code
        said.append([getattr(code, "co_qualname", code.co_name), code.co_filename, frame.f_lineno])
        frame = frame.f_back
    return said


def hit(kind="", frame_of=sys._getframe, call=library.probe_call):
    address = next(addresses)
    told.append({"kind": kind, "address": address, "frames": frames_of(frame_of(1))})
    call(address, 64)


def plain():
    hit("plain")


def nested():
    def inner():
        def innermost():
            hit("nested")

        innermost()

    inner()


def generator():
    yield 1
    hit("generator")
    yield 2


def delegating():
    yield from generator()


async def coroutine():
    await asyncio.sleep(0)
    hit("coroutine")


async def awaiting():
    await asyncio.gather(coroutine(), coroutine())


async def async_generator():
    yield 1
    hit("async generator")
    yield 2


async def over_async_generator():
    async for _ in async_generator():
        pass


def decorator(function):
    @functools.wraps(function)
    def wrapper(*args):
        return function(*args)

    return wrapper


@decorator
@decorator
def decorated():
    hit("decorated")


class Deleted:
    def __del__(self):
        hit("__del__")


class Cyclic(Deleted):
    def __init__(self):
        self.me = self


class Called:
    def __call__(self, *args, **kwargs):
        hit("__call__")
        return self

    def __getattr__(self, name):
        hit("__getattr__")
        return 1

    @property
    def thing(self):
        hit("property")

    @classmethod
    def made(cls):
        hit("classmethod")

    def __lt__(self, other):
        hit("__lt__")
        return False


def recursive(depth):
    if depth == 0:
        hit("recursion")
    else:
        recursive(depth - 1)


def mutual(depth):
    # Through C and back: each is a call of the interpreter's loop of its own.
    return max([depth], key=lambda n: mutual(n - 1) if n else hit("through C") or 0)


def multi_line():
    hit(
        "multi-line"
    )
    dict(
        a=1,
        b=hit("argument of a multi-line call"),
    )
    return (
        1
        + (hit("operand") or 2)
    )


def with_exception():
    try:
        raise ValueError
    except ValueError:
        hit("except")
    finally:
        hit("finally")


@contextlib.contextmanager
def context():
    hit("enter")
    yield
    hit("exit")


def very_long_function_header_that_begins_far_above_its_first_statement(
    a=1,
    b=2,
):
    """A text.

    Of several lines.
    """
    c = a + b
    if c:
        for _ in range(2):
            if c > 100:
                c = 1

            hit("loop")


def many_lines():
    source = "def f(hit):\n" + "    x = 1\n" * 1000 + "    hit('far down')\n" + "\n" * 300 + "    hit('after a gap')\n"
    space = {}
    exec(compile(source, "<generated>", "exec"), space)
    space["f"](hit)


def unicode_names():
    space = {"hit": hit}
    exec(compile("def grüße_日本():\n\n    hit('unicode')\n", "/tmp/größe-日本-\U0001f600.py", "exec"), space)
    space["grüße_日本"]()
    exec(compile("def latin_é():\n    hit('latin')\n", "/tmp/é.py", "exec"), space)
    space["latin_é"]()


def threads():
    def work():
        plain()
        [n for n in generator()]

    running = [threading.Thread(target=work) for _ in range(4)]
    for thread in running:
        thread.start()
        thread.join()


def main():
    plain()
    nested()
    (lambda: hit("lambda"))()
    [hit("comprehension") for _ in range(2)]
    {hit("set comprehension"): hit("again") for _ in range(1)}
    list(hit("generator expression") for _ in range(2))
    list(map(lambda _: hit("map"), [1]))
    for _ in delegating():
        pass
    next(filter(None, (hit("filter") or 1 for _ in range(1))))
    asyncio.run(awaiting())
    asyncio.run(over_async_generator())
    decorated()
    deleted = Deleted()
    del deleted
    Cyclic()
    gc.collect()
    called = Called()
    called(1, 2, three=3)
    called.anything
    called.thing
    Called.made()
    sorted([called, Called()])
    recursive(100)
    recursive(600)
    mutual(10)
    multi_line()
    with_exception()
    with context():
        hit("in context")
    very_long_function_header_that_begins_far_above_its_first_statement()
    exec("\n\nhit('exec')")
    eval("hit('eval')")
    exec(compile("class A:\n  x = 1\n  hit('class body')\n", "<a class>", "exec"), {"hit": hit})
    many_lines()
    unicode_names()
    threads()
    functools.partial(hit, "partial")()
    functools.reduce(lambda a, b: hit("reduce"), [1, 2])
    try:
        import greenlet
    except ImportError:
        pass
    else:
        def switched():
            hit("greenlet")
            other.switch()
            hit("greenlet, back again")

        def of_other():
            hit("greenlet, another")
            one.switch()

        one = greenlet.greenlet(switched)
        other = greenlet.greenlet(of_other)
        one.switch()
    for said in told:
        print(json.dumps(said))


main()
