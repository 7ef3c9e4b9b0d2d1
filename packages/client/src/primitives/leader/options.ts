import { checkAcquireOptions } from "../../base/check-options.ts";
import {
  aFunction,
  checkData,
  checkOptions,
  duration,
  type Rules,
  rule,
  unchecked,
} from "../../base/check-values.ts";
import type { LeaseLostError } from "../../base/errors.ts";
import type { WaitOptions } from "../../base/options.ts";
import { limits } from "../../base/schema.ts";
import type { Core } from "../../core/core.ts";
import type { Lease } from "../../core/lease.ts";

/** Options of a {@link Leader}. */
export interface LeaderOptions
  extends Pick<WaitOptions, "leaseDurationMs" | "retry" | "owner" | "reentrant" | "data"> {
  /**
   * How often a leader renews, in milliseconds, shorter than half of the lease; `true` for every third of it. A
   * leader always renews. @default true
   */
  readonly heartbeat?: true | number;
  /**
   * How long `lead` pauses after its work has ended by itself, a resignation, or a request to stop, so that others may be
   * elected, in milliseconds.
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

const leaderRules: Rules<LeaderOptions> = {
  leaseDurationMs: unchecked,
  retry: unchecked,
  owner: unchecked,
  reentrant: unchecked,
  data: unchecked,
  heartbeat: rule("true, or milliseconds: a leader always renews", (value) => value !== false),
  pauseMs: duration(0),
  onElected: aFunction,
  onLost: aFunction,
  onResigned: aFunction,
};

const defaultPauseMs = 1_000;

/** Validates a leader's options, those of its acquisition included. */
export function checkLeaderOptions(options: LeaderOptions, inner: Core): LeaderTerms {
  const {
    onElected,
    onLost,
    onResigned,
    pauseMs = defaultPauseMs,
    ...rest
  } = checkOptions(options, leaderRules);
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
