"""Nothing that costs money starts past a ceiling: prices, ledger, guard.

>>> from readerkit.budget import BudgetGuard
"""

from readerkit.budget.guarded_run import BudgetGuard, Receipt
from readerkit.budget.ledger import Ledger
from readerkit.budget.money import Job, Price, parse_usd, show_usd
from readerkit.budget.spending_ceiling import Ceilings, Reservation

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
