// The possible actions on a key, each with its command line. The console's buttons show the same actions.

import type { DescribedLease, KeyDetails } from "@leasehold/client/admin";
import { commandLine, tokenPrefix } from "./command-lines.ts";
import { primitiveOf, primitivesOf } from "./key-rows.ts";

/** One possible action. */
export interface NextStep {
  readonly action: "stop" | "break" | "pause" | "resume" | "wait" | "runs" | "tasks";
  /** Its effect, in a few words. */
  readonly what: string;
  readonly command: string;
  /** A warning. */
  readonly caution?: string;
}

const breakCaution = "it may still be working: docs/RUNBOOK.md#a-lock-is-stuck";

/** The primitives that a pause closes. */
const lockLike = ["lock", "semaphore", "rw-lock"] as const;

/** The possible actions on a key, the mildest first. */
export function nextSteps(details: KeyDetails): readonly NextStep[] {
  const { key, leases } = details;
  const used = new Set(primitivesOf(details));
  const locks = leases.filter(({ sortKey }) => !["job", "tasks", "cache"].includes(primitiveOf(sortKey)));
  // With many holders, one example is enough.
  const steps = locks.slice(0, 1).flatMap((lease) => stepsAbout(lease, leases));
  const ofLocks: readonly NextStep[] =
    steps.length > 0 || !(used.size === 0 || lockLike.some((one) => used.has(one)))
      ? steps
      : [
          {
            action: "pause",
            what: "keep it closed",
            command: commandLine("pause", [key], ["--for", "2h", "--reason", "…"]),
          },
        ];
  return [
    ...ofLocks,
    ...(used.has("job")
      ? [{ action: "runs", what: "look at its runs", command: commandLine("jobs runs", [key]) } as const]
      : []),
    ...(used.has("tasks")
      ? [{ action: "tasks", what: "look at its tasks", command: commandLine("tasks", [key]) } as const]
      : []),
  ];
}

/** The possible actions on one lease. */
export function stepsAbout(lease: DescribedLease, leases: readonly DescribedLease[]): readonly NextStep[] {
  const { key, state } = lease;
  const prefix = tokenPrefix(
    lease.token,
    leases.map(({ token }) => token),
  );
  const line = (name: string): string => commandLine(name, [key], ["--token", prefix]);
  const wait: NextStep = {
    action: "wait",
    what: "wait until it is free",
    command: commandLine("wait", [key]),
  };
  switch (state) {
    case "held":
    case "stopping":
    case "grace":
      return [
        ...(state === "held"
          ? [{ action: "stop", what: "ask it to stop", command: line("stop") } as const]
          : []),
        { action: "break", what: "break it", command: line("break"), caution: breakCaution },
        wait,
      ];
    case "paused":
      return [{ action: "resume", what: "end the pause", command: commandLine("resume", [key]) }, wait];
    case "cooldown":
      return [wait, { action: "break", what: "open it now", command: line("break") }];
    case "expired":
      return [
        {
          action: "break",
          what: "remove the record of it",
          command: `${line("break")} --force`,
          caution: "no need: the next caller takes it over",
        },
      ];
    default:
      return [];
  }
}
