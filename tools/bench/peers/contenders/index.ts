/** All that are compared, in the order of every table. */
import type { Contender } from "../contender.ts";
import { floors } from "./bare-writes.ts";
import { javaClient } from "./java-client.ts";
import { leasehold, leaseholdFair, leaseholdLight } from "./leasehold.ts";
import { lockClientFailClosed, lockClientFailOpen, lockClientLocalTime } from "./lock-client.ts";

export const contenders: readonly Contender[] = [
  ...floors,
  leasehold,
  leaseholdLight,
  lockClientFailOpen,
  lockClientFailClosed,
  javaClient,
];

/** Settings that matter for takeovers alone stand beside the contender that they change. */
export const takingOver: readonly Contender[] = contenders.flatMap((contender) =>
  contender === lockClientFailOpen ? [contender, lockClientLocalTime] : [contender],
);

/** The same for hand-overs. */
export const handingOver: readonly Contender[] = contenders.flatMap((contender) =>
  contender === leasehold ? [contender, leaseholdFair] : [contender],
);
