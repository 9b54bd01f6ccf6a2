package walras.peer;

import exchange.core2.core.common.MatcherEventType;
import exchange.core2.core.common.MatcherTradeEvent;

/** Counts the fills in the events of a run, as whoever takes a book's output has to read them. */
final class Tally {
    long trades;
    long volume;

    void add(MatcherTradeEvent events) {
        for (MatcherTradeEvent event = events; event != null; event = event.nextEvent) {
            if (event.eventType == MatcherEventType.TRADE) {
                trades++;
                volume += event.size;
            }
        }
    }
}
