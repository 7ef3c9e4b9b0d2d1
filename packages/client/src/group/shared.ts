import type { ProtocolContext } from "../protocol/context.ts";
import { Heartbeat } from "../protocol/heartbeat.ts";
import { Judge } from "../protocol/judge.ts";

/** What all groups of one client share. */
interface Shared {
  readonly judge: Judge;
  readonly heartbeat: Heartbeat;
}

const sharedBy = new WeakMap<ProtocolContext, Shared>();

/** Gives what the groups of a client share: their sightings of other holders, and the timer of their heartbeats. */
export function sharedOf(context: ProtocolContext): Shared {
  const known = sharedBy.get(context);
  if (known !== undefined) return known;
  const shared = {
    judge: new Judge(context.clock, context.clockSkewMs),
    heartbeat: new Heartbeat(context),
  };
  sharedBy.set(context, shared);
  return shared;
}
