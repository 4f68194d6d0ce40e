"""What the service is asked, for programs as OpenAPI and for people as a page that needs nothing from elsewhere."""

from __future__ import annotations

import html
import json
from collections.abc import Sequence
from typing import Any

from mpc.net.pages import Page

from ...run.release import release
from ...run.status import JSON
from ..program import PAYER, PULLER

_ID = {"type": "string", "minLength": 1, "maxLength": 128}
_NUMBER = {"type": "integer", "minimum": 0}
_DECISION = {
    "type": "object", "required": ["decision_id", "arm"],
    "properties": {"decision_id": _NUMBER, "arm": {"description": "its name or number"}},
}  # fmt: skip
_REFUSED = {
    "400": "no JSON, or a header that cannot be", "401": "no token, or one that is nobody's", "403": "another's token",
    "404": "no such decision, or a context that lacks a part", "408": "a body that does not come",
    "409": "paid already; or a key, or an id, of something else", "413": "too large", "415": "no application/json",
    "421": "asked by another name than this machine's, without tokens", "422": "a body of another shape or range",
    "429": "too many contexts wait", "503": "too much waits, or the service cannot go on",
}  # fmt: skip
_PART = {"id": "visit 17", "features": [0.4, 0.1]}
_PAID = {"decision_id": 0, "reward": 1.0}
Paths = dict[str, dict[str, Any]]
"""By path and method, what OpenAPI says of it."""


def described(what: str, paths: Paths) -> dict[str, Any]:
    """The document.  what: is asked, in a sentence."""
    return {
        "openapi": "3.1.0",
        "info": {"title": "Masked Bandits", "version": release(), "description": what},
        "components": {"securitySchemes": {"token": {"type": "http", "scheme": "bearer"}}},
        "security": [{"token": []}],
        "paths": paths,
    }


def of_contexts(owners: Sequence[str]) -> Paths:
    """/context.  owners: roles that have features."""
    part = _object({"id": _ID, "features": {"type": "array", "items": {"type": "number"}, "minItems": 1}})
    owner = {"type": "integer", "description": "whose part it is, where there are no tokens"}
    return {"/context": _post(
        " or ".join(owners), "a part of a context, or of several",
        {"oneOf": [_with(part, owner=owner), _with(_many("contexts", part), owner=owner)]},
        _object({"received": _NUMBER}), (_PART, {"received": 1}), keyed=False,
    )}  # fmt: skip


def of_decisions(arm: Any) -> Paths:
    """/predict.  arm: one, as it is called."""
    return {"/predict": _post(
        PULLER, "an arm for a context whose parts are all there, or for several",
        {"oneOf": [_object({"id": _ID}), _many("ids", _ID)]},
        {"oneOf": [_DECISION, _many("decisions", _DECISION)]},
        ({"id": _PART["id"]}, {"decision_id": 0, "arm": arm}),
    )}  # fmt: skip


def of_rewards(within: tuple[float, float], counted: str, what: str) -> Paths:
    """/reward.  within: where rewards lie.  counted: what an answer calls their number; what: became of them then."""
    reward = {"type": "number", "minimum": within[0], "maximum": within[1]}
    paid = _object({"decision_id": _NUMBER, "reward": reward})
    return {"/reward": _post(
        PAYER, f"what came of a decision, or of several; {what} when it is answered",
        {"oneOf": [paid, _many("rewards", paid)]}, _object({counted: _NUMBER}), (_PAID, {counted: 1}),
    )}  # fmt: skip


def of_health() -> Paths:
    """/healthz."""
    return {"/healthz": _get("anybody", "whether the service serves", "application/json")}


def of_metrics(role: str) -> Paths:
    """/metrics.  role: who may look."""
    return {"/metrics": _get(role, "counts and times, for Prometheus", "text/plain")}


def of_ledger(role: str) -> Paths:
    """/ledger.  role: who may look."""
    return {"/ledger": _get(role, "who learned what, and how often", "application/json")}


def pages_of(document: dict[str, Any]) -> dict[str, Page]:
    """Where the document is."""
    return {
        "/openapi.json": lambda: (200, JSON, json.dumps(document, indent=1) + "\n"),
        "/docs": lambda: (200, "text/html; charset=utf-8", page(document)),
    }


def page(document: dict[str, Any]) -> str:
    """A page of the same, as a browser shows it."""
    rows = []
    for path, methods in document["paths"].items():
        for method, said in methods.items():
            sample = said.get("x-sample")
            shown = "" if sample is None else f"<pre>{_json(sample[0])}\n-> {_json(sample[1])}</pre>"
            rows.append(
                f"<h2>{method.upper()} {html.escape(path)}</h2><p>{html.escape(said['summary'])}. "
                f"Who asks: {html.escape(said['x-role'])}.</p>{shown}"
            )
    refused = "".join(f"<li>{status}: {html.escape(what)}</li>" for status, what in _REFUSED.items())
    return (
        "<!doctype html><html lang='en'><meta charset='utf-8'><title>Masked Bandits</title>"
        "<style>body{font-family:sans-serif;max-width:46em;margin:2em auto}pre{background:#eee;padding:.6em}</style>"
        f"<h1>Masked Bandits</h1><p>{html.escape(document['info']['description'])} "
        "Every request says <code>Authorization: Bearer TOKEN</code>, with the token of its role. "
        "<a href='openapi.json'>openapi.json</a> is the same for programs.</p>"
        f"{''.join(rows)}<h2>What is refused</h2><p>A body {{&quot;error&quot;: &quot;...&quot;}} says what to change; "
        f"where a Retry-After is given, nothing is to be changed.</p><ul>{refused}</ul></html>\n"
    )


def _json(value: Any) -> str:
    return html.escape(json.dumps(value))


def _object(properties: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "object", "required": list(properties), "additionalProperties": False, "properties": properties,
    }  # fmt: skip


def _many(name: str, item: dict[str, Any]) -> dict[str, Any]:
    return _object({name: {"type": "array", "minItems": 1, "maxItems": 1024, "items": item}})


def _with(schema: dict[str, Any], **optional: Any) -> dict[str, Any]:
    return {**schema, "properties": {**schema["properties"], **optional}}


def _post(
    role: str, what: str, body: dict[str, Any], answer: dict[str, Any], sample: tuple[Any, Any], *, keyed: bool = True
) -> dict[str, Any]:  # fmt: skip
    key = {
        "name": "Idempotency-Key", "in": "header", "schema": _ID,
        "description": "asked again with the same key and body, the service gives the answer that it gave before",
    }  # fmt: skip
    refused = {status: _answered(said, _object({"error": {"type": "string"}})) for status, said in _REFUSED.items()}
    return {"post": {
        "summary": what, "x-role": role, "x-sample": sample, "parameters": [key] if keyed else [],
        "requestBody": {"required": True, "content": {"application/json": {"schema": body}}},
        "responses": {"200": _answered("done", answer), **refused},
    }}  # fmt: skip


def _get(role: str, what: str, kind: str) -> dict[str, Any]:
    return {"get": {
        "summary": what, "x-role": role, **({"security": []} if role == "anybody" else {}),
        "responses": {"200": {"description": "as it stands now", "content": {kind: {}}}},
    }}  # fmt: skip


def _answered(said: str, schema: dict[str, Any]) -> dict[str, Any]:
    return {"description": said, "content": {"application/json": {"schema": schema}}}
