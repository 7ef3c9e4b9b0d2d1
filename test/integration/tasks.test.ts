import { afterAll, beforeAll, describe, inject } from "vitest";
import { tasksContract } from "../contract/tasks-contract.ts";
import { type EnginePlace, makeEnginePlace } from "../support/engine-place.ts";

describe("tasks on the engine", () => {
  let engine: EnginePlace;
  beforeAll(async () => {
    engine = await makeEnginePlace(inject("engine"));
  });
  afterAll(() => engine.close());
  tasksContract((clock) => engine.place(clock));
});
