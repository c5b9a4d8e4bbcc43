"""Advice: asked for by people and controllers, answered by both."""

from __future__ import annotations

import asyncio
from typing import Annotated

import msgspec
from litestar import get, post, put
from litestar.datastructures import State
from litestar.params import JSONBody, QueryParameter

from relight.clients.backend.answers import Accepted, AdviceAnswer, AdviceHistory, WordSaid
from relight.model.advice import Advice, Approval, ReconciliationStatus
from relight.model.jobs import AttemptKey
from relight.model.records import digest
from relight.model.stimuli import Word
from relight.serve.parameters import (
    AttemptText,
    Cluster,
    Limit,
    PageToken,
    Served,
    read_attempt,
)
from relight.serve.ports import Declined, Ports
from relight.serve.problems import AnyRequest, NotThere, Wrong

LOOK_EVERY_SECONDS = 0.1
LONGEST_TEXT = 2_000
CLAIMED = "(claimed)"
"""Stands behind a person's name in the record: one token serves all, so a name proves nothing."""
STOPPING = "stopping"
"""What the application's state holds when the server is about to end, so that waits end too."""

Active = Annotated[
    bool,
    QueryParameter(description="Only advice that the world may still follow, all of it at once."),
]
Wait = Annotated[
    int, QueryParameter(ge=0, le=60, description="With active=true: seconds to wait for a change.")
]
SeenTag = Annotated[
    str,
    QueryParameter(
        max_length=32,
        description="With wait: the tag of the answer that you have; without one, an empty list.",
    ),
]


@get(
    "/v1/advice",
    summary="List advice",
    description=(
        "Every generation of every advice, the newest first; or with active=true the active "
        "ones, and with wait=seconds only once they differ from the answer with the tag `seen`."
    ),
    opt={"query": ("active", "cluster", "wait", "seen", "limit", "pageToken")},
)
async def list_advice(  # noqa: PLR0913 - a parameter each
    ports: Served,
    request: AnyRequest,
    *,
    active: Active = False,
    cluster: Cluster = "",
    wait: Wait = 0,
    seen: SeenTag = "",
    limit: Limit = 100,
    page_token: PageToken = "",
) -> AdviceAnswer:
    """List advice."""
    if active:
        return await _changed(ports, request.app.state, cluster, wait, seen or _tag(()))
    if wait or seen:
        raise Wrong("wait and seen are for active=true")
    page = await asyncio.to_thread(
        ports.records.advice, cluster=cluster, limit=limit, cursor=page_token
    )
    return AdviceAnswer(advice=page.items, next_page_token=page.next)


async def _changed(ports: Ports, state: State, cluster: str, wait: int, seen: str) -> AdviceAnswer:
    clock = asyncio.get_running_loop().time
    deadline = clock() + wait
    while True:
        advice = await asyncio.to_thread(ports.daemon.active_advice, cluster)
        tag = _tag(advice)
        if tag != seen or clock() >= deadline or state.get(STOPPING):
            return AdviceAnswer(advice=advice, tag=tag)
        await asyncio.sleep(LOOK_EVERY_SECONDS)


def _tag(advice: tuple[Advice, ...]) -> str:
    return digest(*sorted(msgspec.json.encode(one).decode() for one in advice))


@get(
    "/v1/advice/{attempt:str}",
    sync_to_thread=True,
    summary="Show the advice on an attempt",
    description="The advice on one attempt as it is now, and every generation of it.",
)
def show_advice(ports: Served, attempt: AttemptText) -> AdviceHistory:
    """Show the advice on an attempt."""
    generations = _generations(ports, read_attempt(attempt))
    return AdviceHistory(advice=generations[-1], generations=generations)


@put(
    "/v1/advice/{attempt:str}/reconciliation-status",
    sync_to_thread=True,
    status_code=200,
    summary="Tell how far an advice was followed",
    description="For controllers: names the generation that it is about, which must exist.",
    request_max_body_size=64 * 1024,
)
def put_status(
    ports: Served, attempt: AttemptText, data: JSONBody[ReconciliationStatus]
) -> Accepted:
    """Take in how far an advice was followed."""
    key = read_attempt(attempt)
    known = {one.generation for one in _generations(ports, key)}
    if data.generation not in known:
        raise Declined(
            "unknown-generation",
            f"the advice on {attempt} never had a generation {data.generation}",
            "ask for the advice again",
        )
    ports.daemon.reconciliation_status(key, data)
    return Accepted(sentence=f"the status of {attempt} was taken in")


@post(
    "/v1/advice/{attempt:str}/word",
    sync_to_thread=True,
    status_code=200,
    summary="Approve or reject an advice",
    description="For people: says who, why, and which generation was read; it must be the newest.",
    request_max_body_size=64 * 1024,
)
def say_word(ports: Served, attempt: AttemptText, data: JSONBody[WordSaid]) -> Accepted:
    """Take in a person's word."""
    key = read_attempt(attempt)
    _check_said(attempt, data, _generations(ports, key)[-1])
    who = f"{data.who.strip()} {CLAIMED}"
    ports.daemon.person_said(
        key, generation=data.generation, word=data.word, who=who, why=data.why.strip()
    )
    done = "approved" if data.word is Word.APPROVE else "rejected"
    return Accepted(sentence=f"the advice on {attempt} is {done} by {who}")


def _check_said(attempt: str, said: WordSaid, newest: Advice) -> None:
    if not said.who.strip() or len(said.who) + len(said.why) > LONGEST_TEXT:
        raise Wrong(f"say who you are, and why in at most {LONGEST_TEXT} characters")
    if said.generation != newest.generation:
        raise Declined(
            "stale-generation",
            f"the advice on {attempt} has changed: generation {newest.generation} now, "
            f"you read {said.generation}",
            f"read it again: relight why {newest.attempt.job}",
        )
    if newest.approval is not Approval.WAITING or not newest.is_active:
        raise Declined(
            "not-waiting",
            f"the advice on {attempt} does not wait for a person: approval "
            f"{newest.approval.value}, {newest.status.disposition.value}",
            f"read what became of it: relight why {newest.attempt.job}",
        )


def _generations(ports: Ports, attempt: AttemptKey) -> tuple[Advice, ...]:
    generations = ports.records.generations(attempt)
    if not generations:
        raise NotThere(f"there is no advice on {attempt}")
    return generations
