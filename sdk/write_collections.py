"""Writes the collections for Postman and Bruno from docs/openapi.yaml: `make sdk`."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

SDK = Path(__file__).parent
DOCUMENT = SDK.parent / "docs" / "openapi.yaml"
POSTMAN = SDK / "collections" / "postman.json"
BRUNO = SDK / "collections" / "bruno"
NAME = "Voucher and top-up API"
# Names of examples and parameters, and the variables that take their places.
VARIABLES = {
    "base_url": "http://localhost:8000/api/v1",
    "api_key": "",
    "product": "9001",
    "topup_product": "9001",
    "player": "0012345670",
    "merchant_reference": "steam-10-eu",
    "reference": "",
}


@dataclass(frozen=True)
class Call:
    """One request. `saves` is where its response has a value, and the variable that keeps it."""

    number: int
    name: str
    method: str
    path: str
    status: int
    body: dict[str, Any] | None = None
    saves: tuple[str, str] | None = None

    @property
    def key(self) -> str:
        """The variable with the idempotency key. It lasts until the purchase succeeds, so sending
        the request again after a lost response is a retry."""
        return f"idempotency_key_{self.number}"

    @property
    def text(self) -> str:
        """The body. A variable that is a number has no quotation marks."""
        text = json.dumps(self.body, indent=2)
        for name in ("product", "topup_product"):
            text = text.replace(f'"{{{{{name}}}}}"', f"{{{{{name}}}}}")
        return text


def calls() -> list[Call]:
    """The requests in an order in which they can be sent: reads, purchases, then their order."""
    document = yaml.safe_load(DOCUMENT.read_text())
    found = list(_calls(document))
    found.sort(key=lambda call: (call.path.startswith("/orders"), call.method, "{{" in call.path))
    last = [call for call in found if call.path == "/orders/{{reference}}"]
    ordered = [call for call in found if call not in last] + last
    return [Call(number, *list(vars(call).values())[1:]) for number, call in enumerate(ordered, 1)]


def _calls(document: dict[str, Any]) -> Iterator[Call]:
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            name, upper = operation["summary"], method.upper()
            address = path.replace("/topup-products/{product}", "/topup-products/{{topup_product}}")
            address = address.replace("{product}", "{{product}}")
            address = address.replace("{reference}", "{{reference}}")
            if method == "get":
                yield Call(0, name, upper, address, 200)
                continue
            content = operation["requestBody"]["content"]["application/json"]
            for key, example in content["examples"].items():
                title = example.get("summary", key)
                body = _with_variables(example["value"])
                saves = ("data.reference", "reference")
                yield Call(0, f"Buy: {title}", upper, address, 201, body, saves)


def _with_variables(body: dict[str, Any]) -> dict[str, Any]:
    """The example for the products of the reader's catalogue."""
    names = {
        "product_id": "{{product}}",
        "system_product_id": "{{topup_product}}",
        "player_id": "{{player}}",
        "merchant_reference": "{{merchant_reference}}",
    }
    left_out = ("variation_id", "fields")
    return {name: names.get(name, value) for name, value in body.items() if name not in left_out}


def collection_files() -> dict[Path, str]:
    """The files, and what belongs in them."""
    found = calls()
    return {
        POSTMAN: json.dumps(_postman(found), indent=2) + "\n",
        BRUNO / "bruno.json": json.dumps(
            {"version": "1", "name": NAME, "type": "collection"}, indent=2
        )
        + "\n",
        BRUNO / "environments" / "Service.bru": _environment(),
        **{BRUNO / f"{call.number:02} {_file_name(call)}.bru": _bruno(call) for call in found},
    }


def _file_name(call: Call) -> str:
    return call.name.replace(":", "").replace(",", "")


def _postman(found: list[Call]) -> dict[str, Any]:
    schema = "https://schema.getpostman.com/json/collection/v2.1.0/collection.json"
    bearer = [{"key": "token", "value": "{{api_key}}", "type": "string"}]
    return {
        "info": {"name": NAME, "schema": schema},
        "auth": {"type": "bearer", "bearer": bearer},
        "variable": [{"key": name, "value": value} for name, value in VARIABLES.items()],
        "item": [_postman_item(call) for call in found],
    }


def _postman_item(call: Call) -> dict[str, Any]:
    headers = [{"key": "Accept", "value": "application/json"}]
    request: dict[str, Any] = {
        "method": call.method,
        "header": headers,
        "url": {
            "raw": f"{{{{base_url}}}}{call.path}",
            "host": ["{{base_url}}"],
            "path": call.path.strip("/").split("/"),
        },
    }
    if call.body:
        headers.append({"key": "Idempotency-Key", "value": f"{{{{{call.key}}}}}"})
        headers.append({"key": "Content-Type", "value": "application/json"})
        request["body"] = {"mode": "raw", "raw": call.text}
    lines = [
        f'pm.test("status {call.status}", () => pm.response.to.have.status({call.status}));',
        'pm.test("success", () => pm.expect(pm.response.json().success).to.eql(true));',
    ]
    before = []
    if call.saves:
        place, name = call.saves
        lines += [
            f'pm.collectionVariables.set("{name}", pm.response.json().{place});',
            f'pm.collectionVariables.unset("{call.key}");',
        ]
        before = [
            f'if (!pm.collectionVariables.has("{call.key}")) {{',
            f'  pm.collectionVariables.set("{call.key}", pm.variables.replaceIn("{{{{$guid}}}}"));',
            "}",
        ]
    scripts = [("prerequest", before), ("test", lines)]
    return {
        "name": call.name,
        "request": request,
        "event": [
            {"listen": when, "script": {"type": "text/javascript", "exec": script}}
            for when, script in scripts
            if script
        ],
    }


def _environment() -> str:
    public = [f"  {name}: {value}" for name, value in VARIABLES.items() if name != "api_key"]
    return "\n".join(["vars {", *public, "}", "vars:secret [", "  api_key", "]", ""])


def _bruno(call: Call) -> str:
    method = call.method.lower()
    body = "json" if call.body else "none"
    parts = [
        f"meta {{\n  name: {call.name}\n  type: http\n  seq: {call.number}\n}}",
        f"{method} {{\n  url: {{{{base_url}}}}{call.path}\n  body: {body}\n  auth: bearer\n}}",
        "auth:bearer {\n  token: {{api_key}}\n}",
    ]
    if call.body:
        indented = call.text.replace("\n", "\n  ")
        parts.append(f"headers {{\n  Idempotency-Key: {{{{{call.key}}}}}\n}}")
        parts.append(f"body:json {{\n  {indented}\n}}")
    parts.append(f"assert {{\n  res.status: eq {call.status}\n  res.body.success: eq true\n}}")
    if call.saves:
        place, name = call.saves
        parts.append(
            f"script:pre-request {{\n"
            f'  const {{ v4 }} = require("uuid");\n'
            f'  if (!bru.getVar("{call.key}")) bru.setVar("{call.key}", v4());\n'
            f"}}"
        )
        parts.append(
            f"script:post-response {{\n"
            f"  if (res.status === {call.status}) {{\n"
            f'    bru.setVar("{name}", res.body.{place});\n'
            f'    bru.deleteVar("{call.key}");\n'
            f"  }}\n"
            f"}}"
        )
    return "\n\n".join(parts) + "\n"


if __name__ == "__main__":
    for old in BRUNO.glob("*.bru"):
        old.unlink()
    for file, content in collection_files().items():
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content)
