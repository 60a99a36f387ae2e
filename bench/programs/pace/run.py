"""Stretches the second half of a program over time: it sleeps a little in each turn of its loops, and in each call of its functions.

    run.py PROGRAM
    run.py --count MODULE FOLDER PROGRAM...

The second counts these of programs that all import the module, in forks of one Python that has imported it. pace.c does the same for C
and C++. The lines stay where they are: the calls are put into what is compiled.
"""
import ast
import importlib
import os
import pathlib
import sys
import threading
import time

class Pace:
    def __init__(self, told, pause_s, begin):
        self.told, self.pause_s, self.begin, self.events, self.debt_s = told, pause_s, begin, 0, 0.0
        self.sleep, self.getpid, self.pid = time.sleep, os.getpid, os.getpid()  # the program's names are in this module, too
        self.lock, self.exists = threading.Lock(), os.path.exists

    def step(self):
        self.events += 1
        if self.events < self.begin:
            return
        if self.events == self.begin and self.getpid() == self.pid:
            open(self.told + ".begun", "w").close()
            while not self.exists(self.told + ".go"):
                self.sleep(0.05)
        with self.lock:  # threads wait for each other: the program is stretched by all that it owes
            self.debt_s += self.pause_s
            if self.debt_s > 0.001:
                self.sleep(self.debt_s)
                self.debt_s = 0.0

    def tell(self):
        with open(self.told, "w") as file:
            file.write(str(self.events))


class Steps(ast.NodeTransformer):
    def stepped(self, node):
        self.generic_visit(node)
        has_docstring = isinstance(node, ast.FunctionDef) and ast.get_docstring(node) is not None
        step = ast.Expr(ast.Call(ast.Name("__pace_step__", ast.Load()), [], []))
        node.body.insert(1 if has_docstring else 0, ast.copy_location(step, node.body[0]))
        return node

    visit_For = visit_While = visit_FunctionDef = stepped


def run(program, told, pause_s, begin):
    pace, main = Pace(told, pause_s, begin), sys.modules["__main__"]
    tree = ast.fix_missing_locations(Steps().visit(ast.parse(pathlib.Path(program).read_text(), program)))
    vars(main).update(__file__=program, __pace_step__=pace.step)
    sys.argv[:] = [program]
    sys.path[0] = os.path.dirname(program)
    exec(compile(tree, program, "exec"), vars(main))
    pace.tell()


def count(module, folder, *programs):
    importlib.import_module(module)
    for program in programs:
        child = os.fork()
        if child == 0:
            status = 1
            try:
                run(program, os.path.join(folder, f"{pathlib.Path(program).parent.name}.{pathlib.Path(program).stem}"), 0, 0)
                status = 0
            finally:
                sys.stdout.flush()
                os._exit(status)
        os.waitpid(child, 0)


if sys.argv[1] == "--count":
    count(*sys.argv[2:])
else:
    run(sys.argv[1], os.environ["PACE_TOLD"], float(os.environ["PACE_PAUSE_S"]), int(os.environ["PACE_BEGIN"]))
