import {
  alarmOnRedriveGuard,
  LeasedWorkflow,
  LeasedWorkflowAlarms,
  LeaseHeartbeat,
  LeaseHeartbeatAlarms,
  LeaseTable,
  LeaseWakeup,
  LeaseWakeupAlarms,
  SingletonJob,
  SingletonJobTarget,
} from "@leasehold/cdk";
import { App, Duration, Stack } from "aws-cdk-lib";
import { Template } from "aws-cdk-lib/assertions";
import { TableEncryptionV2 } from "aws-cdk-lib/aws-dynamodb";
import { Key } from "aws-cdk-lib/aws-kms";
import { Code, Function as LambdaFunction, Runtime } from "aws-cdk-lib/aws-lambda";
import { ScheduleExpression } from "aws-cdk-lib/aws-scheduler";
import { DefinitionBody, Pass, StateMachine } from "aws-cdk-lib/aws-stepfunctions";
import { describe, expect, test } from "vitest";

const env = { account: "111122223333", region: "eu-west-1" };
const schedule = ScheduleExpression.rate(Duration.minutes(5));

/** The platform's stack, which has the table and what comes with it, and the stack of a team that uses them. */
function newWorld(envOfStacks: typeof env | undefined = env) {
  const app = new App();
  const props = envOfStacks === undefined ? {} : { env: envOfStacks };
  const platform = new Stack(app, "Platform", props);
  const team = new Stack(app, "Team", props);
  const functions = new Stack(app, "Functions", props);
  const encryption =
    envOfStacks === undefined ? undefined : TableEncryptionV2.customerManagedKey(new Key(platform, "Key"));
  const table = new LeaseTable(platform, "Leases", { stream: true, ...(encryption ? { encryption } : {}) });
  return { app, platform, team, functions, table };
}

type World = ReturnType<typeof newWorld>;

function functionIn(stack: Stack, id: string): LambdaFunction {
  const code = Code.fromInline("exports.handler = async () => ({});");
  return new LambdaFunction(stack, id, { runtime: Runtime.NODEJS_24_X, handler: "index.handler", code });
}

const work = ({ team }: World): Pass => new Pass(team, "Nothing");
const heartbeatOf = ({ platform, table }: World): LeaseHeartbeat =>
  new LeaseHeartbeat(platform, "Heartbeat", { table });
const wakeupOf = ({ platform, table }: World): LeaseWakeup => new LeaseWakeup(platform, "Wakeup", { table });

/** Each defines something in the team's stack that uses what is in the platform's. */
const shapes: Readonly<Record<string, (world: World) => unknown>> = {
  "a workflow that uses the table": (world) =>
    new LeasedWorkflow(world.team, "Import", { table: world.table, work: work(world) }),
  "a workflow that uses the heartbeat": (world) =>
    new LeasedWorkflow(world.team, "Import", {
      table: world.table,
      heartbeat: heartbeatOf(world),
      key: "import",
      work: work(world),
    }),
  "a workflow that waits by the wakeup": (world) =>
    new LeasedWorkflow(world.team, "Import", {
      table: world.table,
      wakeup: wakeupOf(world),
      whenHeld: "wait",
      work: work(world),
    }),
  "a workflow that waits by the wakeup and is kept by the heartbeat, with its alarms": (world) => {
    const heartbeat = heartbeatOf(world);
    const wakeup = wakeupOf(world);
    const workflow = new LeasedWorkflow(world.team, "Import", {
      table: world.table,
      heartbeat,
      wakeup,
      whenHeld: "replace",
      work: work(world),
    });
    new LeasedWorkflowAlarms(world.team, "Alarms", { workflow });
    new LeaseHeartbeatAlarms(world.team, "HeartbeatAlarms", { heartbeat });
    new LeaseWakeupAlarms(world.team, "WakeupAlarms", { wakeup });
    alarmOnRedriveGuard(workflow.redriveGuard);
  },
  "a wakeup, and a workflow that waits by it": ({ team, table, ...world }) => {
    const wakeup = new LeaseWakeup(team, "Wakeup", { table });
    const waiting = work({ team, table, ...world });
    new LeasedWorkflow(team, "Import", { table, wakeup, whenHeld: "wait", work: waiting });
  },
  "a wakeup whose handler is of the functions' stack, with its alarms": ({ team, functions, table }) => {
    const wakeup = new LeaseWakeup(team, "Wakeup", { table, handler: functionIn(functions, "Wake") });
    new LeaseWakeupAlarms(team, "Alarms", { wakeup });
  },
  "a state machine that the heartbeat guards": (world) => {
    const definitionBody = DefinitionBody.fromChainable(work(world));
    heartbeatOf(world).guard(new StateMachine(world.team, "Machine", { definitionBody }));
  },
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
  "a job of a function that takes the lock": ({ team, table }) =>
    new SingletonJob(team, "Job", {
      table,
      schedule,
      target: SingletonJobTarget.lambda(functionIn(team, "Close")),
    }),
  "a job of a function that takes the lock, which is of the functions' stack": ({ team, functions, table }) =>
    new SingletonJob(team, "Job", {
      table,
      schedule,
      target: SingletonJobTarget.lambda(functionIn(functions, "Close")),
    }),
  "a queued job of a function of the functions' stack": (world) =>
    new SingletonJob(world.team, "Job", {
      table: world.table,
      schedule,
      overlap: "queue",
      wakeup: wakeupOf(world),
      keeper: heartbeatOf(world),
      target: SingletonJobTarget.lambda(functionIn(world.functions, "Close")),
    }),
  "a job of a locked function": ({ team, table }) =>
    new SingletonJob(team, "Job", {
      table,
      schedule,
      target: SingletonJobTarget.lockedLambda(functionIn(team, "Report")),
    }),
  "a queued job of a locked function, which is kept by the heartbeat": (world) =>
    new SingletonJob(world.team, "Job", {
      table: world.table,
      schedule,
      overlap: "queue",
      keeper: heartbeatOf(world),
      wakeup: wakeupOf(world),
      target: SingletonJobTarget.lockedLambda(functionIn(world.functions, "Report")),
    }),
  "a job of a workflow": (world) =>
    new SingletonJob(world.team, "Job", {
      table: world.table,
      schedule,
      target: SingletonJobTarget.workflow(
        new LeasedWorkflow(world.team, "Import", {
          table: world.table,
          heartbeat: heartbeatOf(world),
          key: "import",
          work: work(world),
        }),
      ),
    }),
};

describe.each([
  ["of one account and region", env],
  ["that leave their account and region open", undefined],
])("in stacks %s", (_, envOfStacks) => {
  test.each(Object.entries(shapes))("%s", (_name, define) => {
    const world = newWorld(envOfStacks);
    define(world);
    world.app.synth();
    expect(world.platform.dependencies.map(({ node }) => node.path)).toEqual([]);
    expect(world.functions.dependencies.map(({ node }) => node.path)).not.toContain("Team");
    expect(JSON.stringify(Template.fromStack(world.platform).toJSON())).not.toContain("Fn::ImportValue");
  });
});
