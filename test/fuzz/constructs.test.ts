// Props of constructs: each construct refuses them with an error that says what to give, or its template can be synthesized.

import {
  alarmOnBacklog,
  alarmOnEvent,
  alarmOnLasting,
  alarmOnRedriveGuard,
  alarmOnSilence,
  InvokeFunction,
  JobAlarms,
  LeaseDashboard,
  LeasedWorkflow,
  LeasedWorkflowAlarms,
  LeaseHeartbeat,
  LeaseHeartbeatAlarms,
  LeaseHistory,
  LeaseTable,
  LeaseTableAlarms,
  LeaseWakeup,
  LeaseWakeupAlarms,
  SingletonJob,
  SingletonJobTarget,
  SingletonJobTrigger,
  TaskTrigger,
} from "@leasehold/cdk";
import { App, Duration, Lazy, RemovalPolicy, Stack } from "aws-cdk-lib";
import { Template } from "aws-cdk-lib/assertions";
import { Billing, MultiRegionConsistency, TableEncryptionV2 } from "aws-cdk-lib/aws-dynamodb";
import { Cluster, FargateTaskDefinition, PropagatedTagSource } from "aws-cdk-lib/aws-ecs";
import { Rule } from "aws-cdk-lib/aws-events";
import { PolicyDocument, Role, ServicePrincipal } from "aws-cdk-lib/aws-iam";
import { Code, Function as LambdaFunction, Runtime } from "aws-cdk-lib/aws-lambda";
import { LogGroup, RetentionDays } from "aws-cdk-lib/aws-logs";
import { Schedule, ScheduleExpression, TimeWindow } from "aws-cdk-lib/aws-scheduler";
import { Queue } from "aws-cdk-lib/aws-sqs";
import {
  AwsOwnedEncryptionConfiguration,
  type IStateMachine,
  LogLevel,
  Pass,
  StateMachine,
  TaskInput,
} from "aws-cdk-lib/aws-stepfunctions";
import { EcsFargateLaunchTarget, ExecutionClass, WorkerTypeV2 } from "aws-cdk-lib/aws-stepfunctions-tasks";
import fc from "fast-check";
import { fuzz } from "./fuzz.ts";
import {
  fewHostileOptions,
  hostileText,
  hostileValue,
  made,
  madeOptions,
  type OptionsRecipe,
} from "./hostile.ts";

// biome-ignore lint/suspicious/noExplicitAny: bad input is what is tested.
type Anything = any;

/** A stack, and the parts that props refer to, each made when it is first asked for. */
class Scene {
  readonly stack = new Stack(new App(), "Test", { env: { account: "111122223333", region: "eu-west-1" } });
  readonly #made = new Map<string, unknown>();

  part(name: string): unknown {
    if (!this.#made.has(name)) this.#made.set(name, parts[name]?.(this));
    return this.#made.get(name);
  }
}

const parts: Readonly<Record<string, (scene: Scene) => unknown>> = {
  table: ({ stack }) => new LeaseTable(stack, "Leases", { stream: true }),
  quietTable: ({ stack }) => new LeaseTable(stack, "Quiet"),
  farTable: ({ stack }) =>
    LeaseTable.fromLeaseTableArn(stack, "Far", "arn:aws:dynamodb:us-east-1:111122223333:table/far"),
  role: ({ stack }) => new Role(stack, "Worker", { assumedBy: new ServicePrincipal("lambda.amazonaws.com") }),
  fn: ({ stack }) =>
    new LambdaFunction(stack, "Fn", {
      runtime: Runtime.NODEJS_24_X,
      handler: "index.handler",
      code: Code.fromInline("exports.handler = () => 1"),
    }),
  importedFn: ({ stack }) => LambdaFunction.fromFunctionName(stack, "Imported", "imported"),
  queue: ({ stack }) => new Queue(stack, "Queue"),
  logGroup: ({ stack }) => new LogGroup(stack, "LogGroup"),
  work: ({ stack }) => Pass.jsonata(stack, "Work"),
  heldWork: ({ stack }) => Pass.jsonata(stack, "Leasehold_Work"),
  machine: ({ stack }) => StateMachine.fromStateMachineName(stack, "Machine", "machine"),
  heartbeat: (scene) =>
    new LeaseHeartbeat(scene.stack, "Heart", { table: scene.part("table") as LeaseTable }),
  wakeup: (scene) => new LeaseWakeup(scene.stack, "Wake", { table: scene.part("table") as LeaseTable }),
  workflow: (scene) =>
    new LeasedWorkflow(scene.stack, "Flow", {
      table: scene.part("table") as LeaseTable,
      work: Pass.jsonata(scene.stack, "FlowWork"),
    }),
  guard: (scene) => (scene.part("workflow") as LeasedWorkflow).redriveGuard,
  metric: (scene) => (scene.part("table") as LeaseTable).metricAcquired(),
  runs: (scene) => ({ succeeded: scene.part("metric"), failed: { failed: scene.part("metric") } }),
  lambdaTarget: (scene) => SingletonJobTarget.lambda(scene.part("fn") as LambdaFunction),
  lockedTarget: (scene) => SingletonJobTarget.lockedLambda(scene.part("importedFn") as LambdaFunction),
  taskTarget: () => SingletonJobTarget.glueJob({ glueJobName: "import" }),
  ruleTrigger: (scene) =>
    SingletonJobTrigger.rule(new Rule(scene.stack, "Rule", { eventPattern: { source: ["shop"] } })),
  queueTrigger: (scene) => SingletonJobTrigger.queue(scene.part("queue") as Queue),
  workflowTarget: (scene) => SingletonJobTarget.workflow(scene.part("workflow") as LeasedWorkflow),
  cluster: ({ stack }) => new Cluster(stack, "Cluster"),
  taskDefinition: ({ stack }) => new FargateTaskDefinition(stack, "Definition"),
  launchTarget: () => new EcsFargateLaunchTarget(),
  job: (scene) =>
    new SingletonJob(scene.stack, "Job", {
      table: scene.part("table") as LeaseTable,
      schedule: ScheduleExpression.rate(Duration.minutes(5)),
      target: scene.part("lambdaTarget") as never,
    }),
  encryption: () => TableEncryptionV2.awsManagedKey(),
  policy: () => new PolicyDocument(),
  action: () => ({ bind: () => ({ alarmActionArn: "arn:aws:sns:eu-west-1:111122223333:oncall" }) }),
  rate: () => ScheduleExpression.rate(Duration.hours(1)),
  name: () => "job",
  replica: () => ({ region: "eu-central-1" }),
};

/** A part of the scene, in place of a value that can only be made in it. */
class Part {
  readonly names: readonly string[];
  readonly isList: boolean;
  constructor(names: readonly string[], isList = false) {
    this.names = names;
    this.isList = isList;
  }
  of(scene: Scene): unknown {
    const all = this.names.map((name) => scene.part(name));
    return this.isList ? all : all[0];
  }
  [fc.toStringMethod](): string {
    return `the part ${this.names}`;
  }
}
const aPart = (...names: readonly string[]): fc.Arbitrary<Part> =>
  fc.constantFrom(...names).map((name) => new Part([name]));
const aList = (name: string): fc.Arbitrary<Part> =>
  fc.constantFrom(new Part([name], true), new Part([name, name], true), new Part([], true));

const duration = fc.constantFrom(
  ...[0, 1, 1_000, 3_000, 60_000, 90_000, 3_600_000, 6 * 86_400_000, 400 * 86_400_000].map((ms) =>
    Duration.millis(ms),
  ),
  Duration.seconds(Lazy.number({ produce: () => 60 })),
);
const flag = fc.boolean();
const text = fc.oneof(fc.constantFrom("orders/", "a*b?$c", "job"), hostileText);
const texts = fc.array(text, { maxLength: 3 });
const count = fc.constantFrom(0, 1, 2, 185, 186, -1, 0.5, 1e9);
const table = aPart("table", "table", "quietTable", "farTable");
const observability = {
  logLevel: fc.constantFrom(...Object.values(LogLevel)),
  logGroup: aPart("logGroup"),
  logRetention: fc.constantFrom(RetentionDays.ONE_DAY, RetentionDays.INFINITE),
  tracing: flag,
};
const settings = { actions: aList("action"), runbookUrl: text };
const alarmText = { actions: aList("action"), description: text };
const metrics = fc.constantFrom("metric").map((name) => ({ failed: new Part([name]) }));

const task = { retryAttempts: count, timeout: duration };

/** One construct or function: its props, those that it needs, and how it is made. */
interface Entry {
  /** @default none: it is made of another value alone */
  readonly props?: Readonly<Record<string, fc.Arbitrary<unknown>>>;
  readonly needs?: Readonly<Record<string, string>>;
  readonly make: (scene: Scene, props: Anything, other: Anything) => unknown;
}

/** A function of a scope, an id and props. */
const scoped = (
  make: (scope: Stack, id: string, props: Anything) => unknown,
  props: NonNullable<Entry["props"]>,
  needs: Entry["needs"] = {},
): Entry => ({ props, needs, make: ({ stack }, given) => make(stack, "It", given) });

/** A construct. */
const construct = (
  Made: new (...args: Parameters<Parameters<typeof scoped>[0]>) => unknown,
  props: NonNullable<Entry["props"]>,
  needs?: Entry["needs"],
): Entry => scoped((...args) => new Made(...args), props, needs);

const grants = ["useLeases", "keepLeases", "usePrimitives", "read", "operate", "inspect"] as const;
const scope = { keys: texts, keyPrefixes: texts };

const entries: Readonly<Record<string, Entry>> = {
  LeaseTable: construct(LeaseTable, {
    billing: fc.constant(Billing.onDemand()),
    contributorInsightsSpecification: fc.record({ enabled: flag }),
    deletionProtection: flag,
    encryption: aPart("encryption"),
    history: duration,
    multiRegionConsistency: fc.constantFrom(...Object.values(MultiRegionConsistency)),
    pointInTimeRecovery: flag,
    removalPolicy: fc.constantFrom(...Object.values(RemovalPolicy)),
    replicas: aList("replica"),
    resourcePolicy: aPart("policy"),
    stream: flag,
    tableName: text,
    warmThroughput: fc.constant({ readUnitsPerSecond: 13_000, writeUnitsPerSecond: 5_000 }),
    witnessRegion: fc.constantFrom("eu-west-2", "eu-west-1"),
  }),
  "LeaseTable.fromLeaseTableName": {
    make: ({ stack }, _, name) => LeaseTable.fromLeaseTableName(stack, "It", name).nameFor(stack),
  },
  "LeaseTable.fromLeaseTableArn": {
    make: ({ stack }, _, arn) => LeaseTable.fromLeaseTableArn(stack, "It", arn).nameFor(stack),
  },
  "LeaseTable.fromLeaseTableAttributes": {
    props: {
      tableName: fc.constant("leases"),
      tableArn: fc.constant("arn:aws:dynamodb:eu-west-1:111122223333:table/leases"),
      tableStreamArn: fc.constant("arn:aws:dynamodb:eu-west-1:111122223333:table/leases/stream/1"),
      encryptionKey: fc.constant(undefined),
      grantIndexPermissions: flag,
    },
    make: ({ stack }, props) => LeaseTable.fromLeaseTableAttributes(stack, "It", props),
  },
  ...Object.fromEntries(
    grants.flatMap((grant): [string, Entry][] => [
      [
        `grants.${grant}'s scope`,
        {
          props: scope,
          make: (scene, props) =>
            (scene.part("table") as LeaseTable).grants[grant](scene.part("role") as Role, props),
        },
      ],
      [
        `grants.${grant}'s grantee`,
        {
          make: (scene, _, grantee) => (scene.part("table") as LeaseTable).grants[grant](grantee),
        },
      ],
    ]),
  ),
  "grants.listLeases and readStream": {
    make: (scene, _, grantee) => {
      const { grants: granting } = scene.part("table") as LeaseTable;
      granting.listLeases(grantee);
      granting.readStream(grantee);
    },
  },
  LeaseHistory: construct(LeaseHistory, { table, keepFor: duration }, { table: "table" }),
  LeaseHeartbeat: construct(
    LeaseHeartbeat,
    {
      ...observability,
      table,
      scope: fc.record(scope, { requiredKeys: [] }),
      retention: duration,
      draining: flag,
    },
    { table: "table" },
  ),
  "heartbeat.guard": {
    props: { key: text, releasesItself: flag, permits: flag },
    make: (scene, props) =>
      (scene.part("heartbeat") as LeaseHeartbeat).guard(scene.part("machine") as StateMachine, props),
  },
  "heartbeat.guard's state machine, grantStart's grantee, and wakeup.serve's waiter": {
    make: (scene, _, given) => {
      (scene.part("heartbeat") as LeaseHeartbeat).grantStart(given);
      (scene.part("heartbeat") as LeaseHeartbeat).guard(given);
    },
  },
  "wakeup.serve": {
    make: (scene, _, given) => (scene.part("wakeup") as LeaseWakeup).serve(given),
  },
  LeaseWakeup: construct(LeaseWakeup, { table, handler: aPart("fn") }, { table: "table" }),
  TaskTrigger: construct(
    TaskTrigger,
    {
      table,
      worker: aPart("fn"),
      keys: fc.constantFrom(["orders"], []),
      keyPrefixes: fc.constantFrom(["orders/"], [""]),
      parallelizationFactor: count,
    },
    { table: "table", worker: "fn" },
  ),
  LeasedWorkflow: construct(
    LeasedWorkflow,
    {
      ...observability,
      table,
      work: aPart("work", "heldWork"),
      key: text,
      leaseDuration: duration,
      lockAtLeastFor: duration,
      whenHeld: fc.constantFrom("fail", "skip", "wait", "replace"),
      waitFor: duration,
      wakeup: aPart("wakeup"),
      once: flag,
      timeout: duration,
      clockSkew: duration,
      retention: duration,
      stateMachineName: fc.constantFrom("acme-import", "an import"),
      role: aPart("role"),
      encryptionConfiguration: fc.constant(new AwsOwnedEncryptionConfiguration()),
      heartbeat: aPart("heartbeat"),
    },
    { table: "table", work: "work" },
  ),
  SingletonJob: construct(
    SingletonJob,
    {
      ...observability,
      alarmActions: aList("action"),
      alarms: flag,
      deadLetterQueue: aPart("queue"),
      enabled: flag,
      heartbeat: duration,
      input: fc.jsonValue(),
      jobName: text,
      keeper: aPart("heartbeat"),
      key: text,
      lockAtLeastFor: duration,
      lockAtMostFor: duration,
      maxEventAge: duration,
      maxInterval: duration,
      once: flag,
      overlap: fc.constantFrom("skip", "queue", "replace"),
      retryAttempts: count,
      runbookUrl: text,
      schedule: fc.constantFrom(
        ScheduleExpression.rate(Duration.minutes(1)),
        ScheduleExpression.rate(Duration.days(30)),
        ScheduleExpression.cron({ minute: "0" }),
        ScheduleExpression.at(new Date(0)),
        ScheduleExpression.expression("rate(0 days)"),
        ScheduleExpression.expression("x"),
        { expressionString: 7 },
      ),
      scheduleGroup: fc.constant(undefined),
      scheduleName: fc.constantFrom("nightly", "each night"),
      start: fc.constantFrom(new Date(0), new Date(Number.NaN)),
      end: fc.constantFrom(new Date(0), new Date(1)),
      skipsInARow: count,
      table,
      target: aPart("lambdaTarget", "lockedTarget", "taskTarget", "workflowTarget"),
      timeWindow: fc.constantFrom(TimeWindow.off(), TimeWindow.flexible(Duration.minutes(5))),
      trigger: aPart("ruleTrigger", "queueTrigger"),
      wakeup: aPart("wakeup"),
    },
    { table: "table", target: "lambdaTarget", schedule: "rate" },
  ),
  "SingletonJobTarget.lambda": {
    props: { retryAttempts: count },
    make: (scene, props) => SingletonJobTarget.lambda(scene.part("fn") as LambdaFunction, props),
  },
  "SingletonJobTarget.lockedLambda": {
    props: { retryAttempts: count, timeout: duration },
    make: (scene, props) => SingletonJobTarget.lockedLambda(scene.part("fn") as LambdaFunction, props),
  },
  "SingletonJobTarget.ecsTask": {
    props: {
      ...task,
      assignPublicIp: flag,
      cluster: aPart("cluster"),
      containerOverrides: fc.constantFrom([]),
      cpu: text,
      enableExecuteCommand: flag,
      launchTarget: fc.constantFrom(new EcsFargateLaunchTarget()),
      memoryMiB: text,
      propagatedTagSource: fc.constantFrom(...Object.values(PropagatedTagSource)),
      securityGroups: fc.constantFrom([]),
      subnets: fc.constantFrom({}),
      taskDefinition: aPart("taskDefinition"),
    },
    needs: { cluster: "cluster", taskDefinition: "taskDefinition", launchTarget: "launchTarget" },
    make: (_, props) => SingletonJobTarget.ecsTask(props),
  },
  "SingletonJobTarget.batchJob": {
    props: {
      ...task,
      arraySize: count,
      attempts: count,
      containerOverrides: fc.constantFrom({}),
      dependsOn: fc.constantFrom([]),
      jobDefinitionArn: text,
      jobQueueArn: text,
      payload: fc.constantFrom(TaskInput.fromObject({})),
      tags: fc.constantFrom({}),
    },
    needs: { jobDefinitionArn: "name", jobQueueArn: "name" },
    make: (_, props) => SingletonJobTarget.batchJob(props),
  },
  "SingletonJobTarget.glueJob": {
    props: {
      ...task,
      arguments: fc.constantFrom({}),
      executionClass: fc.constantFrom(...Object.values(ExecutionClass)),
      glueJobName: text,
      notifyDelayAfter: duration,
      securityConfiguration: text,
      workerConfiguration: fc.constantFrom({ numberOfWorkers: 2, workerTypeV2: WorkerTypeV2.G_1X }),
    },
    needs: { glueJobName: "name" },
    make: (_, props) => SingletonJobTarget.glueJob(props),
  },
  "SingletonJobTarget.stateMachine": {
    props: task,
    make: (scene, props) => SingletonJobTarget.stateMachine(scene.part("machine") as IStateMachine, props),
  },
  "SingletonJobTarget.workflow": {
    props: { stateMachine: aPart("machine"), redriveGuard: aPart("guard") },
    make: (_, props) => SingletonJobTarget.workflow(props),
  },
  "SingletonJob by a trigger": construct(
    SingletonJob,
    {
      deadLetterQueue: aPart("queue"),
      enabled: flag,
      input: fc.jsonValue(),
      lockAtLeastFor: duration,
      maxEventAge: duration,
      maxInterval: duration,
      once: flag,
      overlap: fc.constantFrom("skip", "queue", "replace"),
      retryAttempts: count,
      target: aPart("lambdaTarget", "lockedTarget", "workflowTarget"),
      trigger: aPart("ruleTrigger", "queueTrigger"),
      wakeup: aPart("wakeup"),
    },
    { table: "table", target: "lambdaTarget", trigger: "queueTrigger" },
  ),
  SingletonJobTrigger: {
    make: (_, __, source) => [SingletonJobTrigger.rule(source), SingletonJobTrigger.queue(source)],
  },
  "SingletonJobTarget's functions": {
    make: (_, __, fn) => [SingletonJobTarget.lambda(fn), SingletonJobTarget.lockedLambda(fn)],
  },
  InvokeFunction: {
    make: ({ stack }, _, fn) =>
      new Schedule(stack, "It", {
        schedule: ScheduleExpression.rate(Duration.hours(1)),
        target: new InvokeFunction(fn) as never,
      }),
  },
  JobAlarms: construct(
    JobAlarms,
    {
      ...settings,
      deadLetterQueue: aPart("queue"),
      interval: duration,
      jobName: text,
      maxInterval: duration,
      metrics: aPart("runs"),
      skipsInARow: count,
    },
    { deadLetterQueue: "queue", metrics: "runs", jobName: "name" },
  ),
  LeaseDashboard: construct(LeaseDashboard, {
    dashboardName: text,
    defaultInterval: duration,
    jobs: aList("job"),
    tables: aList("table"),
    workflows: aList("machine"),
  }),
  LeaseHeartbeatAlarms: construct(
    LeaseHeartbeatAlarms,
    { ...settings, heartbeat: aPart("heartbeat") },
    { heartbeat: "heartbeat" },
  ),
  LeaseTableAlarms: construct(LeaseTableAlarms, { ...settings, table }, { table: "table" }),
  LeaseWakeupAlarms: construct(
    LeaseWakeupAlarms,
    { ...settings, wakeup: aPart("wakeup") },
    { wakeup: "wakeup" },
  ),
  LeasedWorkflowAlarms: construct(
    LeasedWorkflowAlarms,
    { ...settings, workflow: aPart("workflow") },
    { workflow: "workflow" },
  ),
  alarmOnRedriveGuard: {
    props: settings,
    make: (scene, props) => alarmOnRedriveGuard(scene.part("guard") as never, props),
  },
  "alarmOnRedriveGuard's guard": { make: (_, __, guard) => alarmOnRedriveGuard(guard) },
  alarmOnEvent: scoped(alarmOnEvent, { ...alarmText, metrics, threshold: count }),
  alarmOnLasting: scoped(alarmOnLasting, { ...alarmText, metric: aPart("metric"), threshold: count }),
  alarmOnSilence: scoped(alarmOnSilence, { ...alarmText, metrics, less: metrics, longest: duration }),
  alarmOnBacklog: scoped(alarmOnBacklog, { ...alarmText, queue: aPart("queue") }, { queue: "queue" }),
};

/** Puts the scene's parts into a recipe, and those that the construct needs where nothing is said of them. */
function placed(recipe: OptionsRecipe, scene: Scene, needs: Readonly<Record<string, string>>): OptionsRecipe {
  if (!("shape" in recipe)) return recipe;
  const all = {
    ...Object.fromEntries(Object.entries(needs).map(([prop, name]) => [prop, { value: new Part([name]) }])),
    ...recipe.options,
  };
  const options = Object.entries(all).map(([prop, each]) => {
    return [prop, "value" in each ? { value: withParts(each.value, scene) } : each] as const;
  });
  return { ...recipe, options: Object.fromEntries(options) };
}

function withParts(value: unknown, scene: Scene): unknown {
  if (value instanceof Part) return value.of(scene);
  const isMap =
    typeof value === "object" && value !== null && Object.values(value).some((each) => each instanceof Part);
  return isMap
    ? Object.fromEntries(Object.entries(value).map(([name, each]) => [name, withParts(each, scene)]))
    : value;
}

/** An error of this package, or one with which the CDK itself refuses props. */
function isRefusal(error: unknown): boolean {
  if (!(error instanceof Error) || error.message.length < 15) return false;
  return (
    error.constructor === Error ||
    ["ValidationError", "UnscopedValidationError"].includes(error.constructor.name)
  );
}

/** Synthesis takes a while: each property tries a family of them. */
const families: Readonly<Record<string, RegExp>> = {
  "tables and grants": /^(LeaseTable(\.|$)|grants|LeaseHistory)/,
  "heartbeats, wake-ups and workflows": /^(heartbeat|wakeup|LeaseHeartbeat$|LeaseWakeup$|LeasedWorkflow$)/,
  "jobs and their targets": /^(SingletonJob|InvokeFunction)/,
  "alarms and dashboards": /alarm|Alarms|Dashboard/,
};

for (const [family, members] of Object.entries(families)) {
  const names = Object.keys(entries).filter((name) => members.test(name));
  fuzz(
    `${family}: any props are refused with what to give, or make a template`,
    fc.constantFrom(...names).chain((name) =>
      fc.record({
        name: fc.constant(name),
        props: fewHostileOptions(entries[name]?.props ?? {}),
        other: hostileValue,
      }),
    ),
    ({ name, props, other }) => {
      const { needs = {}, make } = entries[name] as Entry;
      const scene = new Scene();
      try {
        make(scene, madeOptions(placed(props, scene, needs)), made(other));
        Template.fromStack(scene.stack);
      } catch (error) {
        if (!isRefusal(error)) throw new Error("not a refusal", { cause: error });
        return undefined;
      }
      return [];
    },
    { few: 15, many: 600, accepted: { share: 0.2, options: [] } },
  );
}
