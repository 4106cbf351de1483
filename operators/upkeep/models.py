"""Signs of life of processes, copies outside the host, and the runs of `reconcile`."""

from __future__ import annotations

from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from core.database.columns import ACTOR_LENGTH
from core.texts import lazy


class HeartbeatKind(models.TextChoices):
    """The kinds of processes that write heartbeats."""

    BEAT = "beat", lazy("Beat")
    WORKER = "worker", lazy("Worker")
    IMPORTS = "imports", lazy("Imports worker")


class Heartbeat(models.Model):
    """The last sign of life of the scheduler, or of the workers of a host."""

    kind = models.CharField(max_length=8, choices=HeartbeatKind)
    host = models.CharField(max_length=200)
    beat_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [
            models.UniqueConstraint(name="upkeep_heartbeat_once_per_host", fields=["kind", "host"]),
            models.CheckConstraint(
                name="upkeep_heartbeat_kind_is_known", condition=Q(kind__in=HeartbeatKind.values)
            ),
        ]

    def __str__(self) -> str:
        return f"{self.kind} on {self.host}"


# The age of the newest of some heartbeats, by the clock of the database.
AGE = models.ExpressionWrapper(Now() - models.Max("beat_at"), output_field=models.DurationField())


class CopyKind(models.TextChoices):
    """A kind of thing that must lie outside the host."""

    FILES = "files"
    BACKUP = "backup"
    PURCHASE_LOG = "purchase_log"
    ROOTS = "roots"


class Copy(models.Model):
    """When a copy of this kind was last seen outside its host (operators/upkeep/copies.py).

    The backup job writes its row itself (deploy/backup/).
    """

    kind = models.CharField(max_length=12, choices=CopyKind)
    host = models.CharField(max_length=200, blank=True, db_default="")
    seen_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [
            models.UniqueConstraint(name="upkeep_copy_once_per_host", fields=["kind", "host"]),
            models.CheckConstraint(
                name="upkeep_copy_kind_is_known", condition=Q(kind__in=CopyKind.values)
            ),
        ]

    def __str__(self) -> str:
        return f"{self.kind} of {self.host}"


PROGRESS_LENGTH = 200


class RunState(models.TextChoices):
    """The state of a run of `reconcile`."""

    RUNNING = "running", lazy("Running")
    CLEAN = "clean", lazy("Clean")
    FINDINGS = "findings", lazy("Findings")
    FAILED = "failed", lazy("Failed")


class ReconcileRun(models.Model):
    """A run of `reconcile`, nightly or on request (operators/upkeep/nightly_reconcile.py).

    `findings` and `warnings` are lists of `{"check", "finding"}`; `checked` maps a kind of rows to
    their number. `failure` says why a run did not finish. `telegram_due` is set until the report is
    posted in the operators' chat. `history_until` is how far the runs of this week have come in
    the history. A run that a person asked for waits for a worker until `begun_at`. `progress` names
    the check that it makes now.
    """

    state = models.CharField(max_length=8, choices=RunState, default=RunState.RUNNING)
    started_at = models.DateTimeField(db_default=Now())
    finished_at = models.DateTimeField(null=True)
    checked = models.JSONField(default=dict)
    findings = models.JSONField(default=list)
    warnings = models.JSONField(default=list)
    failure = models.CharField(max_length=200, blank=True, default="")
    telegram_due = models.BooleanField(default=False)
    history_until = models.DateTimeField(null=True)
    asked_by = models.CharField(max_length=ACTOR_LENGTH, blank=True, db_default="")
    begun_at = models.DateTimeField(null=True)
    progress = models.CharField(max_length=PROGRESS_LENGTH, blank=True, db_default="")

    class Meta:
        permissions = [("run_reconcile", "Can run reconcile now")]
        indexes = [models.Index(name="upkeep_run_started", fields=["started_at"])]
        constraints = [
            models.UniqueConstraint(
                name="upkeep_run_one_at_a_time",
                fields=["state"],
                condition=Q(state=RunState.RUNNING),
            ),
            models.CheckConstraint(
                name="upkeep_run_state_is_known", condition=Q(state__in=RunState.values)
            ),
            models.CheckConstraint(
                name="upkeep_run_ends_once",
                condition=Q(state=RunState.RUNNING, finished_at=None)
                | (~Q(state=RunState.RUNNING) & Q(finished_at__isnull=False)),
            ),
        ]

    def __str__(self) -> str:
        return f"Reconcile of {self.started_at:%Y-%m-%d %H:%M}"
