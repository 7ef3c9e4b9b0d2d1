import { availableEngines, startEngine } from "@leasehold/engine";
import { afterAll, beforeAll, describe, inject, vi } from "vitest";
import { DynamoDBLeaseStore } from "../../packages/client/src/stores/sdk/store.ts";
import { leaseContract } from "../contract/lease-contract.ts";
import { storeContract } from "../contract/store-contract.ts";
import { type EnginePlace, makeEnginePlace } from "../support/engine-place.ts";
import type { Target } from "../support/proxy.ts";
import { environmentOf } from "../support/table.ts";

// The engine of this run, and whichever others this machine has.
const others = (await availableEngines()).filter((name) => name !== inject("engine").name);

describe.each([inject("engine").name, ...others])("leases on %s", (name) => {
  let engine: Target;
  let place: EnginePlace;
  let stop = async (): Promise<void> => undefined;

  beforeAll(async () => {
    engine = inject("engine");
    if (name !== inject("engine").name) {
      const other = await startEngine({ engine: name as "dynamodb-local" | "dynoxide" });
      engine = { clientConfig: { ...other.clientConfig } };
      stop = () => other.stop();
    }
    place = await makeEnginePlace(engine);
  });

  afterAll(async () => {
    place?.close();
    await stop();
  });

  leaseContract((clock) => place.place(clock));
  describe("through a client of the user's", () => {
    storeContract(() => new DynamoDBLeaseStore(place.tableName, place.dynamodb));
  });

  describe("through a client of the store's own", () => {
    let store: DynamoDBLeaseStore;
    beforeAll(() => {
      for (const [name, value] of Object.entries(environmentOf(engine))) vi.stubEnv(name, value);
      store = new DynamoDBLeaseStore(place.tableName, undefined);
    });
    afterAll(() => void vi.unstubAllEnvs());
    storeContract(() => store);
  });
});
