"""The desk: everything an operator can do to a farm, for console and command line alike.

Each planning method reads fresh data and returns a `Plan` or raises `Refused` with one clear line; a plan
is shown, and `apply` does it. All of it blocks (a hung gateway for a few seconds): call it off the screen's
thread. `Unreadable` is raised where the database or the journal cannot be read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta

from farmtui.antfarm.rows import NoSuchRun, RunRows, read_rows
from farmtui.antfarm.schema import text_of
from farmtui.clock import Clock, SystemClock
from farmtui.medic.crons import orphan_reasons
from farmtui.medic.look import DEFAULT_POLL_MS, Look
from farmtui.openclaw.config import read_config
from farmtui.openclaw.crons import Crons, parse_job
from farmtui.openclaw.kept import KeptJobs
from farmtui.operations.acknowledge import plan_acknowledge
from farmtui.operations.apply import Applier
from farmtui.operations.cron_deletion import CronFacts, plan_deletion, plan_orphans, refuse_unless_deletable
from farmtui.operations.database import active_runs
from farmtui.operations.facts import Facts, facts, find_step
from farmtui.operations.follow import Follow
from farmtui.operations.journal import Journal, JournalEntry
from farmtui.operations.operator import Operator
from farmtui.operations.plan import CronAction, Outcome, Plan, Refused
from farmtui.operations.reset import plan_reset
from farmtui.operations.retry import plan_retry
from farmtui.operations.undo import CronsNow, find_entry, plan_undo
from farmtui.paths import FarmPaths
from farmtui.state import CronListing, CronSource, FarmState, Run, SourceStatus, Step, Workflow

_SPLIT = "the database was named by --db and may not belong to this gateway"


class Desk:
    """Plans and applies on one farm.

    Args:
        paths: where everything is.
        crons: how the gateway's jobs are listed and changed.
        clock: the time to judge by; what is written bears the machine's.
        operator: who acts, for the journal.
        readonly: refuses everything.
        workflows: the installed workflows, as last read.
        kept: definitions of crons seen before.
    """

    def __init__(
        self,
        paths: FarmPaths,
        crons: Crons,
        clock: Clock,
        operator: Operator,
        readonly: bool,
        workflows: Callable[[], Mapping[str, Workflow]],
        kept: KeptJobs,
    ) -> None:
        self._paths = paths
        self._crons = crons
        self._clock = clock
        self._readonly = readonly
        self._workflows = workflows
        self._kept = kept
        self._journal = Journal(paths.farm_dir)
        self._applier = Applier(paths, crons, operator, self._journal)

    # ------------------------------------------------------------ planning

    def reset(self, run_id: str, step: str, *, force: bool = False) -> Plan:
        """Plan to put an abandoned step back to pending.

        Args:
            run_id: the run's full id.
            step: the step's name or id.
            force: also where its claim is not stale yet.
        """
        self._refuse_if_readonly()
        return plan_reset(self._facts(run_id), step, force=force)

    def delete_crons(self, job_ids: Sequence[str]) -> Plan:
        """Plan to delete these crons, by id."""
        return plan_deletion(self._cron_facts(), job_ids)

    def delete_orphans(self, workflow: str | None = None) -> Plan:
        """Plan to delete all crons that poll for nothing, of one workflow or of all."""
        return plan_orphans(self._cron_facts(), workflow)

    def retry(self, run_id: str, guidance: str | None = None, *, without_crons: bool = False) -> Plan:
        """Plan to give a failed run back to its agents.

        Args:
            run_id: the run's full id.
            guidance: what the operator tells the agent whose step is retried.
            without_crons: also where crons are missing and cannot be created.
        """
        self._refuse_if_readonly()
        return plan_retry(self._facts(run_id), guidance, self._kept, without_crons=without_crons)

    def acknowledge(self, run_id: str, note: str) -> Plan:
        """Plan to say that somebody has seen a failed run."""
        self._refuse_if_readonly()
        return plan_acknowledge(self._facts(run_id, crons=False), note)

    def undo(self, entry: str | None = None) -> Plan:
        """Plan to take a journal entry back.

        Args:
            entry: its id, or the beginning or end of it; None for the latest that can be undone.
        """
        self._refuse_if_readonly()
        found = find_entry(self._journal.entries(), entry, str(self._paths.database.path.resolve()))
        active: tuple[Run, ...] = ()
        crons, note = None, None
        if found.plan is not None and found.plan.crons:
            crons, note = self._changeable_crons()
            active = active_runs(self._paths.database.path)
        return plan_undo(found, self._paths.database.path, CronsNow(crons, note, active))

    # ------------------------------------------------------------ doing

    def apply(self, plan: Plan) -> Outcome:
        """Do what a plan says. An outcome that is refused changed nothing: something had moved.

        Raises:
            Refused: read-only, or the journal cannot be written; nothing was begun.
        """
        self._refuse_if_readonly()
        if any(call.action is CronAction.REMOVE for call in plan.crons):
            refuse_unless_deletable(self._paths, None)
        return self._applier.apply(plan)

    def entries(self) -> tuple[JournalEntry, ...]:
        """The journal, oldest first."""
        return self._journal.entries()

    def follow(self, run_id: str, step: str, poll: timedelta | None = None) -> Follow:
        """Begin to follow a step that was just put back: ask its `look` now and then.

        Args:
            run_id: the run's full id.
            step: the step's name or id.
            poll: the time between two polls of its agent; where None that of its cron as last seen, else
                the workflow's, else 5 min.
        """
        rows = self._rows(run_id)
        found = self._facts_of(rows, None, None)
        record = find_step(found, step)
        row = rows.step(record.id) or {}
        return Follow(
            run_id=run_id,
            step_id=record.id,
            step=record.name,
            agent=found.agent(record),
            # How long one waits is not a matter of the time to judge by.
            since=SystemClock().now(),
            updated_at=text_of(row.get("updated_at")),
            poll=poll or timedelta(milliseconds=self._poll_ms(found, record)),
            read=lambda: read_rows(self._paths.database.path, run_id),
            clock=SystemClock().now,
        )

    # ------------------------------------------------------------ fresh data

    def _poll_ms(self, found: Facts, step: Step) -> int:
        kept = self._kept.find(found.run.workflow, found.agent(step))
        seen = parse_job({**kept, "id": "kept"}) if kept is not None else None
        if seen is not None and seen.every_ms:
            return seen.every_ms
        return (found.workflow.cron_interval_ms if found.workflow is not None else None) or DEFAULT_POLL_MS

    def _facts(self, run_id: str, *, crons: bool = True) -> Facts:
        # The crons first: they take longest, and the rows should be as fresh as can be.
        listing = self._crons.list() if crons and not self._paths.split else None
        return self._facts_of(self._rows(run_id), listing, _SPLIT if self._paths.split else None)

    def _facts_of(self, rows: RunRows, listing: CronListing | None, note: str | None) -> Facts:
        workflow = self._workflows().get(text_of(rows.run["workflow_id"]))
        return facts(rows, workflow, listing, self._clock.now(), note)

    def _rows(self, run_id: str) -> RunRows:
        try:
            return read_rows(self._paths.database.path, run_id)
        except NoSuchRun as error:
            raise Refused(str(error)) from None

    def _cron_facts(self) -> CronFacts:
        self._refuse_if_readonly()
        refuse_unless_deletable(self._paths, None)
        listing = self._crons.list()
        refuse_unless_deletable(self._paths, listing)
        active = active_runs(self._paths.database.path)
        now = self._clock.now()
        config = read_config(self._paths, {})
        state = FarmState(
            seq=0,
            paths=self._paths,
            host="",
            runs=active,
            workflows=self._workflows(),
            agents=config.agents,
            crons=listing,
            sources={"config": SourceStatus("config", now, config.error)},
        )
        return CronFacts(listing, active, orphan_reasons(Look(state, active, now)), now)

    def _changeable_crons(self) -> tuple[CronListing | None, str | None]:
        if self._paths.split:
            return None, _SPLIT
        listing = self._crons.list()
        if listing.source in (CronSource.WEBSOCKET, CronSource.CLI):
            return listing, None
        return None, listing.note

    def _refuse_if_readonly(self) -> None:
        if self._readonly:
            raise Refused("farm is read-only (--readonly): nothing is changed")
