import {
  alarmOnRedriveGuard,
  type JobTarget,
  LeasedWorkflow,
  LeasedWorkflowAlarms,
  type LeasedWorkflowProps,
  LeaseHeartbeat,
  LeaseHeartbeatAlarms,
  LeaseTable,
  LeaseWakeup,
  LeaseWakeupAlarms,
  SingletonJob,
  type SingletonJobProps,
  SingletonJobTarget,
  SingletonJobTrigger,
} from "@leasehold/cdk";
import { App, Stack } from "aws-cdk-lib";
import { Template } from "aws-cdk-lib/assertions";
import { TableEncryptionV2 } from "aws-cdk-lib/aws-dynamodb";
import { Rule } from "aws-cdk-lib/aws-events";
import { Key } from "aws-cdk-lib/aws-kms";
import { Pass } from "aws-cdk-lib/aws-stepfunctions";
import { describe, expect, test } from "vitest";
import { env, functionIn, everyFiveMinutes as schedule } from "../support/constructs.ts";
import { machineIn } from "../support/jobs.ts";

/** The platform's stack, which has the table and what comes with it, and the stack of a team that uses them. */
function newWorld() {
  const app = new App();
  const platform = new Stack(app, "Platform", { env });
  const team = new Stack(app, "Team", { env });
  const functions = new Stack(app, "Functions", { env });
  const encryption = TableEncryptionV2.customerManagedKey(new Key(platform, "Key"));
  const table = new LeaseTable(platform, "Leases", { stream: true, encryption });
  return { app, platform, team, functions, table };
}

type World = ReturnType<typeof newWorld>;

const heartbeatOf = ({ platform, table }: World): LeaseHeartbeat =>
  new LeaseHeartbeat(platform, "Heartbeat", { table });
const wakeupOf = ({ platform, table }: World): LeaseWakeup => new LeaseWakeup(platform, "Wakeup", { table });
/** A workflow of the team's stack, or of another one. */
const workflowOf = (
  { team, table }: World,
  more: Partial<LeasedWorkflowProps> = {},
  stack = team,
): LeasedWorkflow =>
  new LeasedWorkflow(stack, "Import", { table, work: new Pass(stack, "Nothing"), ...more });
/** A job of the team's stack. */
const jobOf = (
  { team, table }: World,
  target: JobTarget,
  more: Partial<SingletonJobProps> = {},
): SingletonJob => new SingletonJob(team, "Job", { table, schedule, target, ...more });
const { lambda, lockedLambda, workflow: leased } = SingletonJobTarget;

/** Each defines something in the team's stack that uses what is in the platform's. */
const shapes: Readonly<Record<string, (world: World) => unknown>> = {
  "a workflow that uses the table": (world) => workflowOf(world),
  "a workflow that uses the heartbeat": (world) =>
    workflowOf(world, { heartbeat: heartbeatOf(world), key: "import" }),
  "a workflow with a name of its own that uses the heartbeat": (world) =>
    workflowOf(world, { heartbeat: heartbeatOf(world), key: "import", stateMachineName: "acme-import" }),
  "a workflow that waits by the wakeup and is kept by the heartbeat, with its alarms": (world) => {
    const [heartbeat, wakeup] = [heartbeatOf(world), wakeupOf(world)];
    const workflow = workflowOf(world, { heartbeat, wakeup, whenHeld: "replace" });
    new LeasedWorkflowAlarms(world.team, "Alarms", { workflow });
    new LeaseHeartbeatAlarms(world.team, "HeartbeatAlarms", { heartbeat });
    new LeaseWakeupAlarms(world.team, "WakeupAlarms", { wakeup });
    alarmOnRedriveGuard(workflow.redriveGuard);
  },
  "a wakeup, and a workflow that waits by it": (world) => {
    const wakeup = new LeaseWakeup(world.team, "Wakeup", { table: world.table });
    workflowOf(world, { wakeup, whenHeld: "wait" });
  },
  "a wakeup whose handler is of the functions' stack, with its alarms": ({ team, functions, table }) => {
    const wakeup = new LeaseWakeup(team, "Wakeup", { table, handler: functionIn(functions, "Wake") });
    new LeaseWakeupAlarms(team, "Alarms", { wakeup });
  },
  "a state machine that the heartbeat guards": (world) => heartbeatOf(world).guard(machineIn(world.team)),
  "a function that starts keepers of the heartbeat": (world) =>
    heartbeatOf(world).grantStart(functionIn(world.team, "Worker")),
  "a durable function that the wakeup serves": (world) => {
    const fn = functionIn(world.team, "Approve");
    wakeupOf(world).serve(fn);
    world.table.grants.useLeases(fn);
    fn.addEnvironment("LEASEHOLD_TABLE_NAME", world.table.nameFor(fn));
  },
  "a function that uses the locks, and one that reads the stream": ({ team, table }) => {
    table.grants.usePrimitives(functionIn(team, "Worker"), { keyPrefixes: ["orders/"] });
    table.grants.readStream(functionIn(team, "Reader"));
  },
  "a job of a function that takes the lock, which is of the functions' stack": (world) =>
    jobOf(world, lambda(functionIn(world.functions, "Close"))),
  "a queued job of a function of the functions' stack": (world) =>
    jobOf(world, lambda(functionIn(world.functions, "Close")), queued(world)),
  "a queued job of a locked function, which is kept by the heartbeat": (world) =>
    jobOf(world, lockedLambda(functionIn(world.functions, "Report")), queued(world)),
  "a job of a workflow": (world) =>
    jobOf(world, leased(workflowOf(world, { heartbeat: heartbeatOf(world), key: "import" }))),
};

const queued = (world: World) =>
  ({ overlap: "queue", wakeup: wakeupOf(world), keeper: heartbeatOf(world) }) as const;

test.each(Object.entries(shapes))("in stacks of one account and region: %s", (_, define) => {
  const world = newWorld();
  define(world);
  world.app.synth();
  expect(world.platform.dependencies.map(({ node }) => node.path)).toEqual([]);
  expect(world.functions.dependencies.map(({ node }) => node.path)).not.toContain("Team");
  expect(JSON.stringify(Template.fromStack(world.platform).toJSON())).not.toContain("Fn::ImportValue");
});

describe("permissions across stacks", () => {
  test("are a policy of the served stack, under a name that no other stack of this account has", () => {
    const world = newWorld();
    const wakeup = wakeupOf(world);
    const heartbeat = heartbeatOf(world);
    for (const stack of [world.team, world.functions])
      workflowOf(world, { heartbeat, wakeup, whenHeld: "wait" }, stack);
    const names = [world.team, world.functions].map((stack) => {
      const policies = Object.values(Template.fromStack(stack).findResources("AWS::IAM::Policy"));
      return policies
        .map(({ Properties }) => String(Properties.PolicyName))
        .filter((name) => name.startsWith("Leasehold-"));
    });
    // Of the keepers, of the machine that lets go, and of the waking function.
    expect(names.map((those) => those.length)).toEqual([3, 3]);
    expect(new Set(names.flat()).size).toBe(6);
    const served = JSON.stringify(Template.fromStack(world.team).findResources("AWS::IAM::Policy"));
    for (const action of ["states:SendTaskSuccess", "states:DescribeExecution", "states:StopExecution"]) {
      expect(served).toContain(action);
    }
  });
});

describe("a heartbeat and a wakeup of another app", () => {
  const arn = (service: string, resource: string): string =>
    `arn:aws:${service}:eu-west-1:111122223333:${resource}`;
  const role = (name: string): string => `arn:aws:iam::111122223333:role/${name}`;

  function imported(stack: Stack) {
    const table = LeaseTable.fromLeaseTableName(stack, "Leases", "leases");
    const heartbeat = LeaseHeartbeat.fromLeaseHeartbeatAttributes(stack, "Heartbeat", {
      table,
      stateMachineArn: arn("states", "stateMachine:Keepers"),
      roleArn: role("Keepers"),
      endedStateMachineArn: arn("states", "stateMachine:Ended"),
      endedRoleArn: role("Ended"),
    });
    const handlerRoleArn = role("Wake");
    const wakeup = LeaseWakeup.fromLeaseWakeupAttributes(stack, "Wakeup", { table, handlerRoleArn });
    return { table, heartbeat, wakeup };
  }

  test("serve workflows and queued jobs, whose stack adds to their roles", () => {
    const templates = ["Orders", "Billing"].map((id) => {
      const stack = new Stack(new App(), id, { env });
      const { table, heartbeat, wakeup } = imported(stack);
      const terms = { table, heartbeat, wakeup, whenHeld: "wait" } as const;
      new LeasedWorkflow(stack, "Import", { ...terms, work: new Pass(stack, "Nothing") });
      new LeaseHeartbeatAlarms(stack, "Alarms", { heartbeat });
      new SingletonJob(stack, "Job", {
        table,
        schedule,
        overlap: "queue",
        keeper: heartbeat,
        wakeup,
        target: SingletonJobTarget.lambda(functionIn(stack, "Close")),
      });
      return Template.fromStack(stack);
    });
    const names = templates.map((template) =>
      Object.values(template.findResources("AWS::IAM::Policy"))
        .filter(({ Properties }) => ["Keepers", "Ended", "Wake"].includes(Properties.Roles[0]))
        .map(({ Properties }) => Properties.PolicyName),
    );
    expect(names.map((those) => those.length)).toEqual([3, 3]);
    expect(new Set(names.flat()).size).toBe(6);
  });

  test("are refused where an ARN is missing", () => {
    const stack = new Stack(new App(), "Orders", { env });
    const table = LeaseTable.fromLeaseTableName(stack, "Leases", "leases");
    expect(() => LeaseWakeup.fromLeaseWakeupAttributes(stack, "Wakeup", { table } as never)).toThrow(
      "handlerRoleArn is undefined: give a text",
    );
    expect(() => LeaseHeartbeat.fromLeaseHeartbeatAttributes(stack, "Heart", { table } as never)).toThrow(
      "stateMachineArn is undefined: give a text",
    );
  });

  test("serve a table that two stacks have imported, and no other one", () => {
    const app = new App();
    const [platform, team] = [new Stack(app, "Platform", { env }), new Stack(app, "Team", { env })];
    const { heartbeat } = imported(platform);
    const work = new Pass(team, "Nothing");
    const same = LeaseTable.fromLeaseTableName(team, "Leases", "leases");
    new LeasedWorkflow(team, "Import", { table: same, heartbeat, work });
    const table = LeaseTable.fromLeaseTableName(team, "Others", "others");
    expect(() => new LeasedWorkflow(team, "Other", { table, heartbeat, work })).toThrow(
      "heartbeat is of the table Platform/Leases: give one of Team/Others",
    );
  });
});

describe("another region or account", () => {
  const elsewhere = [
    ["region", "eu-west-1", "us-east-1", { ...env, region: "us-east-1" }],
    ["account", "111122223333", "444455556666", { ...env, account: "444455556666" }],
  ] as const;

  test.each(elsewhere)("of the %s is refused by name to those that serve", (place, here, there, of) => {
    const world = newWorld();
    const other = new Stack(world.app, "Other", { env: of });
    const machine = machineIn(other);
    const message = (by: string, does: string): string =>
      `Other/Machine is of the ${place} ${there}, and Platform/${by} can ${does} of its own ${place} (${here}) only: ` +
      "define both in one account and region";
    expect(() => heartbeatOf(world).guard(machine)).toThrow(message("Heartbeat", "guard state machines"));
    expect(() => wakeupOf(world).serve(machine)).toThrow(message("Wakeup", "wake waiters"));
  });
});

describe("the schedule of a job", () => {
  /** The policies that have to be deployed before what starts the job: the schedule, or a rule. */
  function policiesBefore(stack: Stack, start = "JobSchedule"): string[] {
    const template = Template.fromStack(stack);
    const [schedules, rules] = ["AWS::Scheduler::Schedule", "AWS::Events::Rule"].map((type) =>
      Object.entries(template.findResources(type)),
    );
    const [, found] = [...(schedules ?? []), ...(rules ?? [])].find(([id]) => id.startsWith(start)) ?? [];
    const policies = Object.keys(template.findResources("AWS::IAM::Policy"));
    return ((found?.DependsOn ?? []) as string[]).filter((id) => policies.includes(id)).sort();
  }

  const keeperPolicies = [
    expect.stringMatching(/^LeaseholdHeartbeat\w{8}EndedStateMachineRoleDefaultPolicy/),
    expect.stringMatching(/^LeaseholdHeartbeat\w{8}Guarding/),
  ];

  test.each<[string, (world: World) => SingletonJob, start?: string]>([
    ["a locked function", (world) => jobOf(world, lockedLambda(functionIn(world.team, "Report")))],
    ["a workflow", (world) => jobOf(world, leased(workflowOf(world)))],
    [
      "a queued function",
      (world) =>
        jobOf(world, lambda(functionIn(world.team, "Close")), { overlap: "queue", wakeup: wakeupOf(world) }),
    ],
    [
      "the stack's second workflow, which shares its keepers with the first",
      (world) => {
        workflowOf(world);
        return jobOf(world, lockedLambda(functionIn(world.team, "Report")));
      },
    ],
    [
      "what a rule starts",
      (world) => {
        const { team, table } = world;
        const rule = new Rule(team, "Uploaded", { eventPattern: { source: ["shop"] } });
        const trigger = SingletonJobTrigger.rule(rule);
        return new SingletonJob(team, "Job", { table, trigger, target: leased(workflowOf(world)) });
      },
      "Uploaded",
    ],
  ])("waits for the permissions of the keepers of %s", (_, define, start) => {
    const world = newWorld();
    define(world);
    world.app.synth();
    expect(policiesBefore(world.team, start)).toEqual(keeperPolicies);
  });

  test("waits for its own stack's additions to a heartbeat of another stack", () => {
    const world = newWorld();
    jobOf(world, lockedLambda(functionIn(world.team, "Report")), { keeper: heartbeatOf(world) });
    world.app.synth();
    expect(policiesBefore(world.team)).toEqual([
      expect.stringMatching(/^LeaseholdPlatformHeartbeatEnded/),
      expect.stringMatching(/^LeaseholdPlatformHeartbeatStateMachine/),
    ]);
  });

  test("can be in another stack than the workflow, which does not wait for it", () => {
    const world = newWorld();
    const { app, platform, team } = world;
    jobOf(world, leased(workflowOf(world, {}, platform)));
    app.synth();
    expect(team.dependencies).toContain(platform);
    expect(platform.dependencies).toEqual([]);
  });
});
