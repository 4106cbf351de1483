"""Files of evidence in a store with object lock stay, whatever the host's key tries later.

The store is moto's server (`.tools/store`); the copy is made by the command of the shipped unit.
"""

import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from embedded.environment import PROJECT
from embedded.processes import free_port
from tests.tasks.running import wait_until

pytestmark = pytest.mark.skipif(not shutil.which("rclone"), reason="needs rclone")

DEPLOY = PROJECT / "deploy" / "evidence"
LOCKED = """<ObjectLockConfiguration><ObjectLockEnabled>Enabled</ObjectLockEnabled><Rule>
<DefaultRetention><Mode>COMPLIANCE</Mode><Days>400</Days></DefaultRetention></Rule>
</ObjectLockConfiguration>"""


# moto checks no signature, and refuses requests without one.
KEY = {"Authorization": "AWS4-HMAC-SHA256 Credential=key/20261122/us-east-1/s3/aws4_request"}


@pytest.fixture
def store() -> Iterator[httpx.Client]:
    """Objects of its bucket are locked for 400 days."""
    address = f"http://127.0.0.1:{(port := free_port())}"
    program = PROJECT / ".tools" / "store" / "bin" / "moto_server"
    with subprocess.Popen([program, f"--port={port}"], stderr=subprocess.DEVNULL) as server:

        def answers() -> bool:
            try:
                return httpx.get(address).status_code == 200
            except httpx.TransportError:
                return False

        wait_until(answers, "the store answers")
        with httpx.Client(base_url=f"{address}/voucher-evidence", headers=KEY) as bucket:
            lock = {"x-amz-bucket-object-lock-enabled": "true"}
            bucket.put("", headers=lock).raise_for_status()
            bucket.put("?object-lock", content=LOCKED).raise_for_status()
            bucket.put(f"{address}/unlocked").raise_for_status()
            yield bucket
        server.terminate()


def test_a_file_that_left_the_host_stays_as_it_was(store: httpx.Client, tmp_path: Path) -> None:
    config, folder = tmp_path / "rclone.conf", tmp_path / "evidence"
    shipped = (DEPLOY / "rclone.conf").read_text()
    root = str(store.base_url.copy_with(path="/"))
    config.write_text(shipped.replace("https://s3.example.com", root.rstrip("/")))
    folder.mkdir()
    unit = (DEPLOY / "voucher-evidence.service").read_text().replace("\\\n", " ")
    (copy,) = re.findall(r"^ExecStart=(/usr/bin/rclone .*)$", unit, re.M)
    copy = copy.replace("/usr/bin/", "").replace("%d/rclone_conf", str(config))
    copy = copy.replace("/var/lib/voucher/evidence", str(folder))
    file = folder / "evidence-2026-11-22.log"
    for content in ("as it was\n", "rewritten\n"):
        file.write_text(content)
        subprocess.run(["env", "-u", "AWS_CA_BUNDLE", *copy.split()], check=True)
        assert store.get(file.name).text == "as it was\n"

    (version,) = re.findall(r"<VersionId>(.*?)</VersionId>", store.get("?versions").text)
    stored = f"{file.name}?versionId={version}"
    assert store.delete(stored).status_code == 403
    assert store.delete(file.name).status_code == 204  # hides it, no more
    assert store.get(file.name).status_code == 404
    assert store.get(stored).text == "as it was\n"
    store.put(f"{root}unlocked/{file.name}", content="control").raise_for_status()
    assert store.delete(f"{root}unlocked/{file.name}").status_code == 204
