import { afterAll, beforeAll, describe, inject } from "vitest";
import { leaderContract } from "../contract/leader-contract.ts";
import { type EnginePlace, makeEnginePlace } from "../support/engine-place.ts";

describe("elections on an engine", () => {
  let engine: EnginePlace;
  beforeAll(async () => {
    engine = await makeEnginePlace(inject("engine"));
  });
  afterAll(() => engine.close());
  leaderContract((clock) => engine.place(clock));
});
