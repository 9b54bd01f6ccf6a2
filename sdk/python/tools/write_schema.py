"""Writes walras/schema, the types of the venue's messages, from edge/api/openapi.yaml and edge/api/asyncapi.yaml.

    .venv/bin/python tools/write_schema.py          in sdk/python

It knows the words of JSON Schema that the description uses, and stops at any other. tests/test_schema.py compares what it writes with
what is there.
"""

from __future__ import annotations

import functools
import keyword
import pathlib
import re
import textwrap
from collections.abc import Iterable
from typing import Any

import yaml

Json = dict[str, Any]

FOLDER = pathlib.Path(__file__).parents[1]
API = FOLDER.parents[1] / "edge" / "api"
#: Where the results are kept.
SCHEMA_FOLDER = FOLDER / "walras" / "schema"
COLUMNS = 120
METHODS = {"get", "post", "put", "patch", "delete"}
_REF = re.compile(r"(?:/openapi\.yaml)?#/components/schemas/(\w+)")
#: Words that say nothing of a type.
_SILENT = {"description", "default", "format", "minimum", "maximum", "example"}
_KNOWN = {"$ref", "oneOf", "enum", "type", "properties", "required", "additionalProperties", "items", "prefixItems", "minItems", "maxItems"}
#: Which file a schema is in: the first whose pattern fits its name. A file may use names of those after it, as `_imports` checks.
_OPERATORS = (
    "Admin|AccountKey|AccountRequest|AccountAnswer|AccountStatusRequest|AddReplica|Asset(Request|Answer)|BindingLimits|Accounts|Done|Engine"
    "|Fault|Fees|Instrument(Request|Answer|Shard)|Issuer|Key|Limits|Operator|PhaseRequest|Replica|Snapshot|Transfer|Delivered"
)
_MACHINES = (
    "Clock|Cluster|Relay|Layer|FairAccess|StampClock|Gateway|Sequencer|Release|Latency|Stage|Readiness|PathFaults|Shard"
)
FILES: dict[str, str] = {
    "socket": "Ws",
    "batches": "Batch|Pool|Offer|Transaction|AccountFee$",
    "operators": _OPERATORS,
    "machines": _MACHINES,
    "trading": ".",
}
_HEAD = '''"""{what}

Written by tools/write_schema.py from edge/api/openapi.yaml and edge/api/asyncapi.yaml; a test compares them. Quantities are
decimal strings, times and 64-bit ids strings of digits.
"""
'''
_WHAT = {
    "socket": "What goes over the WebSocket (docs/websocket.md).",
    "batches": "Batch markets: blocks, offers, pools, transactions, proofs (docs/batch-markets.md).",
    "operators": "What operators ask and are answered (docs/operations.md).",
    "machines": "Clocks, replicas, relays, shards and latency.",
    "trading": "Instruments, books, orders, accounts and sessions (docs/rest.md).",
}


class _Loader(yaml.SafeLoader):
    """YAML 1.2: ``off`` and ``no`` are texts, and so is what looks like a date."""

    yaml_implicit_resolvers: dict[str, Any] = {}


for _tag, _pattern, _first in [
    ("bool", r"true|false", "tf"),
    ("int", r"[-+]?[0-9]+", "-+0123456789"),
    ("float", r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?", "-+.0123456789"),
    ("null", r"null|~|", "n~"),
]:
    # What is empty is null too.
    _begins = [*_first, ""] if _tag == "null" else list(_first)
    _Loader.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", re.compile(f"^(?:{_pattern})$"), _begins)


@functools.cache
def described(name: str) -> Json:
    """A file of the description."""
    found: Json = yaml.load((API / name).read_text(encoding="utf-8"), _Loader)
    return found


def sources() -> dict[str, str]:
    """The files of walras/schema, by name."""
    schemas = named(described("openapi.yaml")["components"]["schemas"])
    homes = {name: next(file for file, names in FILES.items() if re.match(names, name)) for name in schemas}
    texts = {f"{file}.py": _file(file, schemas, homes) for file in FILES}
    lines = [f"from walras.schema.{file} import *  # noqa: F403\n" for file in sorted(FILES)]
    texts["__init__.py"] = _HEAD.format(what=_ALL) + "\n" + "".join(lines)
    return texts


def named(schemas: Json) -> Json:
    """The schemas, and those of objects that stand inside others, which get a name of their own: a class has no fields in a field."""
    all_of: Json = {}

    def take_out(schema: Json, name: str) -> Json:
        if schema.get("type") == "array" and "items" in schema:
            return {**schema, "items": take_out(schema["items"], name.removesuffix("s"))}
        if schema.get("type") != "object" or "properties" not in schema:
            return schema
        if name in schemas or name in all_of:
            raise ValueError(f"{name}: there are two of that name")
        all_of[name] = schema
        return {"$ref": f"#/components/schemas/{name}"}

    for name, schema in schemas.items():
        fields = {field: take_out(each, name + field.title().replace("_", "")) for field, each in schema.get("properties", {}).items()}
        all_of[name] = {**schema, "properties": fields} if fields else schema
    return all_of


_ALL = """The types of the venue's messages: each answer of REST and each message of the WebSocket as a ``TypedDict``.

They are for type checkers and editors. At run time an answer is the ``dict`` that the JSON is. A field that may be absent is of a class
with ``total=False``; one that may be null is ``Optional``. An array of fixed length is a ``list``, whose places the comment names.
No answer has other fields than these, so ``"status" in answer`` says which of several types it is."""


def _file(file: str, schemas: Json, homes: dict[str, str]) -> str:
    own = {name: schemas[name] for name, home in homes.items() if home == file}
    parts = _in_order({name: _declaration(name, schema) for name, schema in own.items()})
    names = list(own)
    if file == "socket":
        for name, what, operation in [
            ("SocketRequest", "What a client sends over the WebSocket.", "ask"),
            ("SocketMessage", "What the venue sends over it.", "tell"),
        ]:
            parts.append(_comment(what) + _alias(name, _union(_socket(operation))))
            names.append(name)
    # Two empty lines follow a class.
    is_class = [_is_class(part) for part in parts]
    code = "".join(("\n" if after and not this else "") + part for part, this, after in zip(parts, is_class, [False, *is_class]))
    lines = [_HEAD.format(what=_WHAT[file]), "from __future__ import annotations\n", *_imports(file, code, homes)]
    lines.append("__all__ = [\n" + _filled(f'"{name}"' for name in sorted(names)) + "]\n")
    return "\n".join(lines) + code


def _imports(file: str, code: str, homes: dict[str, str]) -> list[str]:
    words = set(re.findall(r"\b[A-Z]\w+\b", re.sub(r'"""[^"]*"""|"[^"]*"|#.*', "", code)))
    typing = sorted(words & {"Literal", "Optional", "TypedDict", "Union"}) + ["final"]
    groups = [f"from typing import {', '.join(typing)}\n"]
    own = ""
    for other in sorted(FILES):
        names = sorted(name for name, home in homes.items() if home == other != file and name in words)
        if names and list(FILES).index(other) < list(FILES).index(file):
            raise ValueError(f"{file}.py uses {', '.join(names)} of {other}.py, which uses this file: put them elsewhere")
        if names:
            one = f"from walras.schema.{other} import {', '.join(names)}\n"
            own += one if len(one) <= COLUMNS else f"from walras.schema.{other} import (\n" + _filled(names) + ")\n"
    return groups + ([own] if own else [])


def _filled(names: Iterable[str]) -> str:
    """A list over several lines."""
    return textwrap.fill(", ".join(names) + ",", COLUMNS, initial_indent="    ", subsequent_indent="    ") + "\n"


def _in_order(texts: dict[str, str]) -> list[str]:
    """A class may name what comes later; the right side of an assignment may not."""
    done: dict[str, str] = {}
    waiting = dict(texts)
    while waiting:
        ready = [name for name, text in waiting.items() if _is_class(text) or not _needs(name, text) & waiting.keys()]
        if not ready:
            raise ValueError(f"{', '.join(waiting)}: each needs another one")
        for name in ready:
            done[name] = waiting.pop(name)
    return list(done.values())


def _is_class(text: str) -> bool:
    return text.lstrip("\n").startswith(("class", "@final"))


def _needs(name: str, text: str) -> set[str]:
    code = re.sub(r'"[^"]*"|#.*', "", text)
    return set(re.findall(r"\b[A-Z]\w+\b", code)) - {name}


def _declaration(name: str, schema: Json) -> str:
    is_class = schema.get("type") == "object" and "properties" in schema
    if not is_class:
        return _comment(schema.get("description")) + _alias(name, type_of(schema, name))
    if schema.get("additionalProperties") is not False:
        raise ValueError(f"{name}: additionalProperties is false")
    _check(schema, name)
    needed = set(schema.get("required", []))
    fields: Json = schema["properties"]
    if unknown := needed - fields.keys():
        raise ValueError(f"{name}: requires {', '.join(sorted(unknown))}, which it does not have")
    own = {field: what for field, what in fields.items() if field in needed}
    optional = {field: what for field, what in fields.items() if field not in needed}
    text = _docstring(schema.get("description"))
    if not fields:
        return f"\n\n@final\nclass {name}(TypedDict):\n{text or '    pass' + chr(10)}"
    if not optional:
        return f"\n\n@final\nclass {name}(TypedDict):\n{text}{_fields(name, own)}"
    if not own:
        return f"\n\n@final\nclass {name}(TypedDict, total=False):\n{text}{_fields(name, optional)}"
    base = f"\n\nclass _{name}(TypedDict):\n{_fields(name, own)}"
    return f"{base}\n\n@final\nclass {name}(_{name}, total=False):\n{text}{_fields(name, optional)}"


def _fields(name: str, fields: Json) -> str:
    lines = []
    for field, what in fields.items():
        if keyword.iskeyword(field) or not field.isidentifier():
            raise ValueError(f"{name}.{field}: no name of a field in Python")
        lines.append(_comment(what.get("description"), "    ") + _laid_out(f"    {field}: ", type_of(what, f"{name}.{field}")))
    return "".join(lines)


def _alias(name: str, is_what: str) -> str:
    return _laid_out(f"{name} = ", is_what)


def _laid_out(begin: str, is_what: str) -> str:
    """On one line, or each part of a type on one of its own."""
    line = f"{begin}{is_what}\n"
    if len(line) <= COLUMNS:
        return line
    indent = " " * (len(begin) - len(begin.lstrip()))
    head, _, rest = is_what.partition("[")
    return f"{begin}{head}[\n" + "".join(f"{indent}    {each},\n" for each in _split(rest[:-1])) + f"{indent}]\n"


def _split(listed: str) -> list[str]:
    """At the commas that are in no brackets."""
    parts, depth = [""], 0
    for at in listed:
        depth += (at == "[") - (at == "]")
        if at == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += at
    return [part.strip() for part in parts]


def _check(schema: Json, place: str) -> None:
    if unknown := schema.keys() - _KNOWN - _SILENT:
        raise ValueError(f"{place}: tools/write_schema.py does not know {', '.join(sorted(unknown))}")


def type_of(schema: Json, place: str) -> str:
    """A schema as a type of Python."""
    _check(schema, place)
    if "$ref" in schema:
        return _name_of(schema["$ref"], place)
    if "oneOf" in schema:
        return _union([type_of(each, place) for each in schema["oneOf"]])
    if "enum" in schema:
        return _union([_literal(each) for each in schema["enum"]])
    types = schema.get("type")
    return _union([_basic(name, schema, place) for name in (types if isinstance(types, list) else [types])])


def _literal(value: str | bool | int | None) -> str:
    if value is None:
        return "None"
    return f'Literal["{value}"]' if isinstance(value, str) else f"Literal[{value!r}]"


def _union(types: list[str]) -> str:
    """Of types, each once: literals together, ``None`` as ``Optional``."""
    each = list(dict.fromkeys(types))
    literals = [type[len("Literal[") : -1] for type in each if type.startswith("Literal[")]
    others = [type for type in each if not type.startswith("Literal[") and type != "None"]
    if literals:
        others.insert(0, f"Literal[{', '.join(literals)}]")
    one = others[0] if len(others) == 1 else f"Union[{', '.join(others)}]" if others else "None"
    return f"Optional[{one}]" if "None" in each and others else one


def _name_of(ref: str, place: str) -> str:
    found = _REF.fullmatch(ref)
    if found is None:
        raise ValueError(f"{place}: {ref!r} names no schema")
    return found[1]


def _basic(name: str | None, schema: Json, place: str) -> str:
    simple = {"string": "str", "boolean": "bool", "null": "None", "integer": "int"}
    if name in simple:
        return simple[name]
    if name == "array":
        return f"list[{_item(schema, place)}]"
    if name == "object":
        more = schema.get("additionalProperties")
        if "properties" in schema or not isinstance(more, dict):
            raise ValueError(f"{place}: an object without fields of its own says what each of its values is")
        return f"dict[str, {type_of(more, place)}]"
    raise ValueError(f"{place}: tools/write_schema.py does not know the type {name!r}")


def _item(schema: Json, place: str) -> str:
    if "prefixItems" not in schema:
        return type_of(schema["items"], place)
    places = schema["prefixItems"]
    if not schema.get("minItems") == schema.get("maxItems") == len(places):
        raise ValueError(f"{place}: minItems and maxItems are the number of prefixItems")
    # JSON's arrays are lists; a list of Python's has one type for all its places.
    types = [type_of(each, place) for each in places]
    return "str" if "str" in types and all(type in ("str", "Side") for type in types) else _union(types)


def _wrapped(text: str, width: int) -> list[str]:
    return textwrap.wrap(text.replace("\\", "\\\\"), width, break_long_words=False, break_on_hyphens=False)


def _comment(text: str | None, indent: str = "") -> str:
    """A description as comments, before what it is of."""
    lines = _wrapped(text, COLUMNS - len(indent) - 3) if text else []
    gap = "\n" if not indent else ""
    return gap + "".join(f"{indent}#: {line}\n" for line in lines)


def _docstring(text: str | None) -> str:
    if not text:
        return ""
    lines = _wrapped(text, COLUMNS - 4)
    if len(lines) == 1 and len(lines[0]) <= COLUMNS - 10:
        return f'    """{lines[0]}"""\n\n'
    return '    """' + "\n    ".join(_wrapped(text, COLUMNS - 7)) + '\n    """\n\n'


def _socket(operation: str) -> list[str]:
    """What goes over the WebSocket one way, as the AsyncAPI document lists it."""
    asyncapi = described("asyncapi.yaml")
    messages = asyncapi["channels"]["socket"]["messages"]
    named = [each["$ref"].rpartition("/")[2] for each in asyncapi["operations"][operation]["messages"]]
    return [_name_of(messages[name]["payload"]["$ref"], f"asyncapi.yaml, {name}") for name in named]


def operations() -> dict[tuple[str, str], str | None]:
    """The answer of each operation of REST, by method and path; ``None`` for what is not answered in JSON of a schema."""
    found: dict[tuple[str, str], str | None] = {}
    for path, methods in described("openapi.yaml")["paths"].items():
        for method, operation in methods.items():
            if method in METHODS and path.startswith("/v1/"):
                content = operation["responses"].get("200", {}).get("content", {})
                schema = content.get("application/json", {}).get("schema")
                found[method.upper(), path] = None if schema is None else type_of(schema, path)
    return found


def main() -> None:
    """Writes the files, and removes those that are none of them."""
    SCHEMA_FOLDER.mkdir(exist_ok=True)
    texts = sources()
    for path in SCHEMA_FOLDER.glob("*.py"):
        if path.name not in texts:
            path.unlink()
    for name, text in texts.items():
        (SCHEMA_FOLDER / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
