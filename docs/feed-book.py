"""Keeps a book by the binary feed and prints its best levels, in ticks (docs/market-data-feed.md). Needs the package of sdk/python, and an
address of one's own in the venue's relay tree: python3 feed-book.py 127.0.0.1:7501 tree.toml 127.0.0.1:7410 INSTRUMENT_ID"""
import sys

from walras import feed

OWN_ADDRESS, TREE_FILE, ASK_ADDRESS, INSTRUMENT_ID = sys.argv[1:]
channel = feed.by_level(int(INSTRUMENT_ID))  # by_order has every order, top the best levels alone
with feed.Feed(OWN_ADDRESS, TREE_FILE, [channel], ask=ASK_ADDRESS) as books:
    for message in books:  # each once and in order; what was lost is asked for
        levels = books.levels(channel, 1)
        if levels is not None:
            print(*(side[0][0] if side else "-" for side in levels), flush=True)
