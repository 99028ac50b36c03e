"""The shop: the records that it sends to the topic of its orders. It knows nothing of sqlmig."""

from __future__ import annotations

import json
from decimal import Decimal
from threading import Event, Thread

from example_project.kafka.broker import Broker

TOPIC = "orders"
Record = tuple[str, str | None]


def order(number: int, customer: int, amount: float, state: str) -> Record:
    """An order, as it is now."""
    words = {"id": number, "customer_id": customer, "amount": amount, "state": state}
    return str(number), json.dumps(words)


def deleted(number: int) -> Record:
    """An order that is no more: its key, without a value."""
    return str(number), None


# Of the customers 1 Ann, 2 Bob, 3 Cid and 4 Dora.
FIRST_ORDERS = (
    order(11, 1, 20.0, "paid"),
    order(12, 1, 30.0, "new"),
    order(13, 2, 12.5, "paid"),
    order(14, 2, 40.0, "shipped"),
    order(15, 3, 8.0, "paid"),
    order(16, 4, 99.0, "shipped"),
)
LATER = (order(12, 1, 30.0, "paid"), deleted(15))


class Eve:
    """Customer 5, who orders all the time while the block lasts, and takes each fifth order back.

    Args:
        kafka: where the shop's topic is.
        every: seconds between two records.
    """

    KEY = "5"

    def __init__(self, kafka: Broker, every: float = 0.25) -> None:
        self._kafka = kafka
        self._every = every
        self._is_over = Event()
        self._thread = Thread(target=self._order, daemon=True)
        self._error: Exception | None = None
        self._records = 0
        self._amounts: dict[int, Decimal] = {}

    def __enter__(self) -> Eve:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._is_over.set()
        self._thread.join()

    def stop(self) -> None:
        """Stop ordering; raises what went wrong meanwhile, if anything did."""
        self.__exit__()
        if self._error is not None:
            raise self._error

    @property
    def records(self) -> int:
        """How many records were sent."""
        return self._records

    @property
    def total(self) -> tuple[int, Decimal]:
        """How many of the orders stand, and what they come to."""
        return len(self._amounts), sum(self._amounts.values(), Decimal(0))

    def _order(self) -> None:
        number = 1000
        try:
            while not self._is_over.wait(self._every):
                number += 1
                if number % 5:
                    amount = number % 7 + 0.5
                    record = order(number, int(self.KEY), amount, "paid")
                    self._amounts[number] = Decimal(str(amount))
                else:
                    del self._amounts[number - 2]
                    record = deleted(number - 2)
                self._kafka.produce(TOPIC, [record])
                self._records += 1
        except Exception as error:
            self._error = error
