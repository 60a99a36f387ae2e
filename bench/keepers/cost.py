#!/usr/bin/env python3
"""What one look for what keeps tensors costs, as the probe of `vramtrack run` makes it, beside as many other objects as PyTorch brings.

    cost.py [--package FOLDER] [--objects N] [--looks N]

2,000 tensors (stand-ins: neither a GPU nor a framework is needed), kept in different ways, beside N objects that keep none. CPU time of the
thread, the median of the looks. --package: the package vramtrack to measure, default that of this checkout; give another one to compare.
"""
import argparse
import gc
import pathlib
import statistics
import sys
import time
import types

HERE = pathlib.Path(__file__).resolve().parent
TENSORS, LOOK_S = 2000, 20.0
arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
arguments.add_argument("--package", type=pathlib.Path, default=HERE.parents[1] / "python/vramtrack")
arguments.add_argument("--objects", type=int, default=300_000)
arguments.add_argument("--looks", type=int, default=5)
options = arguments.parse_args()
package = types.ModuleType("vramtrack")
package.__path__ = [str(options.package)]
sys.modules["vramtrack"] = package
from vramtrack.referrers import _Search, is_rooted  # noqa: E402


class Tensor:
    made = 0

    __cuda_array_interface__ = None  # the search asks the type for it first

    def __init__(self, *saved):
        Tensor.made += 512
        self.saved, self.nbytes, self.__cuda_array_interface__ = saved, 512, {"data": (Tensor.made, False)}


class Node:
    def __init__(self, tensor, parent):
        self.tensor, self.parent, self.children = tensor, parent, []


def a_list():
    return [Tensor() for _ in range(TENSORS)]


def graphs():
    return [Tensor(Tensor(Tensor(Tensor()))) for _ in range(TENSORS // 4)]


def attributes():
    store = types.SimpleNamespace()
    for i in range(TENSORS):
        setattr(store, f"t{i}", Tensor())
    return store


def a_chain():
    last = None
    for _ in range(TENSORS):
        last = Tensor(last)
    return last


def a_tree():
    root = node = Node(None, None)
    for _ in range(TENSORS):
        node.children.append(Node(Tensor(), node))
        node = node.children[0]
    return root


def a_tree_without_a_variable():
    a_tree()


def main():
    others = [{"a": [i], "b": (i, [i])} for i in range(options.objects // 4)]
    print(f"{options.objects:,} other objects, Python {sys.version.split()[0]}\n\n| kept by | ms | tensors with a variable |\n|---|---|---|")
    for way in (a_list, graphs, attributes, a_chain, a_tree, a_tree_without_a_variable):
        gc.collect()
        gc.disable()  # a circle is there until somebody looks for it
        kept, took, named = way(), [], 0
        for _ in range(options.looks):
            begun = time.thread_time()
            search = _Search(None, lambda device, address: "", time.monotonic() + LOOK_S, is_whole=False)
            search.run()
            took.append(time.thread_time() - begun)
            named = len({i for path, ids in search.found.items() if is_rooted(path) for i in ids})
            search.clear()
        print(f"| {way.__name__} | {1000 * statistics.median(took):,.0f} | {named:,} |", flush=True)
        del kept
        gc.enable()
    return len(others)


if __name__ == "__main__":
    main()
