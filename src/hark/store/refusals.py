"""Why a journal refuses a write, in the same words for every store."""

from hark.protocol.store import JournalConflict, LeaseLost


def lease_lost(session: str) -> LeaseLost:
    """Return the error for a write under a lease that is another's by now."""
    return LeaseLost(f"Session {session!r} is owned by another process now; this one must not write to it again.")


def journal_conflict(session: str, expected: int) -> JournalConflict:
    """Return the error for a write behind an end that is not the end."""
    return JournalConflict(f"The journal of session {session!r} does not have {expected} records. Nothing was written.")
