"""The package's modules import each other one way: each can be read, tested and changed without those that use it."""
import ast
import pathlib

import vramtrack

FOLDER = pathlib.Path(vramtrack.__file__).parent


def imported(path, modules):
    """The package's modules that the file imports, also within a function; the package itself is the one that imports all."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path.name}: imports are absolute"
            names = [node.module] + [f"{node.module}.{alias.name}" for alias in node.names]
        else:
            continue
        yield from (name[len("vramtrack.") :] for name in names if name.partition(".")[2] in modules and name.startswith("vramtrack."))


def circles(imports):
    """Each circle once, as the modules along it."""
    found, finished = [], set()

    def visit(module, path):
        if module in path:
            found.append(" -> ".join([*path[path.index(module) :], module]))
        elif module not in finished:
            for other in sorted(imports[module]):
                visit(other, [*path, module])
            finished.add(module)

    for module in sorted(imports):
        visit(module, [])
    return found


def test_a_circle_is_found():
    assert circles({"a": {"b"}, "b": {"c"}, "c": {"b"}, "d": set()}) == ["b -> c -> b"]


def test_no_module_imports_one_that_imports_it():
    modules = {path.stem for path in FOLDER.glob("*.py")} - {"__init__"}
    imports = {module: set(imported(FOLDER / f"{module}.py", modules)) for module in modules}
    assert imports["watch"] > {"sources", "stream"}, "the search finds imports"
    assert circles(imports) == []
