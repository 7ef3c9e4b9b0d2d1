import { type Answering, answering } from "../support/answers.ts";
import { leaseService, releaseLease } from "./lease-service.ts";

/**
 * Lets a lock go: `{ "lease": handle, "completed": false }` → `{ "released": true }`.
 *
 * `completed: true` also records the lease's slot as done. Dies before the request: the lock frees itself when the
 * lease ends. After it: asking again gives the same answer.
 */
export const handler: Answering<{ released: boolean }> = answering((event) =>
  releaseLease(leaseService(), event),
);
