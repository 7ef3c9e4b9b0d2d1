import { lightStore } from "@leasehold/client/light";
import { afterAll, describe, inject } from "vitest";
import { leaseContract } from "../contract/lease-contract.ts";
import { storeContract } from "../contract/store-contract.ts";
import { type EnginePlace, makeEnginePlace } from "../support/engine-place.ts";

const place = await makeEnginePlace(inject("engine"));
const { endpoint, region, credentials } = inject("engine").clientConfig as Record<string, never>;

afterAll(() => place.close());

describe("the light store", () => {
  storeContract(() => lightStore({ tableName: place.tableName, endpoint, region, credentials }));
});
