import type { LeaseStore } from "@leasehold/client";
import { conformanceChecks } from "@leasehold/client/conformance";
import { describe, it } from "vitest";
import { newKey } from "./new-key.ts";

/** What every store does; run for memory and for every engine. */
export function storeContract(place: () => LeaseStore): void {
  for (const [group, checks] of Map.groupBy(conformanceChecks, (check) => check.group)) {
    describe(`a store, of ${group}`, () => {
      for (const { name, run } of checks) {
        it(name, async ({ skip }) => {
          const reason = await run(place(), { keyPrefix: newKey("store") });
          if (reason !== undefined) skip(reason);
        });
      }
    });
  }
}
