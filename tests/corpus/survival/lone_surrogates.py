"""Raises at import an exception whose type name and text hold lone surrogates."""

PRECISION = "ieee"
Odd = type("Odd\ud800Error", (Exception,), {"__module__": "\udfff"})
raise Odd("\ud83d alone \udc00", {"\ud800": "\udfff"})
