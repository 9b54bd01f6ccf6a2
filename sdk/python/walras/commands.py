"""Commands as JSON: :meth:`walras.Client.many` sends up to 100 of them in one request, and the stream sends each in a message.

>>> from walras import commands
>>> commands.cancel("BTC-USD", "bid-7")
{'op': 'cancel', 'instrument': 'BTC-USD', 'client_order_id': 'bid-7'}
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from walras._rest import Json, OrderName, OrderTerms, amend_body, name_of, order_body
from walras._venue import Exact

if TYPE_CHECKING:
    from typing_extensions import Unpack


def order(instrument: str, side: str, size: Exact, price: Exact | None = None, **terms: Unpack[OrderTerms]) -> Json:
    """An order for :meth:`Client.many`, with the arguments of :meth:`Client.submit`."""
    return {"op": "order", **order_body(instrument, side, size, price, terms)}


def cancel(instrument: str, client_order_id: OrderName) -> Json:
    """A cancel for :meth:`Client.many`."""
    return {"op": "cancel", "instrument": instrument, "client_order_id": name_of(client_order_id)}


def amend(
    instrument: str,
    client_order_id: OrderName,
    *,
    price: Exact | None = None,
    trigger: Exact | None = None,
    size: Exact | None = None,
) -> Json:
    """An amendment for :meth:`Client.many`."""
    return {"op": "amend", "instrument": instrument, "client_order_id": name_of(client_order_id), **amend_body(price, trigger, size)}


def mass_cancel(instrument: str | None = None, side: str | None = None) -> Json:
    """A mass cancel for :meth:`Client.many`."""
    which = {"instrument": instrument, "side": side}
    return {"op": "mass_cancel"} | {name: value for name, value in which.items() if value is not None}
