import { afterAll, beforeAll, describe, inject } from "vitest";
import { serialTasksContract } from "../contract/serial-tasks-contract.ts";
import { tasksContract } from "../contract/tasks-contract.ts";
import { type EnginePlace, makeEnginePlace } from "../support/engine-place.ts";

describe("tasks on the engine", () => {
  let engine: EnginePlace;
  beforeAll(async () => {
    engine = await makeEnginePlace(inject("engine"));
  });
  afterAll(() => engine.close());
  tasksContract((clock) => engine.place(clock));
  serialTasksContract((clock) => engine.place(clock));
});
