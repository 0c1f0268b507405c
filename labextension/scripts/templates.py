"""Reads the sentences of a Python file as templates, without running it.

A *template* is what an f-string says with a named place for each value: the text
``f"{slot}: asks {describe(amount)}"`` is ``{slot}: asks {amount}``. A sentence that is
put together of choices and sums is as many templates as there are ways to say it.
"""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Iterator
from typing import Final

PLACE: Final = re.compile(r"\{(\w*)\}")

# Mistakes of ours, which are answered with an id and no words.
_OURS: Final = {"AssertionError", "KeyError", "RuntimeError", "TypeError"}
# Calls whose texts are for machines, for logs, or for the pages' own catalogues.
_QUIET_CALL: Final = re.compile(
    r"(^|\.)((?i:_?log(ger)?)\.\w+|re\.\w+|text|begin|recall|getLogger|strftime|_count"
    r"|_method|operation|warn|startswith|endswith|split|removeprefix|removesuffix"
    r"|replace|field|Number|Text|Choice|Flag|Meta|(_?set_|add_)?header|execute"
    r"|literal_column|Unicode|Bool|Dict|List)$"
)
_QUIET_WORD: Final = {"help", "description", "metadata", "doc", "title", "summary"}
# Keywords and names that hold something a person reads, even if it is one word.
_TELLING: Final = {"reason", "message", "words", "why", "detail"}
_MOST_WAYS: Final = 12
# With fewer, and places, it fits anything.
_LEAST_LETTERS: Final = 4


def read_templates(source: str) -> list[str]:
    """List every template that is a sentence, or a part of one by itself."""
    return _Reader(ast.parse(source)).templates()


class _Reader:
    def __init__(self, tree: ast.Module) -> None:
        self._functions = {
            n.name: n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef)
        }
        self._constants = dict(filter(None, map(_assigned, tree.body)))
        self._used: set[ast.AST] = set()
        self._found: list[tuple[ast.AST, bool, list[str]]] = []
        self._visit(tree, told=False)

    def templates(self) -> list[str]:
        found: dict[str, None] = {}
        for node, told, ways in self._found:
            if node not in self._used:
                said = (_trim(way) for way in ways if _is_phrase(way, told=told))
                found |= dict.fromkeys(said)
        return list(found)

    def _visit(self, node: ast.AST, *, told: bool) -> None:
        if _is_silent(node):
            return
        if isinstance(node, ast.expr) and node not in self._used:
            ways = self._read(node)
            if ways is not None:
                self._found.append((node, told, ways))
        for child in _spoken_parts(node):
            self._visit(child, told=_tells(node, told=told))

    def _read(self, node: ast.expr) -> list[str] | None:
        """Write *node* as templates, one for each way to say it; None if unknown."""
        match node:
            case ast.Constant(value=str(text)):
                return [text]
            case ast.JoinedStr(values=parts):
                return _join([self._fill(part) for part in parts])
            case ast.BinOp(op=ast.Add(), left=left, right=right):
                return self._read_sum([left, right])
            case ast.IfExp(body=one, orelse=other):
                return self._read_choice([one, other])
            case _:
                return None

    def _read_sum(self, sides: list[ast.expr]) -> list[str] | None:
        read = [self._read(side) for side in sides]
        if not any(read):
            return None
        self._used |= {side for side, ways in zip(sides, read, strict=True) if ways}
        return _join(
            [
                ways or self._read_known(side) or [f"{{{_name(side)}}}"]
                for side, ways in zip(sides, read, strict=True)
            ]
        )

    def _read_choice(self, choices: list[ast.expr]) -> list[str] | None:
        read = [self._read(choice) for choice in choices]
        if not all(read):
            return None
        self._used |= set(choices)
        return [way for ways in read if ways for way in ways]

    def _read_known(self, node: ast.expr) -> list[str] | None:
        """Read a constant of the file, or what a function of it returns."""
        if isinstance(node, ast.Name) and node.id in self._constants:
            return self._read(self._constants[node.id])
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            function = self._functions.get(node.func.id)
            inside = ast.walk(function) if function else ()
            returned = [
                n.value for n in inside if isinstance(n, ast.Return) and n.value
            ]
            return self._read_choice(returned) if returned else None
        return None

    def _fill(self, part: ast.expr) -> list[str]:
        if not isinstance(part, ast.FormattedValue):
            return self._read(part) or [""]
        value = part.value
        is_constant = isinstance(value, ast.Name)
        ways = self._read_known(value) if is_constant else self._read(value)
        if ways is None or part.conversion != -1:
            return [f"{{{_name(value)}}}"]
        self._used.add(value)
        return ways


def _join(parts: list[list[str]]) -> list[str]:
    many = 1
    for part in parts:
        many *= len(part)
    if many > _MOST_WAYS:
        longest = max(parts, key=len)
        return _join([["{part}"] if part is longest else part for part in parts])
    return [_number("".join(way)) for way in itertools.product(*parts)]


def _number(template: str) -> str:
    """Give each place of *template* a name of its own."""
    seen: dict[str, int] = {}

    def name(found: re.Match[str]) -> str:
        word = re.sub(r"\d+$", "", found[1]) or "value"
        seen[word] = seen.get(word, 0) + 1
        return f"{{{word}{seen[word] if seen[word] > 1 else ''}}}"

    return PLACE.sub(name, template)


def _assigned(node: ast.stmt) -> tuple[str, ast.expr] | None:
    match node:
        case ast.Assign(targets=[ast.Name(id=name)], value=value):
            return name, value
        case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
            return name, value
        case _:
            return None


def _is_silent(node: ast.AST) -> bool:  # noqa: PLR0911 - a table, really
    match node:
        case ast.Expr(value=ast.Constant()) | ast.Compare() | ast.pattern():
            return True  # docstrings, and what is compared with
        case ast.Assign(targets=[ast.Attribute(attr="__doc__")]):
            return True
        case ast.Raise(exc=ast.Call(func=ast.Name(id=name))):
            return name in _OURS
        case ast.Call(func=func):
            return _QUIET_CALL.search(ast.unparse(func)) is not None
        case ast.keyword(arg=name):
            return name in _QUIET_WORD
        case ast.Tuple(elts=[_, _, *_] as elements):
            # What the words of others are recognised by.
            return all(isinstance(e, ast.Constant) for e in elements)
    return False


def _spoken_parts(node: ast.AST) -> Iterator[ast.AST]:
    """List what is in *node*, but for names, types and the keys of mappings."""
    match node:
        case ast.FunctionDef(body=body) | ast.AsyncFunctionDef(body=body):
            yield from body
        case ast.AnnAssign(value=value):
            yield from [value] if value else []
        case ast.Subscript(value=value):
            yield value
        case ast.Dict(values=values):
            yield from values
        case ast.JoinedStr(values=values):
            yield from (v.value for v in values if isinstance(v, ast.FormattedValue))
        case ast.Lambda(body=expression):
            yield expression
        case _:
            yield from ast.iter_child_nodes(node)


def _tells(node: ast.AST, *, told: bool) -> bool:
    """Tell whether even one word in *node* is something that a person reads."""
    match node:
        case ast.keyword(arg=name):
            return name in _TELLING
        case (
            ast.Assign(targets=[ast.Name(id=name)])
            | ast.AnnAssign(target=ast.Name(id=name))
        ):
            return name in {*_TELLING, "title"}
        case ast.IfExp() | ast.BoolOp():
            return told
    return False


def _is_phrase(text: str, *, told: bool) -> bool:
    """Tell a sentence from a key, a pattern, a header or a command."""
    said = PLACE.sub("\0", _trim(text))
    if not re.search(r"[A-Za-z]{3}", said):
        return False
    if "\0" in said and len(re.findall(r"[A-Za-z]", said)) < _LEAST_LETTERS:
        return False
    if re.search(r"[\n\\]|<[/!?]|=\"|: \*|%[sYH]|\"\$|\.py\b|--\w+=|^/", said):
        return False
    if told:
        return " " in said or not re.search(r"[A-Z_]{2,}|[/_-]", said)
    has_blank = re.search(r"[\w\0)'’][,;:.]? [\w\0('‘]", said)
    return has_blank is not None and not re.match(r"[A-Z-]+ [/\0]", said)


def _trim(text: str) -> str:
    """Take off what joins *text* to what is before and after it."""
    return re.sub(r"^[;,\s]+|[;,\s]+$", "", text)


def _name(node: ast.expr) -> str:  # noqa: C901, PLR0911, PLR0912 - a table
    """Name what stands for *node* in a template."""
    match node:
        case ast.Attribute(value=ast.Name(id="noun"), attr="name"):
            return "noun"
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name.strip("_").lower() or "value"
        case ast.Subscript(slice=ast.Constant(value=str(name))):
            return name
        case ast.Call(func=ast.Name(id="suggest")):
            return "hint"
        case ast.Call(func=ast.Attribute(value=value, attr="removeprefix")):
            return _name(value)
        case ast.Call(args=[*_, last]) if not isinstance(last, ast.Constant):
            return _name(last)
        case ast.Call(func=ast.Attribute(value=value), args=[_, *_]):
            return _name(value)
        case ast.Call(func=value) | ast.Subscript(value=value) | ast.Await(value=value):
            return _name(value)
        case ast.BinOp(left=value) | ast.UnaryOp(operand=value):
            return _name(value)
        case ast.BoolOp(values=[value, *_]) | ast.IfExp(body=value):
            return _name(value)
        case ast.Starred(value=value) | ast.GeneratorExp(elt=value):
            return _name(value)
    return "value"
