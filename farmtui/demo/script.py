"""What the demo's agents say: tasks, stories, outputs and progress, chosen by a seeded generator."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Mapping
from dataclasses import dataclass

from farmtui.demo.ants import Claim

REPOSITORY = "/srv/shop"

# Workflow → tasks; where the workflow has a loop, with the titles of their stories.
TASKS: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "feature-dev": {
        "Add OAuth login to the web shop": (
            "Table for outside identities",
            "Start a login at the provider",
            "Take the answer of the provider",
            "Join an identity with an account",
            "Log out everywhere",
            "Login buttons on the form",
            "Say what went wrong, in words",
        ),
        "Export orders as CSV": (
            "Rows for one month",
            "A button on the orders page",
            "Large exports in the background",
            "Amounts as the accountants want them",
        ),
        "Dark mode for the settings pages": (
            "Colours as variables",
            "A switch that is remembered",
            "Pictures that fit both",
        ),
        "Search suggestions while typing": (
            "An index of product names",
            "Answer within 50 ms",
            "Keys up and down in the list",
            "Forgive one typing error",
        ),
        "Rate limits for the public API": (
            "Count calls per key",
            "Answer 429 with Retry-After",
            "Limits per customer",
        ),
        "Gift cards at the checkout": (
            "A card and what is left on it",
            "Pay a part with a card",
            "Refunds go back to the card",
        ),
    },
    "bug-fix": {
        "Crash on an empty cart": (),
        "Fix the flaky checkout test": (),
        "Weekly report is a day late in New Zealand": (),
        "Prices are rounded twice in invoices": (),
        "Login loops when the cookie is stale": (),
        "Search finds nothing for names with an apostrophe": (),
        "Stock goes below zero when two people buy at once": (),
        "Mails are sent twice after a restart": (),
    },
    "security-audit": {
        "Audit the payment service": (
            "Webhook accepts unsigned calls",
            "Card numbers in the debug log",
            "Refund without a second pair of eyes",
        ),
        "Audit uploads and file names": (
            "A name can leave the folder",
            "Archives unpack without a limit",
        ),
        "Audit the admin pages": (
            "Forms without a token",
            "Search goes into the query as it is",
            "Sessions that never end",
        ),
    },
    "dependency-update": {
        "Update the shop's dependencies": (),
        "Update the build tools": (),
    },
}

_ANSWERS: Mapping[str, Mapping[str, str]] = {
    "plan": {
        "REPO": "{repo}",
        "BRANCH": "feature/{slug}",
        "NOTES": "The pages are rendered on the server; keep it so.\n- Look at shop/accounts first.\n"
        "- Money is counted in cents everywhere.",
    },
    "triage": {
        "REPO": "{repo}",
        "BRANCH": "fix/{slug}",
        "SEVERITY": "middle: a customer in fifty meets it",
        "REPRODUCTION": "1. Log in as test@example.test\n2. Do what the report says\n3. See the log: a 500",
    },
    "scan": {
        "REPO": "{repo}",
        "BRANCH": "security/{slug}",
        "FOUND": "{found}",
    },
    "survey": {
        "REPO": "{repo}",
        "BRANCH": "deps/{slug}",
        "UPDATES": "fastify 5.1.0 5.4.0\nzod 3.23.8 4.1.5\nvitest 2.1.4 3.2.4",
        "TEST_CMD": "npm test",
    },
    "investigate": {
        "ROOT_CAUSE": "shop/{module}.ts:{line} reads the value before it is there; the second caller wins.",
        "APPROACH": "Read it once, inside the transaction, and hand it down.",
    },
    "prioritize": {"LEFT": "Old headers on the static pages: nobody can use them for anything."},
    "setup": {
        "BUILD_CMD": "npm run build",
        "TEST_CMD": "npm test",
        "BASELINE": "{tests} tests pass, 0 fail, in {seconds} s",
    },
    "implement": {
        "CHANGES": "shop/{module}.ts: {story}\nshop/{module}.test.ts: {more} tests for it",
        "TESTS": "npm test: {tests} pass, 0 fail",
    },
    "fix": {
        "CHANGES": "shop/{module}.ts:{line}: checked before it is used",
        "REGRESSION_TEST": "{module}.test.ts > stays right when it happens twice",
        "PROOF": "{module}.test.ts > turns the bad one away",
    },
    "verify": {"VERIFIED": "Read the change, ran npm test ({tests} pass), tried it in the browser."},
    "test": {"RESULTS": "Bought two things, sent one back, logged out and in again: as it should be."},
    "update": {"CHANGES": "package.json, package-lock.json; one renamed option in vitest.config.ts"},
    "check": {"RESULTS": "npm test: {tests} pass, 0 fail. The shop starts and sells."},
    "pr": {"PR": "https://git.example.test/shop/pulls/{pull}"},
    "review": {"DECISION": "approved; two remarks on names, none that has to wait for"},
}

_ISSUES = (
    "No test fails without the change.",
    "The happy path works, but two callers at once still see the old value.",
    "Acceptance criterion 2 is not met: nothing is said when it fails.",
    "The same as before: the new test passes with the change taken out.",
)
_REASONS = (
    "npm install failed: ETIMEDOUT while fetching the registry",
    "The tests hang after 40 %; killed after 20 minutes",
    "Working tree is dirty on {branch}: somebody else's change in shop/accounts.ts",
)
_PROGRESS = (
    "read shop/{module}.ts and its tests",
    "wrote a test, it fails as it should",
    "made it pass; {more} more tests",
    "ran the whole suite: {tests} pass",
    "tidied names, looked at the diff again",
)


@dataclass(frozen=True, slots=True)
class Report:
    """How an agent's work on a step ends: an output to hand in, or a reason why it gave up."""

    output: str | None = None
    reason: str | None = None


class Script:
    """The agents' words: for the same seed, run and step the same, whatever else goes on."""

    def __init__(self, seed: int) -> None:
        self._seed = seed

    def dice(self, claim: Claim, what: str) -> random.Random:
        """A generator for `what` happens at this claim of a step, or of a story in it."""
        return random.Random(f"{self._seed}/{claim.run_id}/{claim.step}/{claim.story}/{claim.tries}/{what}")

    def done(self, claim: Claim) -> Report:
        """The work went well. The operator's guidance, where the input holds any, is answered to."""
        words = self._words(claim)
        lines = ["STATUS: done"]
        # As it should be, the input names the keys that it wants back.
        lines += [
            f"{key}: {text.format(**words)}"
            for key, text in _ANSWERS.get(claim.step, {}).items()
            if f"{key}:" in claim.input
        ]
        guidance = claim.context.get("operator_guidance")
        if guidance and str(guidance) in claim.input:
            lines.append(f"NOTES: Done as the operator said: {guidance}")
        if claim.step in ("plan", "prioritize"):
            lines.append(f"STORIES_JSON: {self._stories(claim)}")
        return Report(output="\n".join(lines))

    def sent_back(self, tries: int) -> Report:
        """The verifier is not content, for the `tries`-th time (from 0)."""
        return Report(output=f"STATUS: retry\nISSUES: {_ISSUES[tries % len(_ISSUES)]}")

    def gave_up(self, claim: Claim) -> Report:
        """The agent could not do it."""
        reason = (
            self.dice(claim, "reason")
            .choice(_REASONS)
            .format(branch=claim.context.get("branch", "the branch"))
        )
        return Report(reason=reason)

    def progress_head(self, claim: Claim) -> str:
        """What the agent writes into its log when it begins a story."""
        return f"## {claim.story} {claim.context.get('current_story_title', '')}\n"

    def progress_line(self, claim: Claim, number: int) -> str:
        """The `number`-th line of that log (from 0)."""
        return f"- {_PROGRESS[number % len(_PROGRESS)].format(**self._words(claim))}\n"

    def _words(self, claim: Claim) -> Mapping[str, object]:
        rng = self.dice(claim, "words")
        task = str(claim.context.get("task", ""))
        titles = TASKS.get(claim.workflow, {}).get(task, ())
        return {
            "repo": REPOSITORY,
            "slug": re.sub(r"[^a-z0-9]+", "-", task.lower()).strip("-")[:32].strip("-"),
            "module": rng.choice(("accounts", "cart", "orders", "prices", "sessions", "stock")),
            "line": rng.randrange(12, 400),
            "tests": rng.randrange(210, 480),
            "seconds": rng.randrange(9, 90),
            "more": rng.randrange(2, 9),
            "pull": rng.randrange(300, 999),
            "story": claim.context.get("current_story_title", ""),
            "found": "\n".join(
                f"- {title}: shop/{rng.choice(('api', 'admin', 'files'))}.ts" for title in titles
            ),
        }

    def _stories(self, claim: Claim) -> str:
        titles = TASKS.get(claim.workflow, {}).get(str(claim.context.get("task", "")), ())
        stories = [
            {
                "id": f"S-{number}",
                "title": title,
                "description": f"{title}: as a part of “{claim.context.get('task', '')}”, useful by itself.",
                "acceptanceCriteria": [
                    "It works for a customer who does nothing unusual",
                    "Whoever does something unusual is told what went wrong",
                    "The tests pass",
                ],
            }
            for number, title in enumerate(titles or ("The whole of it",), 1)
        ]
        return json.dumps(stories, ensure_ascii=False, indent=1)
