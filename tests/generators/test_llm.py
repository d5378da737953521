"""The llm generator against a real HTTP server on loopback: what it sends, what it keeps, and what it makes of every kind of answer."""

from __future__ import annotations

import json
import time

import msgspec
import pytest

from gpusolver.engine.fork_client import ForkClient
from gpusolver.engine.generators.base import Answer, Asked
from gpusolver.events.artifacts import digest
from gpusolver.events.errors import BadInput
from gpusolver.problems.contract import load

from .model_server import KEY, ModelServer, Said, serving

pytest.importorskip("openai")

from gpusolver.engine.generators.endpoint import Settings, retry_after, settings
from gpusolver.engine.generators.llm import LlmGenerator

PROBLEM = load("kb_matmul_scalar")
ASKED = Asked(
    problem=PROBLEM,
    contract="fp32-strict",
    prescription="coalesce",
    rule="uncoalesced",
    source=PROBLEM.start,
    signals={"load_eff": 0.4167, "time_us": 221.0},
    failure="uncoalesced: AMBIGUOUS (gate: wrong_result)",
    chip="H200",
)
SOURCE = "import torch\n\ndef run(a, b):\n    return a @ b\n"
GOOD = Said(f"Here it is.\n```python\n{SOURCE}```\n")


def ask(server: ModelServer, waits: list[float] | None = None, **more: float) -> Answer:
    """One proposal; what would be slept is written down."""
    made = Settings(model="loopback", key=KEY, base_url=server.url, **more)  # type: ignore[arg-type]
    answer = LlmGenerator(made, (waits if waits is not None else []).append).ask(ASKED)
    assert KEY not in msgspec.json.encode(answer).decode()
    assert all(KEY.encode() not in content for _, content in answer.artifacts)
    kept = {digest(content) for _, content in answer.artifacts}
    assert all({e.prompt, e.answer} - {None} <= kept for e in answer.exchanges)
    return answer


def statuses(answer: Answer) -> list[str]:
    return [exchange.status for exchange in answer.exchanges]


def test_a_proposal_streamed_with_its_tokens() -> None:
    """The prompt carries signals, rule, prescription, source and last failure; prompt and answer are kept as they went."""
    with serving(GOOD) as server:
        answer = ask(server)
    assert answer.outcome == "made" and answer.candidate is not None and answer.candidate.sources == (SOURCE,)
    (exchange,) = answer.exchanges
    assert (exchange.status, exchange.finish, exchange.prompt_tokens, exchange.completion_tokens) == (
        "code",
        "stop",
        100,
        20,
    )
    assert exchange.cost_usd is None and server.keys == [f"Bearer {KEY}"]
    (sent,) = server.requests
    assert sent["stream"] is True and sent["stream_options"] == {"include_usage": True} and sent["model"] == "loopback"
    said = sent["messages"][1]["content"]
    for part in (
        "load_eff = 0.4167",
        "uncoalesced",
        "coalesce",
        PROBLEM.start.rstrip(),
        ASKED.failure,
        "H200",
        "fp32-strict",
    ):
        assert part in said
    contents = {digest(content): content for _, content in answer.artifacts}
    assert json.loads(contents[exchange.prompt])["messages"] == sent["messages"]
    assert contents[exchange.answer or ""].decode() == GOOD.text


def test_cost_by_the_endpoint_or_by_given_prices() -> None:
    """100 prompt and 20 completion tokens at 2 and 10 USD a million: 0.0002 + 0.0002."""
    with serving(GOOD._replace(usage={"prompt_tokens": 100, "completion_tokens": 20, "cost": 0.125})) as server:
        assert ask(server).exchanges[0].cost_usd == 0.125
    with serving(GOOD) as server:
        assert ask(server, prices=(2.0, 10.0)).exchanges[0].cost_usd == pytest.approx(0.0004)  # type: ignore[arg-type]
    with serving(GOOD._replace(usage=None)) as server:
        exchange = ask(server, prices=(2.0, 10.0)).exchanges[0]  # type: ignore[arg-type]
    assert (exchange.prompt_tokens, exchange.completion_tokens, exchange.cost_usd) == (None, None, None)


def test_b122_several_blocks_are_not_glued() -> None:
    """The last block that defines run, and no prose."""
    text = f"```python\n{SOURCE}```\nor rather\n```python\n# better\n{SOURCE}```\n"
    with serving(Said(text)) as server:
        answer = ask(server)
    assert answer.candidate is not None and answer.candidate.sources == (f"# better\n{SOURCE}",)


def test_b124_a_truncated_answer_is_asked_for_again_with_more_room_and_never_run() -> None:
    """Even a closed block is not taken from an answer that was cut: the room doubles, and the same is asked."""
    cut = Said("```python\n" + "x = 1\n" * 40, finish="length")
    with serving(cut, Said(f"```python\n{SOURCE}```\nand", finish="length"), GOOD) as server:
        answer = ask(server, max_tokens=1000)
    assert statuses(answer) == ["truncated", "truncated", "code"] and answer.outcome == "made"
    assert [request["max_tokens"] for request in server.requests] == [1000, 2000, 4000]
    assert len({json.dumps(request["messages"]) for request in server.requests}) == 1


def test_b124_a_bounded_retry_and_the_tokens_of_each() -> None:
    with serving(Said("", finish="length")) as server:
        answer = ask(server)
    assert (answer.outcome, answer.candidate, statuses(answer)) == ("no_answer", None, ["truncated"] * 3)
    assert [e.completion_tokens for e in answer.exchanges] == [20, 20, 20] and "truncated" in answer.note


def test_b125_prose_is_no_code_and_the_model_is_told_so() -> None:
    with serving(Said("I cannot improve this kernel."), GOOD) as server:
        answer = ask(server)
    assert statuses(answer) == ["no_code", "code"]
    told = server.requests[1]["messages"]
    assert [m["role"] for m in told] == ["system", "user", "assistant", "user"] and "no closed fenced" in told[3][
        "content"
    ]


def test_b125_prose_for_ever_ends_the_proposal() -> None:
    with serving(Said("I cannot improve this kernel.")) as server:
        answer = ask(server)
    assert (answer.outcome, answer.candidate, statuses(answer)) == ("no_answer", None, ["no_code"] * 3)


def test_b127_wrong_names_are_listed_to_the_model() -> None:
    with serving(Said("```python\ndef solve(a, b):\n    return a @ b\n```"), GOOD) as server:
        answer = ask(server)
    assert statuses(answer) == ["wrong_names", "code"]
    assert "found solve" in server.requests[1]["messages"][3]["content"]


def test_b128_a_429_is_waited_for_as_told() -> None:
    """Retry-After 7, then none (two to the number of the try), then a good answer: one proposal, three exchanges."""
    limited = Said(status=429, headers=(("Retry-After", "7"),))
    waits: list[float] = []
    with serving(limited, Said(status=429), GOOD) as server:
        answer = ask(server, waits)
    assert waits == [7.0, 2.0] and statuses(answer) == ["rate_limited", "rate_limited", "code"]
    assert [e.waited_s for e in answer.exchanges] == [0.0, 7.0, 2.0] and answer.outcome == "made"


def test_b128_a_429_for_ever_is_unavailable() -> None:
    waits: list[float] = []
    with serving(Said(status=429)) as server:
        answer = ask(server, waits, tries=4)
    assert (answer.outcome, answer.candidate) == ("unavailable", None)
    assert waits == [1.0, 2.0, 4.0] and len(server.requests) == 4 and "HTTP 429" in answer.note


def test_b128_a_wait_of_an_hour_is_not_slept() -> None:
    waits: list[float] = []
    with serving(Said(status=429, headers=(("Retry-After", "3600"),))) as server:
        answer = ask(server, waits)
    assert answer.outcome == "unavailable" and waits == [] and "3600 s" in answer.note


def test_retry_after_in_all_its_spellings() -> None:
    assert retry_after({"retry-after": "7"}) == 7 and retry_after({"retry-after-ms": "1500"}) == 1.5
    date = "Wed, 21 Oct 2026 07:28:00 GMT"  # 1792567680 seconds of the epoch
    assert retry_after({"retry-after": date}, lambda: 1792567680.0 - 12) == 12
    assert retry_after({"retry-after": date}, lambda: 1792567680.0 + 12) == 0
    assert retry_after({"retry-after": "soon"}) is None and retry_after({}) is None


def test_an_error_of_the_server_passes_one_of_the_request_does_not() -> None:
    """A key in the server's words reaches neither note nor artifact (`ask` looks)."""
    with serving(Said(status=503), GOOD) as server:
        assert statuses(ask(server)) == ["http_error", "code"]
    with serving(Said(status=401)) as server:
        answer = ask(server)
    assert answer.outcome == "unavailable" and len(server.requests) == 1
    assert "HTTP 401" in answer.note and "***" in answer.note


@pytest.mark.parametrize("slow", [Said(GOOD.text, silent_s=1.5), Said(GOOD.text * 4, drip_s=0.1)])
def test_silence_and_dripping_are_time_outs(slow: Said) -> None:
    """The limit is of the whole answer, not of one read."""
    began = time.monotonic()
    with serving(slow, GOOD) as server:
        answer = ask(server, limit_s=0.5)
    assert statuses(answer) == ["timeout", "code"] and time.monotonic() - began < 5
    assert answer.exchanges[0].answer is None


def test_a_stream_that_breaks_off_is_no_answer() -> None:
    """The block is closed, the answer is not: nothing of it is run."""
    with serving(GOOD._replace(cut=True), GOOD) as server:
        answer = ask(server)
    assert statuses(answer) == ["unreachable", "code"]


def test_nobody_at_home() -> None:
    with serving(GOOD) as server:
        url = server.url
    made = Settings(model="m", key=KEY, base_url=url, tries=2)
    answer = LlmGenerator(made, lambda wait: None).ask(ASKED)
    assert answer.outcome == "unavailable" and statuses(answer) == ["unreachable"] * 2


def test_a_refusal_is_not_argued_with() -> None:
    with serving(Said("", finish="content_filter")) as server:
        answer = ask(server)
    assert (answer.outcome, statuses(answer)) == ("no_answer", ["refused"])


def test_an_endpoint_that_knows_the_newer_name_of_the_limit_alone() -> None:
    with serving(GOOD._replace(refuses="max_tokens")) as server:
        assert ask(server, max_tokens=500).outcome == "made"
    assert server.requests[1]["max_completion_tokens"] == 500 and "max_tokens" not in server.requests[1]


def test_settings_come_from_the_environment_and_say_what_is_lacking() -> None:
    found = settings({"OPENAI_MODEL": "m", "OPENAI_BASE_URL": "http://u:pw@host:1/v1?token=x", "OPENAI_API_KEY": KEY})
    shown = LlmGenerator(found).facts()
    assert shown == {"llm_model": "m", "llm_endpoint": "http://host:1/v1"}
    assert KEY not in repr(found) and "pw" not in repr(found)
    for lacking in (
        {},
        {"OPENAI_MODEL": "m"},
        {"OPENAI_MODEL": "m", "OPENAI_BASE_URL": "host/v1"},
        {"OPENAI_MODEL": "m", "OPENAI_API_KEY": KEY, "GPUSOLVER_LLM_LIMIT_S": "soon"},
        {"OPENAI_MODEL": "m", "OPENAI_API_KEY": KEY, "GPUSOLVER_LLM_PRICES": "cheap"},
    ):
        with pytest.raises(BadInput) as caught:
            settings(lacking)
        assert KEY not in str(caught.value)


def test_no_candidate_is_given_the_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    client = ForkClient("cpu")
    try:
        assert KEY not in str(client.environment())
    finally:
        client.close()
