"""Enters an order by binary order entry, cancels it, and prints the execution reports (docs/order-entry.md). Needs the package of
sdk/python: python3 entry-order.py http://127.0.0.1:7070 127.0.0.1:7272 bot.key BTC-USD buy 0.5 29000"""
import asyncio
import sys

import walras

URL, ENTRY, KEY_FILE, INSTRUMENT, SIDE, SIZE, PRICE = sys.argv[1:]
NAME = 77


async def main():
    client = walras.AsyncClient(URL, KEY_FILE)
    async with await client.order_entry(ENTRY, reports=-1) as entry:  # logs on, and connects again by itself
        answer = await entry.submit(INSTRUMENT, SIDE, SIZE, PRICE, NAME)  # in the log, once, whatever fails meanwhile
        print("order", answer.log_index)
        await entry.cancel(INSTRUMENT, NAME)
        async for report in entry.reports():  # numbered without gaps
            print("report", report.report_seq, report.event.kind)
            if report.event.kind in ("cancelled", "filled"):
                break

asyncio.run(main())
