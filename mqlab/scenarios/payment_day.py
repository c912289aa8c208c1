"""Where notebooks look for lab 09's day: it is mqlab.exercises.payment_day."""

from mqlab.exercises.payment_day import AlreadyNotedError, Ledger, LedgerTimeoutError, PaymentDay

__all__ = ["AlreadyNotedError", "Ledger", "LedgerTimeoutError", "PaymentDay"]
