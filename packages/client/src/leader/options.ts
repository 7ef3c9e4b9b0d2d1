import type { ClientInternals } from "../client-internals.ts";
import { InvalidOptionsError, type LeaseLostError } from "../errors/errors.ts";
import type { Lease } from "../lease.ts";
import { checkAcquireOptions } from "../options/check-options.ts";
import { checkData, checkDuration, checkKnown } from "../options/check-values.ts";
import type { WaitOptions } from "../options/options.ts";
import { limits } from "../schema.ts";

/** Options of a {@link Leader}. */
export interface LeaderOptions
  extends Pick<WaitOptions, "leaseDurationMs" | "retry" | "owner" | "reentrant" | "data"> {
  /**
   * How often a leader renews, in milliseconds, shorter than half of the lease; `true` for every third of it. A
   * leader always renews. @default true
   */
  readonly heartbeat?: true | number;
  /**
   * How long `lead` pauses after its work has ended by itself, so that others may be elected, in milliseconds.
   * @default 1000
   */
  readonly pauseMs?: number;
  /** Called when this candidate has been elected. @default - none */
  readonly onElected?: (leadership: Lease) => void;
  /** Called when its leadership has ended before it resigned. @default - none */
  readonly onLost?: (error: LeaseLostError, leadership: Lease) => void;
  /** Called when it has resigned. @default - none */
  readonly onResigned?: (leadership: Lease) => void;
}

/** A leader's options, validated. */
export interface LeaderTerms {
  /** For `client.acquire`. */
  readonly acquisition: WaitOptions;
  readonly pauseMs: number;
  readonly listeners: Pick<LeaderOptions, "onElected" | "onLost" | "onResigned">;
}

const optionNames: readonly (keyof LeaderOptions)[] = [
  "leaseDurationMs",
  "retry",
  "owner",
  "reentrant",
  "data",
  "heartbeat",
  "pauseMs",
  "onElected",
  "onLost",
  "onResigned",
];

const defaultPauseMs = 1_000;

/** Validates a leader's options, those of its acquisition included. */
export function checkLeaderOptions(options: LeaderOptions, inner: ClientInternals): LeaderTerms {
  const given = checkKnown(options, optionNames, "options");
  const { onElected, onLost, onResigned, pauseMs = defaultPauseMs, ...rest } = given;
  checkDuration("pauseMs", pauseMs, 0);
  for (const [option, listener] of Object.entries({ onElected, onLost, onResigned })) {
    if (listener === undefined || typeof listener === "function") continue;
    throw new InvalidOptionsError(option, listener, "a function");
  }
  if ((rest.heartbeat as unknown) === false) {
    throw new InvalidOptionsError("heartbeat", false, "true, or milliseconds: a leader always renews");
  }
  // The longest wait that a client takes: a campaign goes on until it is won or called off.
  const acquisition = { heartbeat: true, waitMs: limits.durationMs, ...rest };
  checkAcquireOptions(acquisition, true, inner.owner, inner.times);
  checkData(rest.data);
  return {
    acquisition,
    pauseMs,
    listeners: {
      ...(onElected ? { onElected } : {}),
      ...(onLost ? { onLost } : {}),
      ...(onResigned ? { onResigned } : {}),
    },
  };
}
