"""The types of the venue's messages: each answer of REST and each message of the WebSocket as a ``TypedDict``.

They are for type checkers and editors. At run time an answer is the ``dict`` that the JSON is. A field that may be absent is of a class
with ``total=False``; one that may be null is ``Optional``. An array of fixed length is a ``list``, whose places the comment names.
No answer has other fields than these, so ``"status" in answer`` says which of several types it is.

Written by tools/write_schema.py from edge/api/openapi.yaml and edge/api/asyncapi.yaml; a test compares them. Quantities are
decimal strings, times and 64-bit ids strings of digits.
"""

from walras.schema.batches import *  # noqa: F403
from walras.schema.machines import *  # noqa: F403
from walras.schema.operators import *  # noqa: F403
from walras.schema.socket import *  # noqa: F403
from walras.schema.trading import *  # noqa: F403
