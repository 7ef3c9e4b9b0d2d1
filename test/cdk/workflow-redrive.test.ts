import type { LeaseClient } from "@leasehold/client";
import type { ManualClock } from "@leasehold/client/testing";
import { beforeEach, describe, expect, it } from "vitest";
import type { Json } from "../../packages/cdk/src/workflow/asl.ts";
import { redriveGuardDefinition } from "../../packages/cdk/src/workflow/redrive-guard.ts";
import type { WorkflowTerms } from "../../packages/cdk/src/workflow/workflow-terms.ts";
import { StatesError } from "../../tools/local/src/state-machines/errors.ts";
import { beatMs, failed, KeptWork, key, leaseDurationMs, stopped, waiting } from "../support/kept-work.ts";
import { machineArn, type StepFunctions } from "../support/step-functions.ts";

let kept: KeptWork;
let clock: ManualClock;
let steps: StepFunctions;
let other: LeaseClient;
/** The tasks of the work that were sent. */
let sent: string[];
/** Tasks of the work that hang, or that fail. */
let trouble: Map<string, "hangs" | "fails">;

function task(name: string, more: Record<string, Json> = { End: true }): Record<string, Json> {
  return {
    Type: "Task",
    QueryLanguage: "JSONata",
    Resource: `arn:aws:states:::work:${name}`,
    ...more,
  };
}

const everyError = [{ ErrorEquals: ["States.ALL"], MaxAttempts: 2, IntervalSeconds: 1 }];

/** Tasks one after the other and side by side, waits, retries, and a catch that cleans up. */
const work = {
  StartAt: "Fetch",
  States: {
    Fetch: task("fetch", { Next: "Pause", Retry: everyError, TimeoutSeconds: 30 }),
    Pause: { Type: "Wait", QueryLanguage: "JSONata", Seconds: 4, Next: "Both" },
    Both: {
      Type: "Parallel",
      QueryLanguage: "JSONata",
      Branches: [
        { StartAt: "Left", States: { Left: task("left", { TimeoutSeconds: "{% 10 + 20 %}", End: true }) } },
        {
          StartAt: "Each",
          States: {
            Each: {
              Type: "Map",
              QueryLanguage: "JSONata",
              Items: [1, 2],
              ItemProcessor: { StartAt: "Store", States: { Store: task("store") } },
              End: true,
            },
          },
        },
      ],
      Catch: [{ ErrorEquals: ["States.ALL"], Next: "CleanUp" }],
      Next: "Finish",
    },
    CleanUp: task("cleanUp"),
    Finish: task("finish"),
  },
};

const define = (terms: Partial<WorkflowTerms> = {}): string => kept.define({ work, ...terms });
const start = (machine: string, forMs = 0): Promise<string> => kept.run(machine, forMs);
const describeExecution = (arn: string) => kept.describe(arn);
const state = (arn: string): string | undefined => kept.entered(arn).at(-1);

beforeEach(() => {
  kept = new KeptWork();
  // Only a keeper's looks tell of an end.
  kept.deliver = () => {};
  ({ clock, steps } = kept);
  other = kept.clientOf("other");
  sent = [];
  trouble = new Map();
  for (const name of ["fetch", "left", "store", "cleanUp", "finish"]) {
    steps.resources.set(`work:${name}`, () => {
      sent.push(name);
      if (trouble.get(name) === "hangs") return new Promise(() => {});
      if (trouble.get(name) === "fails") throw new StatesError("OutOfStock", "no mugs");
      return {};
    });
  }
});

describe("a leased workflow that is redriven", () => {
  /** What another does with the lock before the redrive. */
  const meanwhile: [string, () => Promise<void>][] = [
    ["at once", async () => {}],
    ["after its keeper let the lock go", () => clock.advance(2 * beatMs)],
    [
      "when another holds the lock",
      async () => {
        await clock.advance(leaseDurationMs + 2 * beatMs);
        await other.acquire(key, { leaseDurationMs: 3_600_000 });
      },
    ],
    ["after a day", () => clock.advance(86_400_000)],
  ];

  describe.each(meanwhile)("%s", (_, pass) => {
    it.each(["fetch", "left", "store", "finish"])(
      "and was stopped while %s was under way, sends no task of the work any more",
      async (name) => {
        trouble.set(name, "hangs");
        const execution = await start(define(), 6_000);
        expect(sent).toContain(name);
        steps.machines.stop(execution);
        trouble.clear();
        await pass();
        const before = [...sent];
        const token = steps.lease(key)?.token;
        steps.machines.redrive(execution);
        await clock.advance(60_000);
        expect(sent).toEqual(before);
        expect(describeExecution(execution)).toMatchObject(
          failed(
            "LeaseLostError",
            "the execution was redriven after its lease had ended: start a new execution",
          ),
        );
        if (steps.lease(key)?.owner === "other") expect(steps.lease(key)?.token).toBe(token);
        else expect(steps.lease(key)?.token).toBeUndefined();
      },
    );
  });

  it("and had failed, fails again as it did, and sends no task any more", async () => {
    trouble.set("finish", "fails");
    const execution = await start(define(), 10_000);
    expect(describeExecution(execution)).toMatchObject(failed("OutOfStock"));
    trouble.clear();
    const before = [...sent];
    steps.machines.redrive(execution);
    await clock.advance(30_000);
    expect(sent).toEqual(before);
    expect(describeExecution(execution)).toMatchObject(failed("OutOfStock", "no mugs"));
  });

  it("and had too much data, which runs its work from the beginning, sends no task any more", async () => {
    const big = {
      StartAt: "Fetch",
      States: {
        Fetch: task("fetch", { Output: "{% $pad('', 262143, 'x') %}", Next: "End" }),
        End: { Type: "Pass", QueryLanguage: "JSONata", End: true },
      },
    };
    const execution = await start(define({ work: big }), 1_000);
    expect(describeExecution(execution).error).toBe("States.DataLimitExceeded");
    steps.machines.redrive(execution);
    await clock.advance(30_000);
    expect(sent).toEqual(["fetch"]);
    expect(describeExecution(execution)).toMatchObject(failed("LeaseLostError"));
  });

  it("while its work waits, ends as lost when the wait is over, and never as a success", async () => {
    const execution = await start(define({ work: waiting(60) }), 1_000);
    steps.machines.stop(execution);
    await clock.advance(30_000);
    steps.machines.redrive(execution);
    await clock.advance(61_000);
    expect(describeExecution(execution)).toMatchObject(failed("LeaseLostError"));
  });

  it.each([
    ["Leasehold_Acquire", "dynamodb:updateItem"],
    ["Leasehold_StartKeeper", "sfn:startExecution.waitForTaskToken"],
  ])("and was stopped in %s, does no work, whatever the request did before", async (name, action) => {
    for (const lands of [true, false]) {
      const definition = define();
      if (lands) steps.loseAnswers(action, 1);
      else steps.fail(action, 1);
      const execution = await start(definition, 100);
      expect(state(execution)).toBe(name);
      steps.machines.stop(execution);
      // A lease is taken for a minute, whatever it is to last later.
      await clock.advance(62_000);
      const thief = await other.acquire(key);
      steps.machines.redrive(execution);
      await clock.advance(5_000);
      expect(sent).toEqual([]);
      expect(describeExecution(execution)).toMatchObject(failed("LeaseLostError"));
      expect(steps.lease(key)?.token).toBe(thief.token);
      await thief.release();
    }
  });

  it("and was stopped while it waited for the lock, does not wait again", async () => {
    const lease = await other.acquire(key, { heartbeat: true });
    const execution = await start(define({ whenHeld: "wait" }), 1_000);
    expect(state(execution)).toBe("Leasehold_Park");
    steps.machines.stop(execution);
    steps.machines.redrive(execution);
    await clock.advance(1_000);
    expect(describeExecution(execution)).toMatchObject(failed("LeaseLostError"));
    await lease.release();
  });

  it("after its work was done, reports its success: nothing was left but the release", async () => {
    const definition = define();
    const execution = await start(definition, 3_900);
    // Its keeper's renewals get through, its own release does not.
    steps.fail("dynamodb:updateItem", 1);
    await clock.advance(150);
    expect([state(execution), sent.at(-1)]).toEqual(["Leasehold_Release", "finish"]);
    steps.machines.stop(execution);
    await clock.advance(30_000);
    steps.machines.redrive(execution);
    await clock.advance(30_000);
    expect(describeExecution(execution).status).toBe("SUCCEEDED");
    expect(sent.filter((name) => name === "finish")).toHaveLength(1);
  });
});

describe("the guard of redriven workflows", () => {
  let guard: string;

  beforeEach(() => {
    guard = steps.define("guard", redriveGuardDefinition());
  });

  const guarding = async (execution: string): Promise<string> => {
    const { executionArn } = steps.machines.start({ stateMachineArn: guard, input: { execution } });
    await clock.advance(1_000);
    return executionArn;
  };

  it("stops the execution by name, and tries for an hour while Step Functions does not answer", async () => {
    trouble.set("finish", "hangs");
    const execution = await start(define(), 5_000);
    steps.fail("sfn:stopExecution", 60, "Sfn.SfnException");
    const stopping = await guarding(execution);
    await clock.advance(3_600_000);
    expect(describeExecution(stopping).status).toBe("SUCCEEDED");
    expect(describeExecution(execution)).toMatchObject(stopped());
  });

  it("has nothing to do where the execution is gone", async () => {
    const gone = machineArn("workflow").replace("stateMachine", "execution");
    expect(describeExecution(await guarding(`${gone}:gone`)).status).toBe("SUCCEEDED");
  });
});
