import { afterAll, beforeAll, describe, inject } from "vitest";
import { operatorContract } from "../contract/operator-contract.ts";
import { type EnginePlace, makeEnginePlace } from "../support/engine-place.ts";

describe(`operators on ${inject("engine").name}`, () => {
  let engine: EnginePlace;
  beforeAll(async () => {
    engine = await makeEnginePlace(inject("engine"));
  });
  afterAll(() => engine.close());

  operatorContract((clock) => engine.place(clock));
});
