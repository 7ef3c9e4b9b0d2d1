/**
 * The expressions of leases that are acquired together: the single lease's own, joined to one transaction.
 *
 *     acquire   each lock is free, or its record is still the one that was judged; and the fencing token is a new
 *               maximum on each of them
 */
import { acquire, type Judged, takeOver } from "../expressions.ts";
import type { Grant } from "../protocol/lease-form.ts";
import { attributeNames } from "../schema.ts";
import { amended, type Write } from "../store/write.ts";

const { fence } = attributeNames;

/**
 * Takes one lock of several: from nobody, or from the record that was judged.
 *
 * A transaction answers without its items, so that a number that the service counts would have to be read
 * afterwards. This one is chosen beforehand, and refused unless it is larger than every earlier one of the lock.
 */
export function acquireAmongOthers(
  key: string,
  grant: Grant,
  judged: Judged | undefined,
  fencingToken: number,
): Write {
  const write = judged ? takeOver({ key }, grant, judged) : acquire({ key }, grant);
  return amended(write, {
    set: { [fence]: fencingToken },
    insist: [
      {
        anyOf: [
          [fence, "missing"],
          [fence, "<", fencingToken],
        ],
      },
    ],
  });
}
