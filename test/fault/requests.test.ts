import type { LeaseEvent } from "@leasehold/client";
import { together } from "@leasehold/client/together";
import { availableEngines, startEngine } from "@leasehold/engine";
import { afterAll, beforeEach, describe, expect, inject, onTestFinished, test } from "vitest";
import { eventually } from "../support/patience.ts";
import { op, startProxy } from "../support/proxy.ts";
import { failWith } from "../support/proxy-behaviours.ts";
import { bentClock, makeTable, sdkClient } from "../support/table.ts";

const engines = await availableEngines();
const proxy = await startProxy(inject("engine"));
const table = await makeTable(inject("engine"));
const dynamodb = sdkClient(proxy);
let key: string;

beforeEach(() => {
  key = table.newKey();
  proxy.reset();
});
afterAll(async () => {
  dynamodb.destroy();
  table.close();
  await proxy.close();
});

function keysUnder(prefix: string, count: number): string[] {
  return Array.from({ length: count }, (_, index) => `${prefix}/${index}`);
}

describe("heartbeats counted on the wire", () => {
  test.for(engines)("ten leases that are due together, on %s", async (name) => {
    const engine = await startEngine({ engine: name });
    const [ownProxy, ownTable] = await Promise.all([startProxy(engine), makeTable(engine)]);
    const ownClient = sdkClient(ownProxy);
    onTestFinished(async () => {
      ownClient.destroy();
      ownTable.close();
      await ownProxy.close();
      await engine.stop();
    });
    let renewed = 0;
    const onEvent = ({ type }: LeaseEvent): void => {
      if (type === "renewed") renewed += 1;
    };
    const beater = ownTable.client({ renewals: together(), dynamodb: ownClient, onEvent });
    const leases = await ownTable.leasesDueTogether(beater, keysUnder("together", 10), 200);

    // A new engine's first answer to a batch can take longer than a renewal waits.
    await eventually(() => expect(renewed).toBeGreaterThanOrEqual(10));
    if (name === "dynamodb-local") {
      ownProxy.reset();
      await ownProxy.arrival(op("BatchExecuteStatement"), 3);
      expect(ownProxy.operations).toEqual(Array(3).fill("BatchExecuteStatement"));
      for (const { body } of ownProxy.requests) expect(body.Statements).toHaveLength(10);
    } else {
      // The engine does not speak the statement: one attempt, and single writes from then on.
      await ownProxy.arrival(op("UpdateItem"), 30);
      expect(ownProxy.count("BatchExecuteStatement")).toBe(1);
    }
    expect(leases.every((lease) => lease.held)).toBe(true);
    expect(await Promise.all(leases.map((lease) => lease.release()))).toEqual(Array(10).fill(true));
  });

  test("without the permission for batches, single writes renew the leases, and a batch is tried again after a minute", async () => {
    proxy.always(op("BatchExecuteStatement"), failWith("AccessDeniedException"));
    const events: LeaseEvent[] = [];
    let laterMs = 0;
    const clock = bentClock({ monotonicMs: () => laterMs });
    const beater = table.client({
      renewals: together(),
      dynamodb,
      clock,
      onEvent: (event) => events.push(event),
    });
    const leases = await table.leasesDueTogether(beater, keysUnder(key, 10), 200, 600_000);
    const renewals = (): LeaseEvent[] => events.filter(({ type }) => type === "renewed");
    await eventually(() => expect(renewals().length).toBeGreaterThanOrEqual(20));
    expect(proxy.count("BatchExecuteStatement")).toBe(1);
    proxy.reset();
    laterMs = 60_000;
    await proxy.arrival(op("BatchExecuteStatement"), 2);
    expect(events.filter(({ type }) => type === "lost")).toEqual([]);
    expect(await Promise.all(leases.map((lease) => lease.release()))).toEqual(Array(10).fill(true));
  });
});
