"""Reads the exporter as Prometheus does, in the process of the test."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from django.conf import settings
from prometheus_client.parser import text_string_to_metric_families

from operators.upkeep.monitoring import exporter, gauges

Samples = dict[tuple[str, frozenset[tuple[str, str]]], float]


def scrape(path: str) -> Samples:
    """Every sample of a page of the exporter, by name and labels."""
    return dict(_samples(read(path)))


def scrape_host(folder: Path) -> Samples:
    """What the processes counted that share this folder."""
    settings.METRICS_DIR = folder
    return scrape("/metrics")


def scrape_service() -> Samples:
    """The gauges of the service, read now."""
    gauges.reader._readings.clear()
    return scrape("/metrics/service")


def read(path: str) -> str:
    answer: dict[str, Any] = {}

    def start(status: str, headers: list[tuple[str, str]], *more: object) -> Any:
        answer["status"] = status

    environ: Any = {"PATH_INFO": path, "REQUEST_METHOD": "GET", "QUERY_STRING": ""}
    text = b"".join(exporter.application()(environ, start)).decode()
    assert answer["status"] == "200 OK", text
    return text


def value(samples: Samples, name: str, /, **labels: str) -> float | None:
    """The value of the sample with exactly these labels."""
    return samples.get((name, frozenset(labels.items())))


def total(samples: Samples, name: str, /, **labels: str) -> float:
    """The sum of all samples that have these labels."""
    wanted = set(labels.items())
    return sum(
        number for (one, has), number in samples.items() if one == name and wanted <= set(has)
    )


def _samples(text: str) -> Iterator[tuple[tuple[str, frozenset[tuple[str, str]]], float]]:
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            yield (sample.name, frozenset(sample.labels.items())), sample.value
