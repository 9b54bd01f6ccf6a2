"""Sells in a batch market, says what came of it, and proves it against a block's hash; docs/batch-markets.md explains such markets.
Needs the package of sdk/python: python3 batch-offer.py http://127.0.0.1:7070 bot.key main BTC USD 0.1 29000"""

import sys

import walras

url, key, name, sell, buy, amount, price = sys.argv[1:]
market = walras.Client(url, key).batch(name)
print("prices of the last block:", {asset: str(worth) for asset, worth in market.prices().items()})

sent = market.sell(amount, sell, buy, price)  # signed, numbered, and sent until it is answered
print(f"transaction {sent.sequence} is in the batch that becomes block {sent.block}")
came = market.wait(sent.sequence)
if came["status"] == "dropped":
    sys.exit(f"dropped: {came['reason']['message']}")
print(f"sold {came['sold']} {sell} for {came['bought']} {buy}, and {came['standing']} {sell} stand")

# The hash is the venue's own word here: ask another replica, market.block_hash of a client of its own, to trust this one no more.
proven = market.prove_transaction(sent.sequence, sent.block, trusted=market.block_hash)
print(f"proven against block {proven.block.number}, {proven.block.hash.hex()}: {proven.value}")

if sent.sequence in (int(offer["sequence"]) for offer in market.offers()):
    cancelled = market.wait(market.cancel(sent.sequence).sequence)
    print(f"the rest of it: the cancel is {cancelled['status']}")
