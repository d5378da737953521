"""The generators: what rewrites a kernel by a rule's prescription. None of them measures, judges or writes to a ledger."""
