// A child under a lease: it gets a signal before the lease ends, and as soon as it is lost. Every cause stops it in the
// same way.

import type { Clock, Lease, LeaseLostError } from "@leasehold/client";
import { callAfter } from "@leasehold/client/internal";
import type { Call } from "../command.ts";
import { UsageError } from "../exit-codes.ts";
import { choice, duration, type Flags, usually, type Values, whole } from "../flags.ts";
import { durationText, shown } from "../terminal/text.ts";
import { type Child, runChild } from "./child.ts";

export const childFlags = {
  "on-lost": usually(
    choice(
      ["term", "kill", "ignore"],
      "what the child gets when the lease is lost: SIGTERM and later SIGKILL (default), SIGKILL, or nothing",
    ),
    "term",
  ),
  "kill-after": duration(
    "between SIGTERM and SIGKILL (default 10s). After a SIGTERM to leasehold itself, only if it is given",
  ),
  grace: duration(
    "how long before its end the child is told of a lease that is not renewed (default lease/4)",
  ),
  max: duration("how long the child may run"),
  fd: whole("number of a pipe for the child that closes when the lease is lost", { least: 3, most: 9 }),
} satisfies Flags;

export interface SupervisionOptions {
  readonly key: string;
  readonly lease: Pick<Lease, "signal" | "held" | "remainingMs">;
  readonly leaseMs: number;
  readonly flags: Values<typeof childFlags>;
  readonly clock: Clock;
  readonly say: (line: string) => void;
  /** Settles when the child's pipes have ended, which what it has left behind may hold open. @default - no pipes */
  readonly attended?: Promise<unknown> | undefined;
}

export interface ChildEnd {
  readonly code: number;
  /**
   * Whether the lease did not last until the child's end, or the child was stopped because it would not have lasted.
   */
  readonly isLost: boolean;
  /** Whether it was stopped because it ran for longer than --max. */
  readonly isTooLong: boolean;
}

const defaultKillAfterMs = 10_000;
const leftoverLookMs = 50;

/** What a loss means, by its reason. */
const losses: Readonly<Record<LeaseLostError["reason"], (options: SupervisionOptions) => string>> = {
  expired: ({ leaseMs }) => `no renewal was confirmed for ${durationText(leaseMs)}`,
  taken: () => "another holder has it",
  released: () => "somebody has broken it",
  revoked: () => "somebody asks to stop",
  failed: () => "its heartbeat has stopped at a mistake of this program",
};

/** Refuses a grace that would signal every child, because it begins before a renewal is due. Throws a UsageError. */
export function checkGrace(
  { grace }: Values<typeof childFlags>,
  { leaseMs, heartbeat }: { readonly leaseMs: number; readonly heartbeat: boolean },
): void {
  const mostMs = heartbeat ? leaseMs / 2 : leaseMs;
  if (grace === undefined || grace < mostMs) return;
  const why = heartbeat ? "half of the lease, for a renewal comes each third of it" : "the lease";
  throw new UsageError(
    `--grace is ${durationText(grace)}; allowed: less than ${durationText(mostMs)}, ${why}`,
  );
}

/**
 * Supervises a child until it and its pipes end.
 *
 * It signals the child once: at `grace` before the end of a lease whose renewal is not confirmed, at the loss of the
 * lease, or after `max`, whichever comes first. With `kill`, or `kill-after` later, SIGKILL follows. After a SIGTERM
 * that this process has passed on, SIGKILL follows only if `kill-after` is given.
 */
export async function superviseChild(child: Child, options: SupervisionOptions): Promise<ChildEnd> {
  const { key, lease, leaseMs, flags, clock, say, attended } = options;
  const { max, grace = Math.floor(leaseMs / 4) } = flags;
  const { "on-lost": onLost } = flags;
  const killAfterMs = flags["kill-after"] ?? defaultKillAfterMs;
  const name = shown(key);
  const timers = new Set<() => void>();
  const after = (delayMs: number, callback: () => void): void => {
    const cancel = callAfter(clock, delayMs, () => {
      timers.delete(cancel);
      callback();
    });
    timers.add(cancel);
  };
  let stoppedFor: "lease" | "max" | undefined;
  let killAt = Number.POSITIVE_INFINITY;

  const stop = (why: "lease" | "max", how: "term" | "kill", line: string): void => {
    // A SIGTERM, for --max, does not spare the child the SIGKILL at a loss.
    if (stoppedFor !== undefined && (how === "term" || killAt <= clock.monotonic())) {
      say(`leasehold: ${line}`);
      return;
    }
    stoppedFor ??= why;
    say(`leasehold: ${line}: sending ${how === "kill" ? "SIGKILL" : "SIGTERM"} to the child`);
    child.kill(how === "kill" ? "SIGKILL" : "SIGTERM");
    if (how === "kill") {
      killAt = clock.monotonic();
      return;
    }
    // A stopped child (Ctrl-Z) would not notice.
    child.kill("SIGCONT");
    killLater();
  };
  const killLater = (): void => {
    if (Number.isFinite(killAt)) return;
    killAt = clock.monotonic() + killAfterMs;
    after(killAfterMs, () => {
      say(`leasehold: the child has not ended after ${durationText(killAfterMs)}: sending SIGKILL to it`);
      child.kill("SIGKILL");
    });
  };
  const tell = (line: string): void => {
    child.closePipe();
    if (onLost === "ignore") say(`leasehold: ${line}; the child goes on (--on-lost ignore)`);
    else stop("lease", onLost, line);
  };

  let isTold = false;
  const watchDeadline = (): void => {
    if (lease.signal.aborted) return;
    const leftMs = lease.remainingMs();
    if (leftMs <= grace && !isTold)
      tell(`${name} ends in ${durationText(leftMs)}, and no renewal is confirmed`);
    isTold = leftMs <= grace;
    after(isTold ? leftMs : leftMs - grace, watchDeadline);
  };
  const onLoss = (): void => {
    const { reason } = lease.signal.reason as LeaseLostError;
    tell(`LOST ${name} (${reason}: ${losses[reason](options)})`);
  };

  lease.signal.addEventListener("abort", onLoss, { once: true });
  if (lease.signal.aborted) onLoss();
  watchDeadline();
  if (max !== undefined) {
    after(max, () => stop("max", "term", `the child has run for ${durationText(max)} (--max)`));
  }
  // Another process has sent this signal: it has a limit only if the user has set one.
  if (flags["kill-after"] !== undefined) void child.terminated.then(killLater);
  // Ignored: the owner of the pipes gets their error.
  const [code] = await Promise.all([child.ended, attended?.catch(() => {})]);
  lease.signal.removeEventListener("abort", onLoss);
  const isHeld = lease.held;
  for (const cancel of timers) cancel();
  if (Number.isFinite(killAt)) await endLeftovers(child, killAt, clock);
  return { code, isLost: !isHeld || (stoppedFor === "lease" && code !== 0), isTooLong: stoppedFor === "max" };
}

/** The variables that tell a command of its lease; undefined where an outer command's does not hold for it. */
export function leaseVariables(
  key: string,
  { token, fencingToken }: Pick<Lease, "token" | "fencingToken">,
  { tableName, slot }: { readonly tableName: string; readonly slot: string | undefined },
): Readonly<Record<string, string | undefined>> {
  return {
    LEASEHOLD_KEY: key,
    LEASEHOLD_TOKEN: token,
    LEASEHOLD_FENCING_TOKEN: String(fencingToken),
    LEASEHOLD_TABLE_NAME: tableName,
    LEASEHOLD_SLOT: slot,
  };
}

/** A command under a lease, and its variables beside those of this process. */
interface LeasedCommand extends Omit<SupervisionOptions, "clock" | "say" | "attended"> {
  readonly commandLine: readonly string[];
  readonly variables: Readonly<Record<string, string | undefined>>;
  /** Reads and writes the child's pipes; without it, the child has this process's own stdin and stdout. */
  readonly attend?: (child: Child) => Promise<void>;
}

/**
 * Runs a command under a lease until it ends. Rejects with a CommandError (126, 127) if it cannot be started, and with
 * a LeaseLostError, without a start, if the lease is lost already.
 */
export async function runUnderLease(
  call: Call,
  { commandLine, variables, attend, ...options }: LeasedCommand,
): Promise<ChildEnd> {
  const { env, clock, terminal } = call;
  const say = (line: string): void => terminal.complain(line);
  const { fd } = options.flags;
  const started = { commandLine, env: { ...env, ...variables }, fd, isPiped: attend !== undefined };
  // A process that was frozen, or waited for an answer, may have lost it already.
  options.lease.signal.throwIfAborted();
  return await runChild(call, started, async (child) => {
    const attended = attend?.(child);
    const end = await superviseChild(child, { ...options, clock, say, attended });
    await attended;
    return end;
  });
}

/** The child's leftovers may still work: they have as long as the child had, and no longer. */
async function endLeftovers(child: Child, killAt: number, clock: Clock): Promise<void> {
  while (child.hasLeftovers() && clock.monotonic() < killAt) {
    await new Promise<void>((resolve) => clock.schedule(resolve, leftoverLookMs));
  }
  if (child.hasLeftovers()) child.kill("SIGKILL");
}
