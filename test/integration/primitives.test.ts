import { afterAll, beforeAll, describe, inject } from "vitest";
import { jobRunsContract } from "../contract/job-runs-contract.ts";
import { leaderContract } from "../contract/leader-contract.ts";
import { operatorContract } from "../contract/operator-contract.ts";
import { serialTasksContract } from "../contract/serial-tasks-contract.ts";
import { tasksContract } from "../contract/tasks-contract.ts";
import { type EnginePlace, makeEnginePlace } from "../support/engine-place.ts";

const contracts = {
  operators: operatorContract,
  elections: leaderContract,
  "job runs": jobRunsContract,
  tasks: tasksContract,
  "tasks with serial keys": serialTasksContract,
} as const;

describe.each(Object.entries(contracts))("%s on an engine", (_, contract) => {
  let engine: EnginePlace;
  beforeAll(async () => {
    engine = await makeEnginePlace(inject("engine"));
  });
  afterAll(() => engine.close());
  contract((clock) => engine.place(clock));
});
