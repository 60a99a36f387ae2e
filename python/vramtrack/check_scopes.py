"""Resolves which variable each name in a Python file stands for, and which attribute of which class, by Python's scopes in the syntax tree.
Only this module of `check` resolves names. A rule asks for the place() of an expression and compares places, never names."""
from __future__ import annotations

import ast
from typing import Dict, Iterator, List, NamedTuple, Optional, Set, Tuple, Union

from vramtrack.check_syntax import COMPREHENSIONS, FUNCTIONS, Function, arguments_of, last_name, parameters_of, targets_of, value_of

_STEPS = 5  # from one name to the name it stands for, and so on
_VIEWS = ("values", "items", "get", "setdefault")  # of a container: its contents


class Place(NamedTuple):
    """A variable of a scope, or an attribute. Equal places are the same variable."""

    #: The function, lambda, comprehension or module that has the variable; the class (in this file) that has the attribute; or, if that
    #: class is unknown, the place of the object that has the attribute. None: this file does not bind the name.
    owner: Union[ast.AST, Place, None]
    name: str

    @property
    def is_attribute(self) -> bool:
        return isinstance(self.owner, (ast.ClassDef, Place))


_Variables = List[Tuple[ast.AST, str, ast.AST]]
_Attributes = List[Tuple[ast.AST, ast.Attribute]]
_SOMEWHERE = Place(None, "")  # an object without a name: open().name


class Scopes:
    """The names in one tree."""

    def __init__(self, tree: ast.Module) -> None:
        self.tree = tree
        self.functions: List[Function] = []
        self.classes: List[ast.ClassDef] = []
        self.calls: List[ast.Call] = []
        self._parents: Dict[ast.AST, ast.AST] = {}
        self._scopes: Dict[ast.AST, ast.AST] = {}  # for each node, the scope in which it is evaluated
        self._names: Dict[ast.AST, Set[str]] = {}  # by scope: the names bound in it
        self._global: Dict[ast.AST, Set[str]] = {}
        self._nonlocal: Dict[ast.AST, Set[str]] = {}
        self._owners: Dict[Tuple[ast.AST, str], Optional[ast.AST]] = {}
        self._places: Dict[ast.AST, Optional[Place]] = {}
        self._kinds: Dict[ast.AST, Optional[List[ast.ClassDef]]] = {}
        self._bindings: Dict[Place, List[ast.AST]] = {}
        self._attributes: Dict[str, List[Place]] = {}  # those that are bound, by their last name
        self._calls_of: Dict[str, List[ast.Call]] = {}
        self._stands_for: Dict[Place, Set[Place]] = {}
        self._related: Dict[ast.ClassDef, Set[ast.ClassDef]] = {}
        variables, attributes = self._read()
        self.functions.sort(key=lambda one: one.lineno)
        self.calls.sort(key=lambda one: (one.lineno, one.col_offset))
        for call in self.calls:
            self._calls_of.setdefault(last_name(call.func), []).append(call)
        # Variables, then self.x of methods, then other attributes: an object's class follows from earlier assignments.
        for node, name, scope in variables:
            self._bind(Place(self.owner(name, scope), name), node)
        of_methods = [isinstance(target.value, ast.Name) and self._method_of(target.value) is not None for _, target in attributes]
        for is_first in (True, False):
            for place, node in [(self._attribute(target), node) for (node, target), is_of_method in zip(attributes, of_methods) if is_of_method == is_first]:
                self._bind(place, node)
            self._kinds.clear()
            self._places.clear()
        for place, nodes in self._bindings.items():
            nodes.sort(key=line_of)
            if place.is_attribute:
                self._attributes.setdefault(place.name, []).append(place)

    def _bind(self, place: Place, node: ast.AST) -> None:
        self._bindings.setdefault(place, []).append(node)

    # Reading the tree.

    def _read(self) -> Tuple[_Variables, _Attributes]:
        """The nodes that bind a variable, with its name and the scope of the binding, and the nodes that bind an attribute."""
        variables: _Variables = []
        attributes: _Attributes = []
        waiting: List[Tuple[ast.AST, ast.AST]] = [(self.tree, self.tree)]
        while waiting:
            node, scope = waiting.pop()
            self._scopes[node] = scope
            self._note(node, scope, variables, attributes)
            for name, value in ast.iter_fields(node):
                for child in value if isinstance(value, list) else [value]:
                    if isinstance(child, ast.AST) and not isinstance(child, (ast.expr_context, ast.operator, ast.unaryop, ast.cmpop, ast.boolop)):
                        self._parents[child] = node
                        waiting.append((child, self._scope_of_child(node, name, child, scope)))
        return variables, attributes

    def _scope_of_child(self, node: ast.AST, field: str, child: ast.AST, scope: ast.AST) -> ast.AST:
        if isinstance(node, (*FUNCTIONS, ast.Lambda, ast.ClassDef)):
            return node if field == "body" else scope  # decorators, defaults, annotations and bases belong to the enclosing scope
        if isinstance(node, COMPREHENSIONS):
            return node
        above = self._parents.get(node)
        if isinstance(node, ast.comprehension) and field == "iter" and isinstance(above, COMPREHENSIONS) and node is above.generators[0]:
            return self._scopes[above]  # the first iterable is computed outside
        return scope

    def _note(self, node: ast.AST, scope: ast.AST, variables: _Variables, attributes: _Attributes) -> None:
        names: List[str] = []
        if isinstance(node, (*FUNCTIONS, ast.Lambda)):
            self._names.setdefault(node, set()).update(one.arg for one in arguments_of(node))
        if isinstance(node, FUNCTIONS):
            self.functions.append(node)
            names.append(node.name)
        elif isinstance(node, ast.ClassDef):
            self.classes.append(node)
            names.append(node.name)
        elif isinstance(node, ast.Call):
            self.calls.append(node)
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            names += [one.asname or one.name.split(".")[0] for one in node.names]
        elif isinstance(node, ast.Global):
            self._global.setdefault(scope, set()).update(node.names)
        elif isinstance(node, ast.Nonlocal):
            self._nonlocal.setdefault(scope, set()).update(node.names)
        elif isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            self._names.setdefault(self._binder(node, scope), set()).add(node.id)
        elif isinstance(node, ast.ExceptHandler) or type(node).__name__ in ("MatchAs", "MatchStar"):
            names += [node.name] if node.name else []  # type: ignore[attr-defined]
        elif type(node).__name__ == "MatchMapping":
            names += [node.rest] if node.rest else []  # type: ignore[attr-defined]
        self._names.setdefault(scope, set()).update(names)
        variables += [(node, name, scope) for name in names]
        for target in targets_of(node):
            if isinstance(target, ast.Name):
                variables.append((node, target.id, self._binder(node, scope)))
            elif isinstance(target, ast.Attribute):
                attributes.append((node, target))

    def _binder(self, node: ast.AST, scope: ast.AST) -> ast.AST:
        """`:=` within a comprehension binds a variable of the enclosing function."""
        if isinstance(node, ast.NamedExpr) or isinstance(self._parents.get(node), ast.NamedExpr):
            while isinstance(scope, COMPREHENSIONS):
                scope = self._scopes[scope]
        return scope

    # The position of a node.

    def parent(self, node: ast.AST) -> Optional[ast.AST]:
        return self._parents.get(node)

    def above(self, node: ast.AST) -> Iterator[ast.AST]:
        """Its ancestors, nearest first."""
        one = self._parents.get(node)
        while one is not None:
            yield one
            one = self._parents.get(one)

    def is_in(self, node: ast.AST, outer: ast.AST) -> bool:
        return any(one is outer for one in self.above(node))

    def scope_of(self, node: ast.AST) -> ast.AST:
        """The function, lambda or class in which it runs, otherwise the module."""
        scope = self._scopes[node]
        while isinstance(scope, COMPREHENSIONS):
            scope = self._scopes[scope]
        return scope

    def function_of(self, node: ast.AST) -> Optional[Function]:
        scope = self.scope_of(node)
        while not isinstance(scope, FUNCTIONS):
            if scope is self.tree:
                return None
            scope = self.scope_of(scope)
        return scope

    def class_of(self, node: ast.AST) -> Optional[ast.ClassDef]:
        return next((one for one in self.above(node) if isinstance(one, ast.ClassDef)), None)

    def statement_of(self, node: ast.AST) -> ast.stmt:
        return node if isinstance(node, ast.stmt) else next(one for one in self.above(node) if isinstance(one, ast.stmt))

    # The meaning of a name.

    def owner(self, name: str, scope: ast.AST) -> Optional[ast.AST]:
        """The scope that has the variable which `name` refers to in `scope`. None: no scope of this file has it."""
        key = (scope, name)
        if key not in self._owners:
            self._owners[key] = self._search(name, scope)
        return self._owners[key]

    def _search(self, name: str, scope: ast.AST) -> Optional[ast.AST]:
        one = scope
        while one is not self.tree:
            if name in self._global.get(one, ()):
                return self.tree
            # Functions in a class do not see the variables of the class.
            if name in self._names.get(one, ()) and name not in self._nonlocal.get(one, ()) and (one is scope or not isinstance(one, ast.ClassDef)):
                return one
            one = self._scopes[one]
        is_global = name in self._names.get(one, ()) or any(name in names and name in self._names.get(other, ()) for other, names in self._global.items())
        return one if is_global else None

    def place(self, node: ast.AST) -> Optional[Place]:
        """The place of a name or an attribute; other expressions have none."""
        if node not in self._places:
            self._places[node] = Place(self.owner(node.id, self._scopes[node]), node.id) if isinstance(node, ast.Name) else (
                self._attribute(node) if isinstance(node, ast.Attribute) else None)
        return self._places[node]

    def _attribute(self, node: ast.Attribute) -> Place:
        kinds = self.classes_of(node.value)
        if kinds is not None and len(kinds) == 1:
            return Place(kinds[0], node.attr)
        return Place(self.place(node.value) or _SOMEWHERE, node.attr)

    def place_of_definition(self, node: Union[Function, ast.ClassDef]) -> Place:
        """The place of the name to which a function or class is bound."""
        return Place(self.owner(node.name, self._scopes[node]), node.name)

    def places_in(self, node: Optional[ast.AST]) -> Set[Place]:
        """Every name and attribute in it."""
        return {place for place in map(self.place, ast.walk(node) if node is not None else ()) if place is not None}

    def places_of(self, statement: ast.AST) -> Set[Place]:
        """The places that a statement binds."""
        return {place for place in map(self.place, targets_of(statement)) if place is not None}

    def root(self, node: ast.AST) -> Optional[ast.Name]:
        """The name at the start of a chain of attributes."""
        while isinstance(node, ast.Attribute):
            node = node.value
        return node if isinstance(node, ast.Name) else None

    def bindings(self, place: Place, within: Optional[ast.AST] = None) -> List[ast.AST]:
        """The statements that bind it, in line order: all of them, or those in one scope."""
        found = self._bindings.get(place, [])
        return found if within is None else [one for one in found if self.scope_of(one) is within]

    def attributes_named(self, name: str) -> List[Place]:
        """Attributes with that name that this file assigns to."""
        return self._attributes.get(name, [])

    def values(self, place: Place) -> List[ast.expr]:
        """The values assigned to it; for an attribute, including those assigned by other classes that its object may have."""
        places = [place, *(one for one in self.attributes_named(place.name) if one != place and isinstance(place.owner, ast.ClassDef) and one.owner in self._relatives(place.owner))]
        values = (value_of(one, place.name) for each in places for one in self.bindings(each) if isinstance(one, (ast.Assign, ast.AnnAssign, ast.NamedExpr)))
        return [one for one in values if one is not None]

    def parameter(self, place: Place) -> Optional[ast.arg]:
        if not isinstance(place.owner, (*FUNCTIONS, ast.Lambda)):
            return None
        return next((one for one in arguments_of(place.owner) if one.arg == place.name), None)

    def default_of(self, place: Place) -> Optional[ast.expr]:
        """The default value of a parameter."""
        if not isinstance(place.owner, (*FUNCTIONS, ast.Lambda)):
            return None
        its = place.owner.args
        pairs = [*zip(reversed(parameters_of(place.owner)), reversed(its.defaults)), *zip((one.arg for one in its.kwonlyargs), its.kw_defaults)]
        return next((default for name, default in pairs if name == place.name), None)

    def full_name(self, node: ast.AST) -> str:
        """`F.relu` -> torch.nn.functional.relu, by the imports that bind the name."""
        if isinstance(node, ast.Attribute):
            base = self.full_name(node.value)
            return f"{base}.{node.attr}" if base else ""
        place = self.place(node)
        for one in self.bindings(place) if place is not None else ():
            for alias in getattr(one, "names", ()) if isinstance(one, (ast.Import, ast.ImportFrom)) else ():
                if (alias.asname or alias.name.split(".")[0]) == place.name:  # type: ignore[union-attr]
                    if isinstance(one, ast.ImportFrom):
                        return f"{'.' * one.level}{one.module or ''}.{alias.name}"
                    return str(alias.name) if alias.asname else place.name  # type: ignore[union-attr]
        return place.name if place is not None else ""

    # Classes and their members.

    def class_named(self, node: ast.AST) -> Optional[ast.ClassDef]:
        """The class in this file that an expression names."""
        place = self.place(node)
        return next((one for one in reversed(self.bindings(place)) if isinstance(one, ast.ClassDef)), None) if place is not None else None

    def has_object(self, function: Function) -> bool:
        """Whether it is a method whose first parameter is the object or the class."""
        return isinstance(self._scopes[function], ast.ClassDef) and not any(last_name(one) == "staticmethod" for one in function.decorator_list)

    def _method_of(self, node: ast.Name) -> Optional[ast.ClassDef]:
        """The class, if the name is the first parameter of one of its methods: `self` or `cls`."""
        owner = self.owner(node.id, self._scopes[node])
        if not isinstance(owner, FUNCTIONS) or parameters_of(owner)[:1] != [node.id] or not self.has_object(owner) or self._bindings.get(Place(owner, node.id)):
            return None
        kind = self._scopes[owner]
        return kind if isinstance(kind, ast.ClassDef) else None

    def is_of_its_class(self, node: ast.AST) -> bool:
        """Whether it is an attribute of the method's own object or of a class itself, and so lives as long as that."""
        root = self.root(node)
        return root is not None and root is not node and (self._method_of(root) is not None or self.class_named(root) is not None)

    def classes_of(self, node: ast.AST, depth: int = _STEPS) -> Optional[List[ast.ClassDef]]:
        """The classes in this file that the object may have, or that the expression names. None: it may be another object, too."""
        if depth == 0:
            return None
        if node not in self._kinds:
            self._kinds[node] = None  # an object that is computed from itself
            self._kinds[node] = self._search_classes(node, depth)
        return self._kinds[node]

    def _search_classes(self, node: ast.AST, depth: int) -> Optional[List[ast.ClassDef]]:
        if isinstance(node, ast.Call):
            kind = self.class_named(node.func)
            return [kind] if kind is not None else None
        if isinstance(node, ast.Constant) and node.value is None:
            return []
        if isinstance(node, ast.IfExp):
            return _both(self.classes_of(node.body, depth - 1), self.classes_of(node.orelse, depth - 1))
        if not isinstance(node, (ast.Name, ast.Attribute)):
            return None
        kind = self._method_of(node) if isinstance(node, ast.Name) else None
        place = self.place(node) if kind is None else None
        if place is None:
            return [kind] if kind is not None else None
        found: Optional[List[ast.ClassDef]] = None
        for one in self.bindings(place):
            value = value_of(one, place.name) if isinstance(one, (ast.Assign, ast.AnnAssign, ast.NamedExpr)) else None
            its = [one] if isinstance(one, ast.ClassDef) else self.classes_of(value, depth - 1) if value is not None else None
            if its is None:
                return None
            found = its if found is None else _both(found, its)
        if found is None:
            parameter = self.parameter(place)
            kind = self.class_named(parameter.annotation) if parameter is not None and parameter.annotation is not None else None
            return [kind] if kind is not None else None
        return found or None

    def lineage(self, kind: ast.ClassDef) -> List[ast.ClassDef]:
        """The class and its base classes in this file, nearest first."""
        found = [kind]
        for one in found:
            for base in map(self.class_named, one.bases):
                if base is not None and base not in found:
                    found.append(base)
        return found

    def _relatives(self, kind: ast.ClassDef) -> Set[ast.ClassDef]:
        """The other classes in this file that one of its objects may have."""
        if not self._related:
            for line in map(self.lineage, self.classes):
                for one in line:
                    self._related.setdefault(one, set()).update(line)
        return self._related[kind]

    def methods(self, kind: ast.ClassDef) -> Dict[str, Function]:
        return {one.name: one for one in kind.body if isinstance(one, FUNCTIONS)}

    def functions_of(self, called: ast.AST) -> List[Function]:
        """The functions in this file that a call of the expression may run. For an object of unknown class, every method with the name."""
        if isinstance(called, ast.Name):
            place = self.place(called)
            return [one for one in self.bindings(place) if isinstance(one, FUNCTIONS)] if place is not None else []
        if not isinstance(called, ast.Attribute):
            return []
        kinds = self.classes_of(called.value)
        if kinds is None:
            return [one for one in self.functions if one.name == called.attr and isinstance(self._scopes[one], ast.ClassDef)]
        found = []
        for kind in kinds:
            found += [its[called.attr] for its in map(self.methods, self.lineage(kind)) if called.attr in its][:1]
        return found

    def calls_of(self, *names: str) -> List[ast.Call]:
        """The calls of functions and methods with these names, regardless of which they are."""
        return [call for name in names for call in self._calls_of.get(name, ())]

    def callers(self, function: Function) -> List[ast.Call]:
        """The calls in this file that may run it, except for its own. A constructor is called by the name of its class."""
        found = [call for call in self.calls_of(function.name) if function in self.functions_of(call.func)]
        kind = self._scopes[function]
        if isinstance(kind, ast.ClassDef) and function.name == "__init__":
            found += [call for call in self.calls if kind is self.class_named(call.func)]
        return [call for call in found if not self.is_in(call, function)]

    def arguments_for(self, place: Place) -> List[ast.expr]:
        """The arguments that calls in this file pass to a parameter."""
        function, found = place.owner, []
        if not isinstance(function, FUNCTIONS) or self.parameter(place) is None:
            return []
        names = parameters_of(function)
        position = names.index(place.name) if place.name in names else -1
        for call in self.callers(function):
            n = position - int(self.has_object(function) and (function.name == "__init__" or isinstance(call.func, ast.Attribute)))
            found += call.args[n:n + 1] if n >= 0 else []
            found += [one.value for one in call.keywords if one.arg == place.name]
        return found

    # Places that may be the same object.

    def stands_for(self, place: Place) -> Set[Place]:
        """The place, and those with objects that were assigned to it or passed to it by calls in this file."""
        if place not in self._stands_for:
            found, fresh = {place}, {place}
            for _ in range(_STEPS):
                fresh = {other for one in fresh for value in [*self._given_to(one), *self.arguments_for(one)] for other in self._objects_in(value)} - found
                found |= fresh
            self._stands_for[place] = found
        return self._stands_for[place]

    def _given_to(self, place: Place) -> Iterator[ast.expr]:
        for one in self.bindings(place):
            if isinstance(one, (ast.For, ast.AsyncFor, ast.comprehension)):
                yield one.iter
            elif isinstance(one, (ast.Assign, ast.AnnAssign, ast.NamedExpr)):
                value = value_of(one, place.name)
                if value is not None:
                    yield value

    def _objects_in(self, value: ast.expr) -> Iterator[Place]:
        """The places that an expression may be, or may take its value from."""
        if isinstance(value, (ast.Name, ast.Attribute)):
            place = self.place(value)
            if place is not None:
                yield place
        elif isinstance(value, (ast.Tuple, ast.List)):
            for one in value.elts:
                yield from self._objects_in(one)
        elif isinstance(value, ast.IfExp):
            yield from self._objects_in(value.body)
            yield from self._objects_in(value.orelse)
        elif isinstance(value, ast.BoolOp):
            for one in value.values:
                yield from self._objects_in(one)
        elif isinstance(value, (ast.Subscript, ast.Starred, ast.NamedExpr)):
            yield from self._objects_in(value.value)
        elif isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and value.func.attr in _VIEWS:
            yield from self._objects_in(value.func.value)

    def may_be_one(self, one: Place, other: Place) -> bool:
        """Whether both are the same variable, or attributes with the same name of objects that may be the same."""
        if one == other:
            return True
        if one.name != other.name or not one.is_attribute or not other.is_attribute or self._is_module(one.owner) or self._is_module(other.owner):
            return False
        if isinstance(one.owner, ast.ClassDef) and isinstance(other.owner, ast.ClassDef):
            return other.owner in self._relatives(one.owner)
        return True

    def _is_module(self, owner: Union[ast.AST, Place, None]) -> bool:
        bindings = self.bindings(owner) if isinstance(owner, Place) else []
        return bool(bindings) and all(isinstance(one, ast.Import) for one in bindings)

    def made_by(self, place: Place) -> List[Tuple[ast.AST, bool]]:
        """The statements that bind it, or a place that may be the same object, and whether it certainly is: an attribute of an unknown
        object may belong to another object."""
        found: List[Tuple[ast.AST, bool]] = []
        for wanted in self.stands_for(place):
            found += [(one, True) for one in self.bindings(wanted)]
            for other in self.attributes_named(wanted.name) if wanted.is_attribute else ():
                if other != wanted and self.may_be_one(other, wanted):
                    is_known = isinstance(other.owner, ast.ClassDef) and isinstance(wanted.owner, ast.ClassDef)
                    found += [(one, is_known) for one in self.bindings(other)]
        return found


def line_of(node: ast.AST) -> int:
    return getattr(node, "lineno", 0) or getattr(getattr(node, "target", None), "lineno", 0)


def _both(one: Optional[List[ast.ClassDef]], other: Optional[List[ast.ClassDef]]) -> Optional[List[ast.ClassDef]]:
    return None if one is None or other is None else [*one, *(each for each in other if each not in one)]
