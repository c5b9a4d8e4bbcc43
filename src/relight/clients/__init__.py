"""How to talk to the outside: schedulers, log stores, the backend. No decision is made here."""
