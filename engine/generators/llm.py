"""The `llm` generator: any OpenAI-compatible model rewrites the source by the prescription. It judges nothing, and its key is kept nowhere."""

from __future__ import annotations

import time
from collections.abc import Callable

import msgspec

from ...events.artifacts import digest
from ...events.model import Exchange
from .base import Answer, Asked, Candidate
from .blocks import read_answer
from .endpoint import Endpoint, Reply, Settings, settings, shown_url
from .prompts import correction, messages

ANSWERS = 3
"""Answers asked for in one proposal; a truncated one is asked for again with twice the tokens."""


class LlmGenerator:
    """Serves every prescription: what it makes of one, the gate and the measurement tell."""

    name = "llm"

    def __init__(self, asked: Settings | None = None, sleep: Callable[[float], None] = time.sleep) -> None:
        self._settings = asked or settings()
        self._endpoint, self._sleep = Endpoint(self._settings), sleep

    def facts(self) -> dict[str, str]:
        """Model and endpoint."""
        return {"llm_model": self._settings.model, "llm_endpoint": shown_url(self._settings.base_url)}

    def serves(self, asked: Asked) -> bool:
        """Every prescription."""
        return True

    def propose(self, asked: Asked) -> Candidate | None:
        """The source in the model's answer."""
        return self.ask(asked).candidate

    def ask(self, asked: Asked) -> Answer:
        """The source in the model's answer, and every exchange that it took."""
        talk = _Talk(self._settings, self._endpoint, self._sleep, messages(asked))
        for _ in range(ANSWERS):
            reply = talk.answer()
            if reply.text is None:
                return talk.end("unavailable", f"{reply.fault} after {len(talk.exchanges)} requests: {reply.words}")
            if talk.status == "code":
                return talk.end("made", f"{self._settings.model}", read_answer(reply.text)[1])
            if talk.status == "refused":
                break
            talk.go_on(reply.text)
        return talk.end("no_answer", f"{talk.status}, {len(talk.exchanges)} requests")


class _Talk:
    """One proposal's conversation, its exchanges and their artifacts."""

    def __init__(
        self, asked: Settings, endpoint: Endpoint, sleep: Callable[[float], None], first: list[dict[str, str]]
    ) -> None:
        self._settings, self._endpoint, self._sleep, self._messages = asked, endpoint, sleep, first
        self._max_tokens, self._found = asked.max_tokens, ""
        self._artifacts: list[tuple[str, bytes]] = []
        self.status = ""
        self.exchanges: list[Exchange] = []

    def answer(self) -> Reply:
        """The next answer, asked for again after a passing fault, as the endpoint demands; without a text where it gives none."""
        wait, number = 0.0, 0
        while True:
            reply = self._endpoint.request(self._messages, self._max_tokens)
            self._keep(reply, wait)
            wait = 2.0**number if reply.retry_after_s is None else reply.retry_after_s
            number += 1
            if reply.text is not None or not reply.passing or number >= self._settings.tries:
                return reply
            if wait > self._settings.longest_wait_s:
                words = f"{reply.words} (it asks to wait for {wait:.0f} s)"
                return msgspec.structs.replace(reply, words=words)
            self._sleep(wait)

    def go_on(self, text: str) -> None:
        """What to ask for after an answer with nothing to try: a truncated one anew with more room, another with a word on what lacks."""
        if self.status == "truncated":
            self._max_tokens *= 2
            return
        said = correction(self.status, self._found)
        self._messages += [{"role": "assistant", "content": text}, {"role": "user", "content": said}]

    def end(self, outcome: str, note: str, source: str | None = None) -> Answer:
        """The proposal."""
        return Answer(
            candidate=None if source is None else Candidate(sources=(source,), note=note),
            outcome=outcome,  # type: ignore[arg-type]
            note=note,
            model=self._settings.model,
            exchanges=tuple(self.exchanges),
            artifacts=tuple(self._artifacts),
        )

    def _keep(self, reply: Reply, waited_s: float) -> None:
        asked = {"model": self._settings.model, "max_tokens": self._max_tokens, "messages": self._messages}
        prompt, answer = self._kept("application/json", msgspec.json.encode(asked)), None
        if reply.text is not None:
            answer = self._kept("text/plain", reply.text.encode())
        self.status, self._found = _status(reply)
        exchange = Exchange(
            status=self.status,
            prompt=prompt,
            answer=answer,
            finish=reply.finish,
            waited_s=round(waited_s, 3),
            took_s=reply.took_s,
            prompt_tokens=reply.prompt_tokens,
            completion_tokens=reply.completion_tokens,
            cost_usd=reply.cost_usd,
        )
        self.exchanges.append(exchange)

    def _kept(self, media_type: str, content: bytes) -> str:
        self._artifacts.append((media_type, content))
        return digest(content)


def _status(reply: Reply) -> tuple[str, str]:
    if reply.text is None:
        return reply.fault or "unreachable", ""
    if reply.finish == "length":
        return "truncated", ""
    if reply.finish == "content_filter":
        return "refused", ""
    return read_answer(reply.text)
