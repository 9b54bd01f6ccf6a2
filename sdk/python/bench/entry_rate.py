"""How many orders a second an asyncio program sends by binary order entry, each answered from the log.

    python sdk/python/bench/entry_rate.py --program target/release/walras [--orders 100000] [--rounds 5]

It starts a venue of its own on the loopback (its log is on disk, in a temporary folder), opens one session, and keeps at most `--window`
orders unanswered. Limit orders in pairs that trade with each other. Every answer is counted: each order must be answered once, in order.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import pathlib
import statistics
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).parent))
sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "tests"))

import venue_process
from venue_rates import machine, refuse_the_extension_of_the_tests

import walras


async def measure(venue: venue_process.Venue, orders: int, window: int) -> tuple[float, list[float]]:
    """Orders a second, and seconds from sending to answer."""
    client = walras.AsyncClient(venue.url, venue.keys[0])
    loop = asyncio.get_running_loop()
    took: list[float] = []
    async with await client.order_entry(venue.addresses[1], window=window) as entry:
        answers = []
        begun = loop.time()
        for number in range(orders):
            if entry.unanswered_count >= window:
                await entry.room()
            sent = loop.time()
            answer = entry.send(0, number & 1, 1 + number // 2 % 7, 60_000 + number // 2 % 11, number + 1, self_trade="allow")
            if number % 50 == 0:
                answer.add_done_callback(lambda _, sent=sent: took.append(loop.time() - sent))
            answers.append(answer)
        done = await asyncio.gather(*answers)
        seconds = loop.time() - begun
        assert [answer.session_seq for answer in done] == list(range(1, orders + 1)) and all(answer.code == 0 for answer in done)
        await entry.send_mass_cancel()
    return orders / seconds, sorted(took)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", required=True)
    parser.add_argument("--orders", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--window", type=int, default=1_024)
    args = parser.parse_args()
    refuse_the_extension_of_the_tests()
    venue_process.PROGRAM = args.program
    report = {**machine(), "orders": args.orders, "window": args.window, "program": args.program}
    with tempfile.TemporaryDirectory() as folder:
        venue = venue_process.Venue(pathlib.Path(folder))
        venue.start()
        try:
            venue.set_up()
            rounds = [asyncio.run(measure(venue, args.orders, args.window)) for _ in range(args.rounds)]
        finally:
            venue.stop()
    rate = statistics.median(rate for rate, _ in rounds)
    p50, p99 = (statistics.median(took[int(len(took) * share)] for _, took in rounds) * 1e3 for share in (0.5, 0.99))
    report.update(orders_per_s=round(rate), p50_ms=round(p50, 2), p99_ms=round(p99, 2), when=time.strftime("%Y-%m-%d"))
    print(f"{rate:,.0f} orders/s, each answered; answer after {p50:.2f} ms (p50), {p99:.2f} ms (p99) with {args.window} unanswered")
    print(json.dumps(report))


if __name__ == "__main__":
    main()
