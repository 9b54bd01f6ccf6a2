"""Walras: clear a batch of offers among any number of assets at one price each.

Start at :func:`clear`. All offers of a batch trade at the same prices, no offer trades past its limit, and of each asset at least as much is
sold as bought; the code that checks a batch in a venue checks each result, in integers, before you get it. :mod:`walras.light` checks what a venue says of
its batch markets without trusting it.
"""

from walras._clear import Clearing, Offer, Quality, clear

__all__ = ["Clearing", "Offer", "Quality", "clear"]
__version__ = "0.1.0"
