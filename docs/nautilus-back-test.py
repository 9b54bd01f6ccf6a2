"""Back-tests a strategy of nautilus_trader on a day of a venue's archive that keeps orders in compressed DBN (docs/history.md):
python3 nautilus-back-test.py archive/2026-11-20 BTC/USD. Sizes are in lots, of which the instrument's multiplier says how much one is."""
import json, pathlib, sys
from nautilus_trader.adapters.databento.loaders import DatabentoDataLoader
from nautilus_trader.backtest.engine import BacktestEngine
from nautilus_trader.config import BacktestEngineConfig, LoggingConfig
from nautilus_trader.model import Currency, InstrumentId, Money, Price, Quantity, Symbol
from nautilus_trader.model.enums import AccountType, BookType, OmsType, OrderSide
from nautilus_trader.model.instruments import CurrencyPair
from nautilus_trader.trading.strategy import Strategy

day, symbol = pathlib.Path(sys.argv[1]), sys.argv[2]
[orders] = day.glob(f"{symbol.replace('/', '-')}.*.mbo.dbn.zst")
[spec] = [row for row in json.loads((day / "instruments.json").read_text()) if row["symbol"] == symbol]
BASE, QUOTE, NAME = Currency.from_str(spec["base"]), Currency.from_str(spec["quote"]), InstrumentId.from_str(f"{symbol}.WALRAS")
TICK, LOT, SIZE = Price.from_str(spec["tick"]), Quantity.from_int(1), Quantity.from_str(spec["lot"])

class BuysOnce(Strategy):
    def on_start(self): self.subscribe_order_book_deltas(NAME, book_type=BookType.L3_MBO)
    def on_order_filled(self, event): print("filled", event.last_qty, event.last_px)
    def on_order_book_deltas(self, deltas):
        book = self.cache.order_book(NAME)
        print("book", book.best_bid_price(), book.best_bid_size(), book.best_ask_price(), book.best_ask_size())
        if book.best_bid_price() and not self.cache.orders():
            self.submit_order(self.order_factory.market(NAME, OrderSide.BUY, LOT))

engine = BacktestEngine(BacktestEngineConfig(logging=LoggingConfig(bypass_logging=True)))
engine.add_venue(NAME.venue, OmsType.NETTING, AccountType.MARGIN, [Money(1_000_000, QUOTE)], QUOTE, book_type=BookType.L3_MBO)
engine.add_instrument(CurrencyPair(NAME, Symbol(symbol), BASE, QUOTE, TICK.precision, 0, TICK, LOT, ts_event=0, ts_init=0, multiplier=SIZE))
engine.add_data(DatabentoDataLoader().from_dbn_file(orders, instrument_id=NAME, price_precision=TICK.precision))
engine.add_strategy(BuysOnce())
engine.run()
engine.dispose()
