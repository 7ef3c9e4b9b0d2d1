import type { LeaseHandle } from "@leasehold/client";
import { type Answering, answering } from "../support/answers.ts";
import { acquireLease, leaseService } from "./lease-service.ts";

/**
 * Acquires a lease for a caller that is no JavaScript process: a state machine, a container, another language.
 *
 *     { "key": "import", "owner": "…", "leaseDurationMs": 60000, "waitMs": 5000, "data": …, "slot": "…",
 *       "lockAtLeastForMs": 0, "reentrant": false }                              only the key is needed
 *     → { "tableName", "key", "owner", "token", "fencingToken", "expiresAt", … }  for renew and release
 *
 * Dies before the request: nothing has happened. After it: the lease that nobody heard of ends by itself, or goes to
 * the same `owner` when it asks again with `reentrant: true`. See {@link acquireLease} for all that can go wrong.
 */
export const handler: Answering<LeaseHandle> = answering((event, context) =>
  acquireLease(leaseService(), event, context.getRemainingTimeInMillis()),
);
