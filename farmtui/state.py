"""FarmState and the records in it: frozen, slotted, no I/O.

A source that fails keeps its last good data here and says in `SourceStatus` why and since when.
Text in these records is as it came from outside: whoever shows it passes it through `farmtui.text`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from types import MappingProxyType
from typing import Any

from farmtui.paths import FarmPaths

EMPTY: Mapping[str, Any] = MappingProxyType({})


class Lane(StrEnum):
    """Where a run stands on the board."""

    PENDING = "pending"
    RUNNING = "running"
    HUMAN = "human"
    FAILED = "failed"
    DONE = "done"
    CANCELLED = "cancelled"
    OTHER = "other"


class Severity(StrEnum):
    """How bad a finding is, worst first."""

    CRITICAL = "critical"
    WARNING = "warning"
    INFO = "info"


# ---------------------------------------------------------------- Antfarm's rows


@dataclass(frozen=True, slots=True)
class LoopConfig:
    """`steps.loop_config`: only the keys that Antfarm reads."""

    verify_each: bool
    verify_step: str | None


@dataclass(frozen=True, slots=True)
class Story:
    """A row of `stories`, small columns only."""

    rowid: int
    id: str
    run_id: str
    index: int
    story_id: str  # "S-1"
    title: str
    status: str  # pending, running, done, failed; forks write others
    retry_count: int
    max_retries: int
    created_at: datetime | None
    updated_at: datetime | None


@dataclass(frozen=True, slots=True)
class Step:
    """A row of `steps`, small columns only: input, expects and output are read when looked at."""

    rowid: int
    id: str
    run_id: str
    name: str  # steps.step_id, its name in the YAML
    agent_id: str  # "<workflow>_<agent>", in older versions with - or /
    index: int
    type: str  # single, loop
    status: str  # waiting, pending, running, done, failed; forks write others
    retry_count: int
    max_retries: int
    abandoned_count: int
    current_story_id: str | None  # stories.id, not "S-1"
    loop: LoopConfig | None
    created_at: datetime | None
    updated_at: datetime | None


@dataclass(frozen=True, slots=True)
class Tally:
    """One run's steps and stories in aggregate: all that is kept of a finished run.

    Attributes:
        statuses: each step's status in the order of the steps.
        failed_steps: names of the failed steps, in order.
    """

    steps_done: int = 0
    steps_total: int = 0
    stories_done: int = 0
    stories_total: int = 0
    statuses: tuple[str, ...] = ()
    failed_steps: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Run:
    """A row of `runs`, with its steps and stories while it is active (`steps` is () otherwise).

    `status` is normalised: forks' ``done`` is ``completed``, ``canceled`` is ``cancelled``; anything
    unknown stays as it is. `tally` is None until the aggregates of finished runs were read.
    """

    rowid: int
    id: str
    number: int | None  # not unique; absent before Antfarm 0.5.1
    workflow: str
    task: str
    status: str
    created_at: datetime | None
    updated_at: datetime | None
    steps: tuple[Step, ...] = ()
    stories: tuple[Story, ...] = ()
    tally: Tally | None = None

    @property
    def active(self) -> bool:
        """Whether its steps and stories are kept and watched: it says neither that it ended nor how."""
        return self.status not in ENDED

    @property
    def label(self) -> str:
        """``#14``, or the id's first 8 characters where the schema has no numbers."""
        return f"#{self.number}" if self.number is not None else self.id[:8]


ENDED = frozenset({"completed", "failed", "cancelled"})


@dataclass(frozen=True, slots=True)
class Event:
    """A line of `events.jsonl`. `step` is a step's name, or its id where Antfarm writes that."""

    ts: datetime | None
    event: str
    run_id: str | None
    workflow: str | None = None
    step: str | None = None
    agent_id: str | None = None
    story: str | None = None
    story_title: str | None = None
    detail: str | None = None


@dataclass(frozen=True, slots=True)
class StepText:
    """The long columns of a step, read when looked at."""

    input_template: str
    expects: str
    output: str | None


@dataclass(frozen=True, slots=True)
class Progress:
    """A progress file as last read. `text` is its tail where it is longer than the bound.

    Attributes:
        shared: the old `progress.txt`, which bears no run's name and may be another run's.
    """

    path: str
    text: str
    size: int
    truncated: bool
    archived: bool
    modified_at: datetime | None
    shared: bool = False


@dataclass(frozen=True, slots=True)
class RunDetail:
    """What is read when someone looks at one run.

    Attributes:
        run: with `steps` and `stories` filled, ended or not.
        context: `runs.context`; {} with `context_error` set where it is no JSON object.
        step_texts: by step id.
        story_outputs: by story id (`stories.id`).
        events: this run's, oldest first.
        progress: None where there is no file; `progress_error` says why it could not be read.
    """

    run: Run
    context: Mapping[str, Any]
    context_error: str | None
    step_texts: Mapping[str, StepText]
    story_outputs: Mapping[str, str | None]
    events: tuple[Event, ...]
    progress: Progress | None
    progress_error: str | None
    read_at: datetime


# ---------------------------------------------------------------- workflow.yml


@dataclass(frozen=True, slots=True)
class AgentSpec:
    """An agent in a workflow.yml. `timeout_s` is its `timeoutSeconds`, None where the workflow sets none."""

    id: str
    role: str | None
    timeout_s: int | None
    base_dir: str | None


@dataclass(frozen=True, slots=True)
class StepSpec:
    """A step in a workflow.yml, with its policy on failure read from every spelling that occurs.

    Attributes:
        escalates: the policy names a human (directly, or once retries are exhausted).
        policy: the policy in words for people, e.g. ``on_exhausted → human``; "" where there is none.
    """

    id: str
    agent: str
    type: str
    input: str
    expects: str | None
    verify_each: bool
    verify_step: str | None
    max_retries: int | None
    escalates: bool
    policy: str


@dataclass(frozen=True, slots=True)
class Workflow:
    """One workflow.yml. `error` is set, and the rest empty, where the file could not be understood.

    `context_keys` are the keys that its `context` gives every run.
    """

    id: str
    name: str
    path: str
    agents: tuple[AgentSpec, ...] = ()
    steps: tuple[StepSpec, ...] = ()
    cron_interval_ms: int | None = None
    error: str | None = None
    context_keys: tuple[str, ...] = ()

    def step(self, name: str) -> StepSpec | None:
        """The step of that name."""
        return next((step for step in self.steps if step.id == name), None)

    def agent(self, name: str) -> AgentSpec | None:
        """The agent of that short name (without the workflow)."""
        return next((agent for agent in self.agents if agent.id == name), None)


# ---------------------------------------------------------------- OpenClaw


@dataclass(frozen=True, slots=True)
class Agent:
    """An agent of openclaw.json."""

    id: str
    name: str | None
    workspace: str | None
    timeout_s: int | None = None


@dataclass(frozen=True, slots=True)
class CronJob:
    """An OpenClaw cron job named ``antfarm/<workflow>/<agent>``.

    Attributes:
        agent: the last part of the name; `agent_id` is OpenClaw's id for the agent that it wakes.
        schedule: in words, e.g. ``every 5m``.
        every_ms: None where the schedule is not an interval.
        definition: the job as listed, without its `state`; what `cron.add` needs is taken from it.
    """

    id: str
    name: str
    workflow: str
    agent: str
    agent_id: str | None
    enabled: bool
    schedule: str
    every_ms: int | None
    next_run_at: datetime | None
    last_run_at: datetime | None
    last_status: str | None
    last_error: str | None
    consecutive_errors: int
    running_since: datetime | None
    definition: Mapping[str, Any] = field(default_factory=dict, compare=False, hash=False)


class CronSource(StrEnum):
    """Which way the list of crons came."""

    WEBSOCKET = "websocket"
    CLI = "cli"
    STORE = "store"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class CronListing:
    """The antfarm jobs as last listed.

    Attributes:
        source: NONE where they were never listed: then `jobs` being empty means nothing.
        others: how many jobs that are not Antfarm's were left out.
        note: why a better source is not in use; None when the best one is.
        version: the gateway's version where it says.
        watchdog: whether `antfarm/medic` is listed.
    """

    source: CronSource
    jobs: tuple[CronJob, ...] = ()
    others: int = 0
    read_at: datetime | None = None
    note: str | None = None
    version: str | None = None
    watchdog: bool = False

    @property
    def known(self) -> bool:
        """Whether jobs were listed at all, from whatever source."""
        return self.source is not CronSource.NONE


# ---------------------------------------------------------------- judgement


@dataclass(frozen=True, slots=True)
class Fix:
    """What would mend a finding: an action's id, and the command line that does the same."""

    action: str
    argv: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong with one subject.

    Attributes:
        id: stable while the subject has this fault, e.g. ``stale-claim:662e2a56:build``.
        check: the name of the check, e.g. ``stale-claim``.
        since: when the fault began, as well as it can be told.
        message: one line for people.
        evidence: the facts it rests on, one a line.
        crons: ids of the cron jobs concerned.
    """

    id: str
    check: str
    severity: Severity
    message: str
    since: datetime | None = None
    evidence: tuple[str, ...] = ()
    run: str | None = None
    run_number: int | None = None
    step: str | None = None
    story: str | None = None
    workflow: str | None = None
    crons: tuple[str, ...] = ()
    acknowledged: bool = False
    fix: Fix | None = None


@dataclass(frozen=True, slots=True)
class NotChecked:
    """A check that could not be made, and why: with one of these there is no "all clear"."""

    check: str
    reason: str


@dataclass(frozen=True, slots=True)
class Escalation:
    """A failed run that waits for a person."""

    run: str
    run_number: int | None
    workflow: str
    task: str
    step: str | None
    story: str | None
    reason: str
    since: datetime | None
    acknowledged: bool


@dataclass(frozen=True, slots=True)
class Acknowledgement:
    """Somebody has seen a failed run. It holds while the run's status and updated_at stay as they were."""

    run: str
    run_status: str
    run_updated_at: datetime | None
    note: str
    by: str
    at: datetime | None
    entry: str


@dataclass(frozen=True, slots=True)
class MissingCron:
    """An agent of an active run that no cron wakes."""

    workflow: str
    agent: str


@dataclass(frozen=True, slots=True)
class Judgement:
    """What follows from a FarmState at one moment.

    Attributes:
        lanes: by run id.
        orphans: by cron id: no-active-run, workflow-uninstalled, agent-unknown or duplicate.
    """

    at: datetime
    lanes: Mapping[str, Lane]
    findings: tuple[Finding, ...]
    not_checked: tuple[NotChecked, ...]
    escalations: tuple[Escalation, ...]
    orphans: Mapping[str, str]
    missing_crons: tuple[MissingCron, ...]


# ---------------------------------------------------------------- sources and the whole


@dataclass(frozen=True, slots=True)
class SourceStatus:
    """How one source does: database, events, workflows, config, crons.

    Attributes:
        read_at: when it was last read well; None if never.
        error: one line on what is wrong now; None while all is well.
        failing_since: when `error` began.
    """

    name: str
    read_at: datetime | None
    error: str | None = None
    failing_since: datetime | None = None

    @property
    def ok(self) -> bool:
        return self.error is None


@dataclass(frozen=True, slots=True)
class FarmState:
    """Everything farm knows at one moment, except long texts.

    Attributes:
        seq: one up with every publication.
        host: the machine's name.
        runs: newest first.
        tallied: whether the aggregates of finished runs are in (they follow the first look).
        sources: by name.
        last_claims: when each agent (by agent_id) last claimed, as far back as the event log was read.
        unsafe_bind: what the gateway is bound to where that is more than loopback.
        index: the runs by id, for who asks often; empty where nobody made one.
    """

    seq: int
    paths: FarmPaths
    host: str
    runs: tuple[Run, ...] = ()
    tallied: bool = False
    workflows: Mapping[str, Workflow] = field(default_factory=dict)
    agents: Mapping[str, Agent] = field(default_factory=dict)
    crons: CronListing = CronListing(CronSource.NONE)
    acknowledgements: Mapping[str, Acknowledgement] = field(default_factory=dict)
    last_claims: Mapping[str, datetime] = field(default_factory=dict)
    sources: Mapping[str, SourceStatus] = field(default_factory=dict)
    unsafe_bind: str | None = None
    readonly: bool = False
    index: Mapping[str, Run] = field(default_factory=dict, compare=False, repr=False)

    def run(self, run_id: str) -> Run | None:
        """The run of that full id."""
        if self.index:
            return self.index.get(run_id)
        return next((run for run in self.runs if run.id == run_id), None)
