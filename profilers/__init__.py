"""Raw artifacts -> signals, verdicts, gate outcomes, context. Pure: never opens a ledger, a device, a clock or a process."""
