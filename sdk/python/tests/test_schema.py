"""The types of answers are those of the venue's description, and every method has that of the operation which it asks."""

from __future__ import annotations

import inspect
import pathlib
import re
import sys
from types import NoneType
from typing import Any, Literal, Optional, Union, assert_type, get_args, get_origin, get_type_hints, is_typeddict

import pytest

import walras
from walras import batch, schema

FOLDER = pathlib.Path(__file__).parents[1]
sys.path.insert(0, str(FOLDER / "tools"))

import write_schema  # noqa: E402

KEY = "hm_demo.AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8"


def test_the_types_are_those_of_the_description() -> None:
    written = write_schema.sources()
    assert {path.name for path in write_schema.SCHEMA_FOLDER.glob("*.py")} == written.keys()
    for name, text in written.items():
        there = (write_schema.SCHEMA_FOLDER / name).read_text(encoding="utf-8")
        assert there == text, f"{name} is another one: run .venv/bin/python tools/write_schema.py in sdk/python"
    schemas = write_schema.described("openapi.yaml")["components"]["schemas"]
    assert len(schemas) > 150 and all(hasattr(schema, name) for name in schemas)


def fits(value: Any, hint: Any) -> bool:
    """Whether a value is one of a type of ``walras.schema``."""
    if is_typeddict(hint):
        fields = get_type_hints(hint)
        has_fields = isinstance(value, dict) and hint.__required_keys__ <= value.keys() <= fields.keys()
        return has_fields and all(fits(each, fields[name]) for name, each in value.items())
    origin, args = get_origin(hint), get_args(hint)
    if origin is Literal:
        return any(type(value) is type(each) and value == each for each in args)
    if origin is Union:
        return any(fits(value, each) for each in args)
    if origin is list:
        return isinstance(value, list) and all(fits(each, args[0]) for each in value)
    if origin is dict:
        return isinstance(value, dict) and all(fits(each, args[1]) for each in value.values())
    assert hint in (str, int, bool, NoneType), hint
    return type(value) is hint


def test_the_examples_of_the_description_are_of_the_types() -> None:
    openapi, asyncapi = write_schema.described("openapi.yaml"), write_schema.described("asyncapi.yaml")
    answers = write_schema.operations()
    seen = 0
    for path, methods in openapi["paths"].items():
        for method, operation in methods.items():
            content = operation.get("responses", {}).get("200", {}).get("content", {}).get("application/json", {})
            # Probes and pages are no part of the types.
            for name in content.get("examples", {}).values() if path.startswith("/v1/") else []:
                answer = answers[method.upper(), path]
                value = openapi["components"]["examples"][name["$ref"].rpartition("/")[2]]["value"]
                assert fits(value, eval(str(answer), {**vars(schema), "Union": Union})), (path, answer)
                seen += 1
    for message in asyncapi["channels"]["socket"]["messages"].values():
        name = message["payload"]["$ref"].rpartition("/")[2]
        for example in message.get("examples", []):
            assert fits(example["payload"], getattr(schema, name)), (name, example)
            seen += 1
    assert seen > 50
    level = ["30000.5", "0.10", 1]
    book = {"instrument": "BTC/USD", "log_index": "7", "bids": [level], "asks": [], "indicative": None}
    assert fits(book, schema.Book)
    wrongs: list[dict[str, Any]] = [{"bids": [[0.5]]}, {"log_index": 7}, {"more": 1}, {"indicative": {}}]
    for wrong in wrongs:
        assert not fits(book | wrong, schema.Book), wrong
    assert not fits({name: value for name, value in book.items() if name != "asks"}, schema.Book)


class Asked(walras.Client):
    """Notes what is asked, and answers with nothing."""

    def __init__(self) -> None:
        super().__init__(key=KEY)
        self.asked: list[tuple[str, str]] = []

    def request(self, method: str, path: str, body: Any = None, *, signed: bool = True, fresh: bool = False) -> Any:
        self.asked.append((method, path.partition("?")[0]))
        rows = {
            "/v1/batches": {
                "name": "main", "market_id": 0, "domain": "00", "assets": ["USD"], "interval_ms": 50, "collecting_block": "1",
            },
            "/v1/transactions": {"sequence": "5", "status": "cleared"},
        }
        return Nothing(self.asked[-1][1], rows)


class Nothing(dict[str, Any]):
    """An answer whose lists are empty but for the rows that a batch market needs."""

    def __init__(self, path: str, rows: dict[str, Any]) -> None:
        super().__init__()
        self.path, self.rows = path, rows

    def __missing__(self, name: str) -> Any:
        return None if name == "next" else [self.rows[self.path]] if self.path in self.rows else []

    def get(self, name: str, default: Any = None) -> Any:
        return self[name]


def answer_of(method: str, path: str) -> str:
    """The type that the description names for a request."""
    for (other, template), answer in write_schema.operations().items():
        if method == other and re.fullmatch(re.sub(r"\{\w+\}", "[^/]+", template), path):
            assert answer is not None
            return answer
    raise AssertionError(f"{method} {path} is no operation")


#: Arguments of each method, and which part of the answer it gives: nothing for all of it, a field, or with [] the rows of a field.
CLIENT: dict[str, tuple[tuple[Any, ...], str]] = {
    "status": ((), ""),
    "assets": ((), "assets"),
    "instruments": ((), "instruments"),
    "book": (("BTC-USD",), ""),
    "book_orders": (("BTC-USD",), ""),
    "auction": (("BTC-USD",), ""),
    "ticker": (("BTC-USD",), ""),
    "trades": (("BTC-USD",), "trades"),
    "candles": (("BTC-USD",), "candles"),
    "past_trades": (("BTC-USD",), "trades"),
    "past_book": (("BTC-USD",), ""),
    "past_days": ((), ""),
    "account": ((), ""),
    "fills": ((), "fills"),
    "closed_orders": ((), "orders"),
    "order": (("BTC-USD", "a"), ""),
    "reports": ((), "reports"),
    "open_orders": ((), "orders"),
    "submit": (("BTC-USD", "buy", 1, 1), ""),
    "cancel": (("BTC-USD", "a"), ""),
    "amend": (("BTC-USD", "a"), ""),
    "mass_cancel": ((), ""),
    "cancel_after": ((1,), ""),
}
MARKET: dict[str, tuple[tuple[Any, ...], str]] = {
    "status": ((), "batches[]"),
    "blocks": ((), "blocks"),
    "demand": (("BTC", "USD"), ""),
    "pools": ((), "pools"),
    "offers": ((), "offers"),
    "shares": ((), "shares"),
    "transactions": ((), "transactions"),
    "outcome": ((5,), "transactions[]"),
    "wait": ((5,), "transactions[]"),
}


@pytest.mark.parametrize(("kind", "cases"), [(walras.Client, CLIENT), (batch.Market, MARKET)])
def test_a_method_has_the_type_of_the_operation_that_it_asks(kind: type, cases: dict[str, tuple[tuple[Any, ...], str]]) -> None:
    for name, (arguments, part) in cases.items():
        client = Asked()
        of: Any = client if kind is walras.Client else client.batch("main")
        client.asked.clear()
        getattr(of, name)(*arguments)
        # A client without a session is never answered that a command is known.
        answer = answer_of(*client.asked[0]).removeprefix("Union[").removesuffix(", RepeatedAnswer]")
        expected: Any = getattr(schema, answer)
        if part:
            expected = get_type_hints(expected)[part.removesuffix("[]")]
        if part.endswith("[]"):
            (expected,) = get_args(expected)
        found = eval(inspect.signature(getattr(kind, name)).return_annotation, {"schema": schema})
        assert found == expected, f"{kind.__name__}.{name} asks {client.asked[0]}"
    typed = {name for name, method in vars(kind).items() if "schema." in str(getattr(method, "__annotations__", {}).get("return"))}
    assert typed - {"many"} == cases.keys(), "each typed method is looked at"


@pytest.mark.parametrize(("plain", "other"), [(walras.Client, walras.AsyncClient), (batch.Market, batch.AsyncMarket)])
def test_the_same_for_asyncio(plain: type, other: type) -> None:
    awaited = [name for name, method in vars(other).items() if inspect.iscoroutinefunction(method) and not name.startswith("_")]
    shared = [name for name in awaited if name in vars(plain)]
    assert len(shared) > 15
    for name in set(shared) - {"session", "batch", "order_entry"}:
        returned = [inspect.signature(getattr(kind, name)).return_annotation for kind in (plain, other)]
        assert returned[0] == returned[1], name


def known_to_mypy(client: walras.Client, session: walras.Session, stream: walras.Stream) -> None:
    """Is not called: mypy checks it, and complains where a line with an ignored error has none."""
    assert_type(client.status()["ready"], bool)
    assert_type(client.instruments()[0]["last_price"], Optional[str])
    client.status()["redy"]  # type: ignore[typeddict-item]
    client.order("BTC-USD", 1)["side"] == "hold"  # type: ignore[comparison-overlap]
    assert_type(client.submit("BTC-USD", "buy", 1)["fills"][0]["price"], str)
    repeatable = session.submit("BTC-USD", "buy", 1)
    assert_type(repeatable["log_index"], str)
    repeatable["status"]  # type: ignore[typeddict-item]
    if "status" in repeatable:
        assert_type(repeatable, schema.OrderAnswer)
    for answer in client.many([]):
        if not isinstance(answer, walras.Refused) and "cancelled" in answer:
            assert_type(answer["cancelled"], list[schema.CancelledOrder])
    for message in stream:
        if message["type"] == "book":
            assert_type(message["checksum"], int)
        elif message["type"] == "connected":
            assert_type(message["count"], int)
        message["checksum"]  # type: ignore[typeddict-item]
    assert_type(stream.submit("BTC-USD", "buy", 1)["open"], str)
    assert_type(stream.session().submit("BTC-USD", "buy", 1), Union[schema.WsReply, schema.WsRepeatedReply])


async def known_to_mypy_for_asyncio(client: walras.AsyncClient, stream: walras.AsyncStream) -> None:
    """As :func:`known_to_mypy`."""
    assert_type((await client.account())["balances"][0]["available"], str)
    (await client.ticker("BTC-USD"))["best_bit"]  # type: ignore[typeddict-item]
    assert_type((await (await client.batch("main")).pools())[0]["reserves"], list[str])
    async for message in stream:
        if message["type"] == "reports":
            assert_type(message["reports"][0]["report_seq"], str)
    assert_type(await stream.numbered(42, 7).cancel("BTC-USD", 1), Union[schema.WsReply, schema.WsRepeatedReply])
