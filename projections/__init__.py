"""Folds over events, the rule matcher and the evolution policy. Pure: the same events always give the same answer."""
