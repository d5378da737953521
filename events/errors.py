"""The errors of gpusolver: one root, four children. Failed kernels, verdicts and findings are values, never errors."""

from __future__ import annotations


class GpuSolverError(Exception):
    """Root of every error that a user is meant to read: what, where, expected, found, what to do."""


class BadInput(GpuSolverError):
    """The user's request or file cannot be used as it is."""


class ConcurrencyConflict(GpuSolverError):
    """Another writer holds the ledger, or the stream is not at the expected version."""


class UnreadableLedger(GpuSolverError):
    """The file is no ledger, is damaged, is newer than this code, or cannot be read whole."""


class ToolFailed(GpuSolverError):
    """A GPU, driver, profiler or worker did not do what was asked of it."""
