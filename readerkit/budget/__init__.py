"""Nothing that costs money starts past a ceiling: prices, ledger, guard.

>>> from readerkit.budget import BudgetGuard
"""

from readerkit.budget.ceilings import Ceilings, Reservation
from readerkit.budget.guard import BudgetGuard, Receipt
from readerkit.budget.ledger import Ledger
from readerkit.budget.money import Job, Price, parse_usd, show_usd

__all__ = [
    "BudgetGuard",
    "Ceilings",
    "Job",
    "Ledger",
    "Price",
    "Receipt",
    "Reservation",
    "parse_usd",
    "show_usd",
]
