"""Code without what is quickly added to it: dead lines, loops over places, helpers that are called once, turned signs.

Each step keeps what the code does, as far as a comparison of texts needs it; nothing is run.
"""

from __future__ import annotations

import ast
import builtins
from collections import Counter
from collections.abc import Container, Iterator, Sequence
from copy import deepcopy
from typing import Any

_ENDS = (ast.Return, ast.Raise, ast.Break, ast.Continue)
_BLOCKS = ("body", "orelse", "finalbody")
_FREE = frozenset(dir(builtins)) - {"setattr", "delattr", "exec", "eval", "next", "open", "input", "__import__"}
"""Builtins whose call changes nothing; what is printed while a solution is judged nobody sees."""
_ACTS = (ast.Await, ast.Yield, ast.YieldFrom, ast.NamedExpr)
_TURNED = {ast.Gt: ast.Lt, ast.GtE: ast.LtE}
_NEGATED = {
    ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.Lt: ast.GtE, ast.GtE: ast.Lt, ast.Gt: ast.LtE, ast.LtE: ast.Gt,
    ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is,
}  # fmt: skip
_ROUNDS = 10
"""What is taken out can make something else needless; so often is looked again."""

Function = ast.FunctionDef | ast.AsyncFunctionDef


def plain(tree: ast.Module, kept: Container[str] = ()) -> ast.Module:
    """The tree, changed in place. Functions with a name in `kept` stay functions, however often they are called."""
    for _ in range(_ROUNDS):
        before = ast.dump(tree)
        _inline(tree, kept)
        for node in ast.walk(tree):
            for block in _blocks(node):
                block[:] = [_loop_over_things(statement) for statement in block]
        tree = _Signs().visit(tree)
        _without_dead_lines(tree)
        if ast.dump(tree) == before:
            break
    return tree


def _blocks(node: ast.AST) -> Iterator[list[ast.stmt]]:
    for name in _BLOCKS:
        block = getattr(node, name, None)
        if isinstance(block, list):
            yield block


# -- dead lines --------------------------------------------------------------------------------------------------------


def _without_dead_lines(tree: ast.AST) -> None:
    read = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}
    for node in ast.walk(tree):
        for block in _blocks(node):
            end = next((at for at, statement in enumerate(block) if isinstance(statement, _ENDS)), len(block))
            of_a_module = isinstance(node, ast.Module | ast.ClassDef)
            block[:] = [each for each in block[: end + 1] if not _is_dead(each, read, of_a_module)]


def _is_dead(node: ast.stmt, read: Container[str], is_seen: bool) -> bool:
    """Whether it changes nothing. What a module or a class assigns is seen by others (`is_seen`)."""
    match node:
        case ast.Pass() | ast.Expr(value=ast.Constant()):
            return True
        case ast.Expr(value=value):
            return _is_free(value)
        case ast.Assert(test=ast.Constant(value=value)):
            return bool(value)
        case ast.Assign(targets=targets, value=value):
            return not is_seen and all(_is_unread(each, read) for each in targets) and _is_free(value)
        case ast.AugAssign(target=target, value=value) | ast.AnnAssign(target=target, value=value):
            return not is_seen and _is_unread(target, read) and (value is None or _is_free(value))
        case ast.If(test=ast.Constant(value=value), orelse=[]) if not value:
            return True
        case ast.If(test=test, body=[], orelse=[]) | ast.For(iter=test, body=[], orelse=[]):
            return _is_free(test)
        case _:
            return False


def _is_unread(target: ast.expr, read: Container[str]) -> bool:
    return isinstance(target, ast.Name) and target.id not in read


def _is_free(node: ast.AST) -> bool:
    """Whether working it out changes nothing."""
    return not any(
        isinstance(each, _ACTS)
        or (isinstance(each, ast.Call) and not (isinstance(each.func, ast.Name) and each.func.id in _FREE))
        for each in ast.walk(node)
    )


# -- loops -------------------------------------------------------------------------------------------------------------


def _loop_over_things(node: ast.stmt) -> ast.stmt:
    """`for i in range(len(them))`, `for i, one in enumerate(them)` and `while i < len(them)`, as `for one in them`."""
    match node:
        case ast.For(
            target=ast.Name(id=place),
            iter=ast.Call(func=ast.Name(id="range"), args=[ast.Call(func=ast.Name(id="len"), args=[things])]),
        ):
            return _over(node, place, things, node.body)
        case ast.For(
            target=ast.Tuple(elts=[ast.Name(id=place), one]),
            iter=ast.Call(func=ast.Name(id="enumerate"), args=[things], keywords=[]),
        ) if not _reads(node.body, place):
            node.target, node.iter = one, things
        case ast.While(
            test=ast.Compare(
                left=ast.Name(id=place), ops=[ast.Lt()], comparators=[ast.Call(func=ast.Name(id="len"), args=[things])]
            ),
            body=[*body, ast.AugAssign(target=ast.Name(id=moved), op=ast.Add(), value=ast.Constant(value=1))],
            orelse=[],
        ) if moved == place and body:
            return _over(node, place, things, body)
    return node


def _reads(body: Sequence[ast.stmt], name: str) -> bool:
    return any(isinstance(node, ast.Name) and node.id == name for part in body for node in ast.walk(part))


def _over(loop: ast.stmt, place: str, things: ast.expr, body: Sequence[ast.stmt]) -> ast.stmt:
    """The loop over the things themselves, where their place is used for nothing but to get them."""
    one = ast.Name(f"{place}_of", ast.Store())
    inside = [_AtPlace(place, ast.dump(things), one.id).visit(deepcopy(part)) for part in body]
    if _reads(inside, place):
        return loop
    match inside:
        case [ast.Assign(targets=[target], value=ast.Name(id=one.id)), *others] if not _reads(others, one.id):
            made = ast.For(target, things, others, [], None)
        case _:
            made = ast.For(one, things, inside, [], None)
    return ast.copy_location(made, loop)


class _AtPlace(ast.NodeTransformer):
    """`things[place]` becomes the name of one of them."""

    def __init__(self, place: str, things: str, one: str) -> None:
        self._place, self._things, self._one = place, things, one

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        if ast.dump(node.value) == self._things and isinstance(node.slice, ast.Name) and node.slice.id == self._place:
            return ast.Name(self._one, node.ctx)
        return self.generic_visit(node)


# -- signs -------------------------------------------------------------------------------------------------------------


class _Signs(ast.NodeTransformer):
    """`a > b` as `b < a`, `not a == b` as `a != b`, and `a = a + b` as `a += b`."""

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.AST:
        match node:
            case ast.UnaryOp(op=ast.Not(), operand=ast.Compare(left=left, ops=[sign], comparators=[right])):
                turned = ast.copy_location(ast.Compare(left, [_NEGATED[type(sign)]()], [right]), node)
                return self.visit_Compare(turned)
        return self.generic_visit(node)

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        self.generic_visit(node)
        if len(node.ops) == 1 and type(node.ops[0]) in _TURNED:
            turned = ast.Compare(node.comparators[0], [_TURNED[type(node.ops[0])]()], [node.left])
            return ast.copy_location(turned, node)
        return node

    def visit_Assign(self, node: ast.Assign) -> ast.AST:
        self.generic_visit(node)
        match node:
            case ast.Assign(targets=[ast.Name(id=name) as target], value=ast.BinOp(ast.Name(id=same), sign, right)):
                if name == same:
                    return ast.copy_location(ast.AugAssign(target, sign, right), node)
        return node


# -- helpers -----------------------------------------------------------------------------------------------------------


def _inline(tree: ast.Module, kept: Container[str]) -> None:
    """Put the body of each function that is called once, and by its name, in the place of that call."""
    used = Counter(node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load))
    used += Counter(node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute))
    for holder in list(ast.walk(tree)):
        for block in _blocks(holder):
            for helper in [each for each in block if isinstance(each, Function)]:
                if helper.name in kept or used[helper.name] != 1 or _reads(helper.body, helper.name):
                    continue
                if _put_in_place(tree, helper):
                    block.remove(helper)


def _put_in_place(tree: ast.Module, helper: Function) -> bool:
    """Whether it could be put in place of its call."""
    for holder in ast.walk(tree):
        if holder is helper:
            continue
        for block in _blocks(holder):
            for at, statement in enumerate(block):
                call = _call_in(statement, helper.name)
                if call is None or statement is helper:
                    continue
                body = _body_for(helper, call, statement)
                if body is not None:
                    block[at : at + 1] = body
                return body is not None
    return False


def _call_in(statement: ast.stmt, name: str) -> ast.Call | None:
    """The call of that function in a simple statement, or in the head of a compound one."""
    ways: list[ast.AST] = [statement]
    while ways:
        node = ways.pop()
        match node:
            case ast.Call(func=ast.Name(id=called) | ast.Attribute(value=ast.Name(id="self" | "cls"), attr=called)):
                if called == name:
                    return node
        ways += [each for each in ast.iter_child_nodes(node) if not isinstance(each, ast.stmt)]
    return None


def _body_for(helper: Function, call: ast.Call, statement: ast.stmt) -> list[ast.stmt] | None:
    names = [each.arg for each in helper.args.args]
    if names[:1] in (["self"], ["cls"]) and isinstance(call.func, ast.Attribute):
        names = names[1:]
    if call.keywords or len(names) != len(call.args) or any(isinstance(each, ast.Starred) for each in call.args):
        return None
    given = _Given(dict(zip(names, call.args, strict=True)))
    body: list[ast.stmt] = [given.visit(deepcopy(each)) for each in helper.body]
    returns = [node for each in body for node in ast.walk(each) if isinstance(node, ast.Return)]
    waited = isinstance(helper, ast.AsyncFunctionDef)
    answer = _waited(statement, call) if waited else call
    if isinstance(statement, ast.Return) and statement.value is answer:
        return body
    if not body or len(returns) > 1 or (returns and body[-1] is not returns[0]):
        return None
    if not returns:
        return body if isinstance(statement, ast.Expr) and statement.value is answer else None
    value = returns[0].value or ast.Constant(None)
    last: ast.stmt = _InPlaceOf(answer, value).visit(statement)
    return [*body[:-1], last]


def _waited(statement: ast.stmt, call: ast.Call) -> ast.AST:
    """What waits for a call; the call itself where nothing does."""
    waiting = (node for node in ast.walk(statement) if isinstance(node, ast.Await) and node.value is call)
    return next(waiting, call)


class _Given(ast.NodeTransformer):
    """What was given to a function in the places of its parameters."""

    def __init__(self, given: dict[str, ast.expr]) -> None:
        self._given = given

    def visit_Name(self, node: ast.Name) -> ast.AST:
        if isinstance(node.ctx, ast.Load) and node.id in self._given:
            return deepcopy(self._given[node.id])
        return node


class _InPlaceOf(ast.NodeTransformer):
    """One node for another."""

    def __init__(self, old: ast.AST, new: ast.AST) -> None:
        self._old, self._new = old, new

    def visit(self, node: ast.AST) -> Any:
        return self._new if node is self._old else super().visit(node)
