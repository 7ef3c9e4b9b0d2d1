/**
 * Amazon's lock client for Java, and Leasehold beside it, on one DynamoDB Local: what makes a lease a lock holds of both. They
 * are driven as in the side-by-side figures.
 */
import { ok } from "node:assert/strict";
import { setTimeout as delay } from "node:timers/promises";
import { startEngine } from "@leasehold/engine";
import { type Contender, createTables, type Place, placeAt } from "../../tools/bench/peers/contender.ts";
import { javaClient, missingForJava } from "../../tools/bench/peers/contenders/java-client.ts";
import { leasehold } from "../../tools/bench/peers/contenders/leasehold.ts";
import { type Checks, pass } from "./checks.ts";

/** A holder renews within it, also on a busy machine. */
const leaseDurationMs = 10_000;
const heartbeatMs = 2_000;

const missing = await missingForJava();
if (missing === undefined) {
  await using engine = await startEngine({ engine: "dynamodb-local" });
  const place = placeAt(await createTables(engine));
  const checks = { ...checksOf(javaClient, place), ...checksOf(leasehold, place) };
  if (!(await pass("java", checks))) process.exitCode = 1;
  place.dynamodb.destroy();
} else {
  console.log(`java: skipped: ${missing}`);
}

function checksOf(contender: Contender, place: Place): Checks {
  return {
    [`${contender.name}: one who waits gets the lock at its release, and not before: it is renewed`]:
      async () => {
        const holder = contender.open(place, { leaseDurationMs, heartbeatMs });
        const waiter = contender.open(place, { leaseDurationMs });
        const held = await holder.acquire("held");
        let isHeld = true;
        const waiting = waiter.acquire("held").then((lock) => {
          ok(!isHeld, "two had the lock at once");
          return lock;
        });
        await Promise.race([waiting, delay(2.5 * leaseDurationMs)]);
        isHeld = false;
        await held.release();
        await (await waiting).release();
        await Promise.all([holder.close(), waiter.close()]);
      },
    [`${contender.name}: a dead holder's lock is taken over after its lease`]: async () => {
      const [holder, heir] = [1, 2].map(() => contender.open(place, { leaseDurationMs }));
      const since = performance.now();
      await holder?.acquire("dead");
      const lock = await heir?.acquire("dead");
      const leases = (performance.now() - since) / leaseDurationMs;
      ok(leases >= 1 && leases < 3, `it was taken over after ${leases.toFixed(2)} leases`);
      await lock?.release();
      await heir?.close();
    },
  };
}
