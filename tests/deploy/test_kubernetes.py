"""The manifests of deploy/kubernetes are valid, and what they name exists."""

import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

from embedded.environment import PROJECT
from tests.deploy.entry_point import commands

FOLDER = PROJECT / "deploy" / "kubernetes"
BASE, OVERLAY = FOLDER / "base", FOLDER / "overlays" / "example"
VERSION = "1.34"  # and later: the oldest that has every field used here
Manifest = dict[str, Any]


def manifests(folder: Path) -> list[Manifest]:
    files = [path for path in sorted(folder.glob("*.yaml")) if path.name != "kustomization.yaml"]
    return [one for path in files for one in yaml.safe_load_all(path.read_text())]


def kustomization(folder: Path) -> Manifest:
    found: Manifest = yaml.safe_load((folder / "kustomization.yaml").read_text())
    return found


ALL = manifests(BASE)


def of_kind(kind: str, among: list[Manifest] = ALL) -> dict[str, Manifest]:
    return {one["metadata"]["name"]: one for one in among if one["kind"] == kind}


WEB = of_kind("StatefulSet")
WORKLOADS = {**of_kind("Deployment"), **WEB, **of_kind("Job")}
CONTAINERS = [
    (f"{name}/{container['name']}", one["spec"]["template"]["spec"], container)
    for name, one in WORKLOADS.items()
    for container in one["spec"]["template"]["spec"]["containers"]
]
PAGE = (PROJECT / "docs/operate/install-kubernetes.md").read_text()
each_container = pytest.mark.parametrize(
    ("pod", "container"), [row[1:] for row in CONTAINERS], ids=[row[0] for row in CONTAINERS]
)


def probes(container: Manifest) -> Iterator[Manifest]:
    return (container[key] for key in container if key.endswith("Probe"))


def volumes_of(pod: Manifest) -> list[Manifest]:
    """The volumes that each pod gets for itself."""
    (one,) = (one for one in WORKLOADS.values() if one["spec"]["template"]["spec"] is pod)
    claims: list[Manifest] = one["spec"].get("volumeClaimTemplates", [])
    return claims


def selects(selector: Manifest, workload: Manifest) -> bool:
    labels: Manifest = workload["spec"]["template"]["metadata"]["labels"]
    return selector.items() <= labels.items()


@pytest.mark.parametrize("version", [VERSION, kubernetes_validate.latest_version()])
def test_the_manifests_are_valid(version: str) -> None:
    for one in [*ALL, *manifests(OVERLAY)]:
        kubernetes_validate.validate(one, version, strict=True)


def test_the_schemas_refuse_an_unknown_field() -> None:
    wrong = {**of_kind("Service")["voucher-api"], "spec": {"port": 80}}
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(wrong, VERSION, strict=True)


def test_every_file_is_listed() -> None:
    for folder in (BASE, OVERLAY):
        listing = kustomization(folder)
        named = {*listing["resources"], *(one.get("path") for one in listing.get("patches", []))}
        files = {path.name for path in folder.glob("*.yaml")} - {"kustomization.yaml"}
        assert {name for name in named if name and not name.startswith("..")} == files


def test_each_process_of_the_image_has_a_workload() -> None:
    started = {name: one["args"][0] for name, _, one in CONTAINERS}
    assert set(started.values()) == commands().keys() - {"manage"}
    for name, word in started.items():
        assert name in (f"voucher-{word}/{word}", name.partition("/")[0] + "/exporter")


@each_container
def test_a_container_meets_the_restricted_pod_standard(pod: Manifest, container: Manifest) -> None:
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert pod["automountServiceAccountToken"] is False
    assert container["resources"]["requests"].keys() == {"cpu", "memory"}
    assert "memory" in container["resources"]["limits"]


@each_container
def test_what_a_container_names_exists(pod: Manifest, container: Manifest) -> None:
    templates = {volume["metadata"]["name"] for volume in volumes_of(pod)}
    assert container["image"] in {one["name"] for one in kustomization(OVERLAY)["images"]}
    assert container["envFrom"][0]["configMapRef"]["name"] in of_kind("ConfigMap")
    volumes = {volume["name"]: volume for volume in pod["volumes"]}
    mounts = {mount["name"]: mount["mountPath"] for mount in container["volumeMounts"]}
    assert mounts.keys() <= volumes.keys() | templates
    assert {"/tmp", "/run/secrets"} <= set(mounts.values())
    mounted = {one["secret"]["secretName"] for one in volumes.values() if "secret" in one}
    # Only `migrate` knows the password of the owner of the tables.
    owner = {"voucher-owner"} if container["name"] == "migrate" else set()
    assert mounted == {"voucher"} | owner
    for volume in volumes.values():
        if claim := volume.get("persistentVolumeClaim"):
            assert claim["claimName"] in of_kind("PersistentVolumeClaim")
    ports = {port["name"] for port in container.get("ports", [])}
    for probe in probes(container):
        if "httpGet" in probe:
            assert probe["httpGet"]["port"] in ports
        else:
            path = probe["exec"]["command"][1]
            assert (PROJECT / Path(path).relative_to("/app")).is_file()


@pytest.mark.parametrize("folder", [BASE, OVERLAY], ids=["base", "overlay"])
def test_probes_ask_for_a_host_that_is_served(folder: Path) -> None:
    settings = of_kind("ConfigMap", manifests(folder))["voucher"]["data"]
    served = settings["DJANGO_ALLOWED_HOSTS"].split(",")
    for _, _, container in CONTAINERS:
        for probe in probes(container):
            headers = probe.get("httpGet", {}).get("httpHeaders", [])
            assert all(one["value"] in served for one in headers if one["name"] == "Host")


def test_web_pods_are_probed_and_given_time_to_drain() -> None:
    assert WEB.keys() == {"voucher-api", "voucher-pages"}
    for one in WEB.values():
        pod = one["spec"]["template"]["spec"]
        web = pod["containers"][0]
        assert web["readinessProbe"]["httpGet"]["path"] == "/readyz"
        assert web["livenessProbe"]["httpGet"]["path"] == "/healthz"
        waits = web["lifecycle"]["preStop"]["sleep"]["seconds"]
        assert pod["terminationGracePeriodSeconds"] >= waits + 35


@pytest.mark.parametrize("name", WEB)
def test_the_purchase_log_outlives_its_pod(name: str) -> None:
    """Only one pod appends to it, as the mode ReadWriteOnce demands."""
    spec = WEB[name]["spec"]
    web = spec["template"]["spec"]["containers"][0]
    folder = {one["name"]: one["value"] for one in web["env"]}["PURCHASE_LOG_DIR"]
    mounts = {one["mountPath"]: one["name"] for one in web["volumeMounts"]}
    (claim,) = spec["volumeClaimTemplates"]
    assert claim["metadata"]["name"] == mounts[folder]
    assert "persistentVolumeClaimRetentionPolicy" not in spec  # so the volumes are kept
    assert f"cat {folder}/*.log" in PAGE


def test_the_worker_can_write_emails_without_a_mail_server() -> None:
    """The root file system is read-only. The folder is that of compose.yaml, too."""
    pod = WORKLOADS["voucher-worker"]["spec"]["template"]["spec"]
    mounts = {one["mountPath"]: one["name"] for one in pod["containers"][0]["volumeMounts"]}
    volumes = {one["name"]: one for one in pod["volumes"]}
    assert "emptyDir" in volumes[mounts["/app/var/mail"]]


def test_a_restore_ends_pods_without_a_purchase_log_before_merchants_reach_them() -> None:
    restore = PAGE.partition("## Restore")[2]
    steps = re.findall(
        r"PURCHASE_LOG_DIR-$|--replicas=0 .*voucher-pages$|apply --kustomize", restore, re.MULTILINE
    )
    assert [step[:12] for step in steps] == ["PURCHASE_LOG", "--replicas=0", "apply --kust"]


def test_the_page_names_workloads_that_exist() -> None:
    page = PAGE.replace("voucher-$name", "voucher-api")
    named = set(re.findall(r"\b(deployment|statefulset|job)/([a-z-]+)", page))
    assert named <= {(one["kind"].lower(), name) for name, one in WORKLOADS.items()}
    assert len(named) == 7
    pods = set(re.findall(r"(voucher-[a-z]+)-0\b", PAGE))
    assert pods
    assert pods <= WEB.keys()


def test_at_most_one_scheduler_and_one_bot_run() -> None:
    for name in ("voucher-beat", "voucher-bot"):
        assert WORKLOADS[name]["spec"]["replicas"] <= 1
        assert WORKLOADS[name]["spec"]["strategy"] == {"type": "Recreate"}


def test_services_lead_to_ports_of_pods() -> None:
    for name, service in of_kind("Service").items():
        workload = WORKLOADS[name]
        assert selects(service["spec"]["selector"], workload)
        ports = {
            port["name"]
            for container in workload["spec"]["template"]["spec"]["containers"]
            for port in container.get("ports", [])
        }
        assert {port["targetPort"] for port in service["spec"]["ports"]} <= ports


def test_the_ingress_leads_to_services() -> None:
    for ingress in of_kind("Ingress").values():
        for rule in ingress["spec"]["rules"]:
            for path in rule["http"]["paths"]:
                backend = path["backend"]["service"]
                service = of_kind("Service")[backend["name"]]
                assert backend["port"]["name"] in {one["name"] for one in service["spec"]["ports"]}
                api = path["path"] == "/api/"
                assert backend["name"] == ("voucher-api" if api else "voucher-pages")


def test_sign_ins_are_limited() -> None:
    """On the same paths as nginx limits them (deploy/nginx/voucher.conf)."""
    limited = {
        path["path"]
        for ingress in of_kind("Ingress").values()
        if "nginx.ingress.kubernetes.io/limit-rpm" in ingress["metadata"]["annotations"]
        for path in ingress["spec"]["rules"][0]["http"]["paths"]
    }
    nginx = (PROJECT / "deploy/nginx/voucher.conf").read_text()
    locations = re.findall(r"location ~ (\S+) \{\s+limit_req ", nginx)

    assert len(limited) == 5
    assert all(any(re.search(one, path) for one in locations) for path in limited)


def test_the_ingress_keeps_bodies_in_memory() -> None:
    """ingress-nginx writes what its buffer cannot hold to its disk: voucher codes, for example."""
    for name, ingress in of_kind("Ingress").items():
        annotations = {
            key.partition("/")[2]: value
            for key, value in ingress["metadata"]["annotations"].items()
        }
        assert annotations.get("client-body-buffer-size") == annotations["proxy-body-size"], name


@pytest.mark.parametrize(
    "path",
    [
        "/admin/imports/fileimport/upload/codes/",
        "/merchant/references/import/",
    ],
)
def test_proxies_know_the_paths_of_uploaded_files(path: str) -> None:
    (rule,) = of_kind("Ingress")["voucher-files"]["spec"]["rules"]
    assert any(path.startswith(one["path"]) for one in rule["http"]["paths"])
    nginx = (PROJECT / "deploy" / "nginx" / "voucher.conf").read_text()
    locations = re.findall(r"location ~ (\S+) {\s+client_max_body", nginx)
    assert any(re.search(one, path) for one in locations)


def test_disruption_budgets_leave_room_to_drain_a_node() -> None:
    budgets = of_kind("PodDisruptionBudget")
    for name, one in {**of_kind("Deployment"), **WEB}.items():
        assert (name in budgets) == (one["spec"]["replicas"] > 1), name
    for name, budget in budgets.items():
        assert selects(budget["spec"]["selector"]["matchLabels"], WORKLOADS[name])
        assert budget["spec"]["minAvailable"] < WORKLOADS[name]["spec"]["replicas"]


def test_policies_open_only_ports_that_exist() -> None:
    listening = {
        port["containerPort"]
        for _, _, container in CONTAINERS
        for port in container.get("ports", [])
    }
    opened = {
        port["port"]
        for policy in of_kind("NetworkPolicy").values()
        for rule in policy["spec"].get("ingress", [])
        for port in rule["ports"]
    }
    assert opened == listening


def test_secrets_are_files_that_make_secrets_writes(tmp_path: Path) -> None:
    subprocess.run(
        [PROJECT / "deploy/compose/make-secrets", tmp_path], capture_output=True, check=True
    )
    for variable, value in of_kind("ConfigMap")["voucher"]["data"].items():
        if variable.endswith("_FILE"):
            assert (tmp_path / Path(value).name).is_file()
            assert Path(value).name in PAGE


def test_settings_are_documented() -> None:
    page = (PROJECT / "docs/operate/configure.md").read_text()
    for folder in (BASE, OVERLAY):
        for name in of_kind("ConfigMap", manifests(folder))["voucher"]["data"]:
            assert f"`{name.removesuffix('_FILE')}`" in page


@pytest.mark.skipif(not shutil.which("kubectl"), reason="kubectl, which renders, is not installed")
def test_the_overlay_renders() -> None:
    rendered = subprocess.run(
        ["kubectl", "kustomize", OVERLAY], capture_output=True, text=True, check=True
    )
    found = list(yaml.safe_load_all(rendered.stdout))
    for one in found:
        kubernetes_validate.validate(one, VERSION, strict=True)
    assert {one["metadata"].get("namespace") for one in found if one["kind"] != "Namespace"} == {
        "voucher"
    }
    assert set(re.findall(r"image: (\S+)", rendered.stdout)) == {
        "registry.example.com/voucher:1.0.0"
    }
    assert "api.example.com" not in rendered.stdout
    assert of_kind("StatefulSet", found)["voucher-api"]["spec"]["replicas"] == 3
