"""What the service is asked, for programs as OpenAPI and for people as a page that needs nothing from elsewhere."""

from __future__ import annotations

import html
import json
from collections.abc import Sequence
from importlib.metadata import version
from typing import Any

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
_SAMPLES: dict[str, tuple[Any, Any]] = {
    "/context": ({"id": "visit 17", "features": [0.4, 0.1]}, {"received": 1}),
    "/predict": ({"id": "visit 17"}, {"decision_id": 0, "arm": 2}),
    "/reward": ({"decision_id": 0, "reward": 1.0}, {"learned": 1}),
}


def described(owners: Sequence[str], reward_range: tuple[float, float]) -> dict[str, Any]:
    """The document.  owners: roles that have features.  reward_range: where rewards lie."""
    part = _object({"id": _ID, "features": {"type": "array", "items": {"type": "number"}, "minItems": 1}})
    owner = {"type": "integer", "description": "whose part it is, where there are no tokens"}
    reward = {"type": "number", "minimum": reward_range[0], "maximum": reward_range[1]}
    paid = _object({"decision_id": _NUMBER, "reward": reward})
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Masked Bandits", "version": version("masked-bandits"),
            "description": "A bandit policy on secret shares: owners send parts of a context, the puller asks for an "
            "arm, the payer says what it paid.",
        },
        "components": {"securitySchemes": {"token": {"type": "http", "scheme": "bearer"}}},
        "security": [{"token": []}],
        "paths": {
            "/context": _post(
                " or ".join(owners), "a part of a context, or of several",
                {"oneOf": [_with(part, owner=owner), _with(_many("contexts", part), owner=owner)]},
                _object({"received": _NUMBER}), keyed=False,
            ),
            "/predict": _post(
                PULLER, "an arm for a context whose parts are all there, or for several",
                {"oneOf": [_object({"id": _ID}), _many("ids", _ID)]},
                {"oneOf": [_DECISION, _many("decisions", _DECISION)]},
            ),
            "/reward": _post(
                PAYER, "what came of a decision, or of several; learned from and on disk when it is answered",
                {"oneOf": [paid, _many("rewards", paid)]}, _object({"learned": _NUMBER}),
            ),
            "/healthz": _get("anybody", "whether the service serves", "application/json"),
            "/metrics": _get("watcher", "counts and times, for Prometheus", "text/plain"),
            "/ledger": _get("watcher", "who learned what, and how often", "application/json"),
        },
    }  # fmt: skip


def page(document: dict[str, Any]) -> str:
    """A page of the same, as a browser shows it."""
    rows = []
    for path, methods in document["paths"].items():
        for method, said in methods.items():
            sample = _SAMPLES.get(path)
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


def _post(role: str, what: str, body: dict[str, Any], answer: dict[str, Any], *, keyed: bool = True) -> dict[str, Any]:
    key = {
        "name": "Idempotency-Key", "in": "header", "schema": _ID,
        "description": "asked again with the same key and body, the service gives the answer that it gave before",
    }  # fmt: skip
    refused = {status: _answered(said, _object({"error": {"type": "string"}})) for status, said in _REFUSED.items()}
    return {"post": {
        "summary": what, "x-role": role, "parameters": [key] if keyed else [],
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
