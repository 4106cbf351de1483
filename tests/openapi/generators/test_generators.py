"""Generators of clients read the document, and what they write compiles and buys.

The Python client of another generator is in tests/openapi/test_generated_client.py.
"""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from embedded.environment import PROJECT
from tests.factories import Merchant, make_merchant, make_product, make_topup_product
from tests.live import LiveServer
from tests.neighbour import ours
from wallets.models import EntryKind, LedgerEntry

pytestmark = [pytest.mark.generators, pytest.mark.django_db(transaction=True)]

HERE = Path(__file__).parent
DOCUMENT = PROJECT / "docs" / "openapi.yaml"
BIN = HERE / "node_modules" / ".bin"
# Its own options of each generator. Go's constants need their prefix: two enums have `PENDING`.
WITH_JAVA: dict[str, dict[str, Any]] = {
    "python": {},
    "php": {},
    "go": {"enumClassPrefix": True},
    "java": {"library": "native", "useJakartaEe": True, "openApiNullable": False},
    "typescript-fetch": {},
}


def run(command: Sequence[str | Path], *, folder: Path, given: Any = None, **variables: str) -> Any:
    done = subprocess.run(
        command,
        cwd=folder,
        env={**os.environ, **variables},
        input=json.dumps(given),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    return done.stdout


def jar() -> Path:
    package = find_spec("openapi_generator_cli")
    assert package is not None
    assert package.origin is not None
    return Path(package.origin).with_name("openapi-generator.jar")


@pytest.fixture(scope="module", autouse=True)
def _installed() -> None:
    if not BIN.exists():
        run(["npm", "ci", "--silent"], folder=HERE)


@pytest.fixture(scope="module")
def clients(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the client of each generator."""
    folder = tmp_path_factory.mktemp("clients")
    configurations = []
    for name, options in WITH_JAVA.items():
        path = folder / f"{name}.json"
        settings = {"generatorName": name, "outputDir": str(folder / name)}
        path.write_text(
            json.dumps({**settings, "inputSpec": str(DOCUMENT), "additionalProperties": options})
        )
        configurations.append(str(path))
    batch = ["batch", "--fail-fast", "--threads=2", *configurations]
    run(["java", "-jar", jar(), *batch], folder=folder)
    run(
        [BIN / "openapi-ts", "-i", DOCUMENT, "-o", "hey", "-c", "@hey-api/client-fetch"],
        folder=folder,
    )
    run(
        [BIN / "orval", "--input", DOCUMENT, "--output", "orval.ts", "--client=fetch"],
        folder=folder,
    )
    run([BIN / "openapi-typescript", DOCUMENT, "--output", "types.d.ts"], folder=folder)
    return folder


def test_the_recommended_rules_of_spectral_and_redocly_find_no_error(tmp_path: Path) -> None:
    rules = tmp_path / "rules.yaml"
    rules.write_text('extends: ["spectral:oas"]\n')
    run([BIN / "spectral", "lint", DOCUMENT, "--ruleset", rules], folder=tmp_path)
    run([BIN / "redocly", "lint", "--extends=recommended", DOCUMENT], folder=tmp_path)


def compile_go(clients: Path) -> None:
    package = clients / "go"
    (package / "go.mod").unlink()  # the package that it needs is one of Debian's
    variables = {"GO111MODULE": "off", "GOPATH": "/usr/share/gocode", "GOFLAGS": ""}
    run(["go", "vet", "."], folder=package, GOCACHE=str(clients / "cache"), **variables)


def compile_java(clients: Path) -> None:
    # The generator brings Jackson, which the client needs.
    classes = f"{jar()}:/usr/share/java/jakarta-annotation-api.jar"
    files = sorted((clients / "java" / "src" / "main").rglob("*.java"))
    run(["javac", "-nowarn", "-d", clients / "classes", "-cp", classes, *files], folder=clients)


def compile_php(clients: Path) -> None:
    for file in sorted((clients / "php" / "lib").rglob("*.php")):
        run(["php", "-l", file], folder=clients)


def compile_python(clients: Path) -> None:
    run([sys.executable, "-m", "compileall", "-q", "python/openapi_client"], folder=clients)


def compile_typescript(clients: Path) -> None:
    """All of them at once; hey-api's, with the program that buys, becomes JavaScript."""
    (clients / "buy.ts").write_text((HERE / "buy.ts").read_text())
    options = {
        "strict": True,
        "target": "es2022",
        "module": "commonjs",
        "moduleResolution": "node10",
        "lib": ["es2022", "dom", "dom.iterable"],
        "skipLibCheck": True,
        "types": ["node"],
        "typeRoots": [str(HERE / "node_modules" / "@types")],
        "outDir": "out",
    }
    files = ["buy.ts", "orval.ts", "types.d.ts", "typescript-fetch/index.ts"]
    settings = {"compilerOptions": options, "files": files}
    (clients / "tsconfig.json").write_text(json.dumps(settings))
    run([BIN / "tsc", "--project", "."], folder=clients)


@pytest.mark.parametrize("compile", [compile_go, compile_java, compile_php, compile_python])
def test_a_client_compiles(clients: Path, compile: Callable[[Path], None]) -> None:
    compile(clients)


def make_purchases() -> dict[str, dict[str, Any]]:
    """A purchase of vouchers and one of a top-up, by idempotency key."""
    product, topup_product = make_product(price="9.99", codes=2), make_topup_product(price="4.99")
    return {
        "voucher": {"product_id": product.pk, "quantity": 2},
        "top-up": {
            "delivery_type": "top_up",
            "system_product_id": topup_product.pk,
            "player_id": "0012345",
        },
    }


def given(merchant: Merchant, live: LiveServer, **more: Any) -> dict[str, Any]:
    address = f"{live.base_url}/api/v1"
    purchases = make_purchases()
    return {"baseUrl": address, "apiKey": merchant.key, "purchases": purchases, **more}


def assert_bought(orders: list[dict[str, Any]]) -> None:
    """What the client returned is what was debited, with the codes and the player id."""
    voucher, topup = orders
    assert len(voucher["codes"]) == 2
    assert (topup["player_id"], topup["failure_reason"]) == ("0012345", None)
    purchases = ours(LedgerEntry).filter(kind=EntryKind.PURCHASE).order_by("pk")
    debited = [(entry.order_reference, float(-entry.amount)) for entry in purchases]
    assert debited == [(order["reference"], order["total_price"]) for order in orders]


def test_the_php_client_buys(live: LiveServer, clients: Path) -> None:
    merchant = make_merchant()
    program = given(merchant, live, client=str(clients / "php"))
    assert_bought(json.loads(run(["php", HERE / "buy.php"], folder=clients, given=program)))


def test_the_typescript_clients_compile_and_buy(live: LiveServer, clients: Path) -> None:
    compile_typescript(clients)
    merchant = make_merchant()
    printed = run(["node", "out/buy.js"], folder=clients, given=given(merchant, live))
    assert_bought(json.loads(printed))


def test_the_python_client_buys(live: LiveServer, clients: Path) -> None:
    merchant = make_merchant()
    printed = run(
        [sys.executable, HERE / "buy_with_client.py"],
        folder=clients,
        given=given(merchant, live),
        PYTHONPATH=str(clients / "python"),
    )
    assert_bought(json.loads(printed))
