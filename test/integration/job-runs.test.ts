import { afterAll, beforeAll, describe, inject } from "vitest";
import { jobRunsContract } from "../contract/job-runs-contract.ts";
import { type EnginePlace, makeEnginePlace } from "../support/engine-place.ts";

describe("job runs on the engine", () => {
  let engine: EnginePlace;
  beforeAll(async () => {
    engine = await makeEnginePlace(inject("engine"));
  });
  afterAll(() => engine.close());
  jobRunsContract((clock) => engine.place(clock));
});
