"""One OpenAI-compatible endpoint: a conversation in, a text or a fault out, within limits of time and tries. Never shows its key."""

from __future__ import annotations

import email.utils
import os
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any, Literal
from urllib.parse import urlsplit

import msgspec
import openai

from ...events.errors import BadInput

Fault = Literal["rate_limited", "timeout", "unreachable", "http_error"]
_OPENAI = "https://api.openai.com/v1"


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """Where and whom to ask. `limit_s` bounds one request; `longest_wait_s` what an endpoint may demand between two; prices in USD for a million tokens (prompt, completion)."""

    model: str
    key: str
    base_url: str = _OPENAI
    max_tokens: int = 16_384
    limit_s: float = 600.0
    tries: int = 5
    longest_wait_s: float = 300.0
    prices: tuple[float, float] | None = None

    def __repr__(self) -> str:
        return f"Settings(model={self.model!r}, base_url={shown_url(self.base_url)!r})"


class Reply(msgspec.Struct, frozen=True, kw_only=True):
    """One request's outcome: `text` of the answer, or `fault` with its words. `retry_after_s` is what the endpoint demands."""

    text: str | None = None
    finish: str | None = None
    fault: Fault | None = None
    words: str = ""
    passing: bool = False
    retry_after_s: float | None = None
    took_s: float = 0.0
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    cost_usd: float | None = None


def settings(environment: Mapping[str, str] = os.environ) -> Settings:
    """OPENAI_BASE_URL, OPENAI_MODEL, OPENAI_API_KEY and GPUSOLVER_LLM_{MAX_TOKENS,LIMIT_S,PRICES} as settings; BadInput for what is lacking."""
    base, model = environment.get("OPENAI_BASE_URL") or _OPENAI, environment.get("OPENAI_MODEL", "")
    key = environment.get("OPENAI_API_KEY", "")
    if not model:
        raise BadInput("generator llm: expected a model's name in OPENAI_MODEL, found none")
    if base == _OPENAI and not key:
        raise BadInput(
            f"generator llm: expected a key in OPENAI_API_KEY for {_OPENAI}, or OPENAI_BASE_URL; found neither"
        )
    if urlsplit(base).scheme not in ("http", "https") or not urlsplit(base).hostname:
        raise BadInput(f"OPENAI_BASE_URL: expected http(s)://host/path, found {shown_url(base)!r}")
    return Settings(
        model=model,
        key=key or "none",  # endpoints of one's own ask for none, the client does
        base_url=base,
        max_tokens=int(_number(environment, "GPUSOLVER_LLM_MAX_TOKENS", 16_384)),
        limit_s=_number(environment, "GPUSOLVER_LLM_LIMIT_S", 600.0),
        prices=_prices(environment.get("GPUSOLVER_LLM_PRICES", "")),
    )


def shown_url(url: str) -> str:
    """A URL without the name and password before its host and without its query."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"


def _number(environment: Mapping[str, str], name: str, default: float) -> float:
    text = environment.get(name, "")
    try:
        value = float(text) if text else default
    except ValueError:
        value = 0.0
    if not 0 < value < 1e7:
        raise BadInput(f"{name}: expected a number over 0, found {text!r}")
    return value


def _prices(text: str) -> tuple[float, float] | None:
    if not text:
        return None
    try:
        prompt, completion = (float(word) for word in text.split(","))
    except ValueError:
        raise BadInput(f"GPUSOLVER_LLM_PRICES: expected two numbers, `0.5,2`, found {text!r}") from None
    return prompt, completion


class Endpoint:
    """Asks one endpoint; each request has a limit of its own and is streamed, so that a long answer is no silence."""

    def __init__(self, asked: Settings, clock: Callable[[], float] = time.monotonic) -> None:
        self._settings, self._clock = asked, clock
        self._limit_name = "max_tokens"
        self._client = openai.OpenAI(api_key=asked.key, base_url=asked.base_url, timeout=asked.limit_s, max_retries=0)

    def clean(self, text: str) -> str:
        """Text without the key and without what UTF-8 cannot hold, whoever put it there."""
        for secret in (self._settings.key, urlsplit(self._settings.base_url).password or ""):
            text = text.replace(secret, "***") if len(secret) > 4 else text
        return text.encode("utf-8", "replace").decode()

    def request(self, messages: list[dict[str, str]], max_tokens: int) -> Reply:
        """One request, not repeated."""
        began = self._clock()
        try:
            reply = self._streamed(messages, max_tokens)
        except openai.APIStatusError as error:
            if self._limit_name == "max_tokens" and error.status_code == 400 and "max_completion_tokens" in str(error):
                self._limit_name = "max_completion_tokens"
                return self.request(messages, max_tokens)
            reply = self._refusal(error)
        except _TooLong:
            reply = self._fault("timeout", f"no whole answer within {self._settings.limit_s:g} s")
        except openai.APITimeoutError:
            reply = self._fault("timeout", f"no answer within {self._settings.limit_s:g} s")
        except Exception as error:  # noqa: BLE001 - of the client, its transport, its parser alike: there is no answer
            reply = self._fault("unreachable", f"{type(error).__name__}: {error}: {error.__cause__ or ''}")
        return msgspec.structs.replace(reply, took_s=round(self._clock() - began, 3))

    def _streamed(self, messages: list[dict[str, str]], max_tokens: int) -> Reply:
        words: dict[str, Any] = {"model": self._settings.model, "messages": messages, self._limit_name: max_tokens}
        words |= {"stream": True, "stream_options": {"include_usage": True}}
        stream: Any = self._client.chat.completions.create(**words)
        over = threading.Event()

        def end() -> None:
            over.set()
            stream.close()

        timer = threading.Timer(self._settings.limit_s, end)
        timer.daemon = True
        timer.start()
        text, finish, usage = "", None, None
        try:
            for chunk in stream:
                usage = getattr(chunk, "usage", None) or usage
                for choice in chunk.choices[:1]:
                    text += getattr(choice.delta, "content", None) or ""
                    finish = choice.finish_reason or finish
        except Exception:
            if over.is_set():
                raise _TooLong from None
            raise
        finally:
            timer.cancel()
            stream.close()
        if over.is_set():
            raise _TooLong
        if finish is None:  # the connection ended before the answer did: half a kernel is none
            return self._fault("unreachable", f"the stream ended after {len(text)} characters without a finish_reason")
        return self._answer(text, finish, usage)

    def _answer(self, text: str, finish: str, usage: Any) -> Reply:
        prompt, completion = (_count(usage, name) for name in ("prompt_tokens", "completion_tokens"))
        stated = getattr(usage, "cost", None)
        cost = float(stated) if isinstance(stated, (int, float)) and not isinstance(stated, bool) else None
        if cost is None and self._settings.prices is not None and prompt is not None and completion is not None:
            cost = (prompt * self._settings.prices[0] + completion * self._settings.prices[1]) / 1e6
        return Reply(
            text=self.clean(text),
            finish=finish,
            prompt_tokens=prompt,
            completion_tokens=completion,
            cost_usd=cost,
        )

    def _refusal(self, error: openai.APIStatusError) -> Reply:
        code = error.status_code
        fault: Fault = "rate_limited" if code == 429 else "http_error"
        reply = self._fault(fault, f"HTTP {code}: {error}")
        passing = code in (408, 409, 429) or code >= 500
        return msgspec.structs.replace(reply, passing=passing, retry_after_s=retry_after(error.response.headers))

    def _fault(self, fault: Fault, words: str) -> Reply:
        return Reply(fault=fault, words=self.clean(words)[:1000], passing=fault in ("timeout", "unreachable"))


class _TooLong(Exception):
    """The limit of a request came before the end of its answer."""


def retry_after(headers: Mapping[str, str], now: Callable[[], float] = time.time) -> float | None:
    """Seconds that `retry-after-ms` or `Retry-After` demands (a number of seconds, or a date); None where neither says."""
    try:
        if "retry-after-ms" in headers:
            return max(0.0, float(headers["retry-after-ms"]) / 1000)
        return max(0.0, float(headers["retry-after"])) if "retry-after" in headers else None
    except ValueError:
        pass
    try:
        return max(0.0, email.utils.parsedate_to_datetime(headers.get("retry-after", "")).timestamp() - now())
    except ValueError:
        return None


def _count(usage: Any, name: str) -> int | None:
    value = getattr(usage, name, None)
    return value if type(value) is int and value >= 0 else None
