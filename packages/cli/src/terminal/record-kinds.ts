// The output of --json and --ndjson: a JSON Schema for each kind of record, with its version. A new field does not
// affect programs that read it. A removed field, or a new meaning, makes a new version.

interface Shape {
  readonly type?: "string" | "number" | "integer" | "boolean" | "object" | "array";
  readonly description?: string;
  readonly items?: Shape;
  readonly properties?: Fields;
  readonly required?: readonly string[];
  readonly additionalProperties?: Shape;
}

type Fields = Readonly<Record<string, Shape>>;

interface Kind {
  readonly version: number;
  readonly description: string;
  /** Always present. */
  readonly required: Fields;
  /** Absent without a value. */
  readonly optional?: Fields;
}

const text: Shape = { type: "string" };
const whole: Shape = { type: "integer" };
const number: Shape = { type: "number" };
const flag: Shape = { type: "boolean" };
const time: Shape = { type: "integer", description: "epoch milliseconds" };
const milliseconds: Shape = { type: "number", description: "milliseconds" };
const anything: Shape = { description: "any JSON value" };
const counts: Shape = { type: "object", additionalProperties: whole };
const something: Shape = { type: "object" };
const listOf = (items: Shape): Shape => ({ type: "array", items });
const nested = (required: Fields, optional: Fields = {}): Shape => ({
  type: "object",
  properties: { ...required, ...optional },
  required: Object.keys(required),
});

/** The fields of a lease besides its key. */
const lease: Fields = {
  sortKey: text,
  owner: text,
  token: text,
  version: whole,
  fencingToken: whole,
  acquiredAt: time,
  expiresAt: time,
  leaseDurationMs: milliseconds,
  inCooldown: flag,
  reentrant: flag,
  heldForMs: milliseconds,
  remainingMs: milliseconds,
};
const leaseDetails: Fields = {
  data: anything,
  invalidData: text,
  revocation: text,
  seat: something,
  pause: nested({ by: text, reason: text }),
};
const leaseShape = nested({ key: text, state: text, ...lease }, leaseDetails);

const row: Pick<Kind, "required" | "optional"> = {
  required: {
    key: text,
    primitive: text,
    readAt: time,
    state: text,
    waiting: whole,
    parked: whole,
    note: text,
  },
  optional: {
    ...lease,
    longestWaitMs: milliseconds,
    permits: nested({ taken: whole }, { of: whole }),
    leases: listOf(leaseShape),
    ...leaseDetails,
  },
};

const holder = nested({ owner: text, acquiredAt: time, fencingToken: whole });
const audit: Pick<Kind, "required" | "optional"> = {
  required: { key: text, sortKey: text, at: time, action: text, by: text },
  optional: { reason: text, holder, until: time },
};

const run: Pick<Kind, "required" | "optional"> = {
  required: { job: text, slot: text, state: text, attempt: whole, lostAttempts: whole, exhausted: flag },
  optional: {
    ...{ owner: text, fencingToken: whole, startedAt: time, endedAt: time, expiresAt: time },
    ...{ remark: text, progress: anything },
  },
};

const finding = nested({ check: text, result: text, text }, { fix: text, docs: text });

/** Every kind of record, by its name. */
export const recordKinds = {
  lock: { version: 1, description: "a key, as one primitive uses it: ls", ...row },
  key: {
    version: 1,
    description: "everything about a key: get",
    required: {
      ...{
        key: text,
        readAt: time,
        leases: listOf(leaseShape),
        rows: listOf(nested(row.required, row.optional)),
      },
      ...{ waiting: listOf(something), parked: something, seats: listOf(something), items: counts },
      ...{ audit: listOf(nested(audit.required, audit.optional)), holders: listOf(something) },
      nextSteps: listOf(nested({ action: text, what: text, command: text }, { caution: text })),
    },
    optional: { lastHolder: something, doneSlot: text },
  },
  change: {
    version: 1,
    description: "something that has happened to a key: history",
    required: { key: text, at: time, what: text },
    optional: { owner: text, heldForMs: milliseconds, fencingToken: whole, by: text, reason: text },
  },
  action: {
    version: 1,
    description: "what an operator has done: audit, stop, break, pause, resume",
    ...audit,
  },
  handle: {
    version: 1,
    description: "whether a handle holds its lease: check",
    required: { key: text, held: flag, remainingMs: milliseconds },
  },
  job: {
    version: 1,
    description: "how a job does: jobs",
    required: { job: text, last24h: counts },
    optional: {
      missed: whole,
      lastRun: nested(run.required, run.optional),
      lastSuccess: nested(run.required, run.optional),
    },
  },
  run: { version: 1, description: "a run of a job: jobs runs, jobs show", ...run },
  missed: {
    version: 1,
    description: "a slot that was due and is not done: jobs missed",
    required: { slot: text },
    optional: { run: nested(run.required, run.optional) },
  },
  tasks: {
    version: 1,
    description: "how a set of tasks does: tasks",
    required: { set: text, counts },
    optional: { oldestWaiting: time, oldestClaim: time },
  },
  task: {
    version: 1,
    description: "a task: tasks ls",
    required: { id: text, state: text, attempts: whole, maxAttempts: whole, remark: text, addedAt: time },
    optional: {
      owner: text,
      dueAt: time,
      startedAt: time,
      expiresAt: time,
      endedAt: time,
      payload: anything,
    },
  },
  tasksAdded: {
    version: 1,
    description: "what tasks add has done",
    required: { set: text, added: whole, known: whole },
  },
  tasksWorked: {
    version: 1,
    description: "what tasks work has done",
    required: {
      ...{
        set: text,
        succeeded: whole,
        failed: whole,
        parked: whole,
        returned: whole,
        settled: whole,
        lost: whole,
      },
    },
  },
  table: {
    version: 1,
    description: "a table's settings, as DynamoDB describes them: table show",
    required: { table: something, ttl: something, pointInTimeRecovery: something, tags: something },
  },
  tableCreated: {
    version: 1,
    description: "a table that was made: table create",
    required: { tableName: text, region: text, settings: something },
  },
  findings: {
    version: 1,
    description: "what a look has found: doctor, table check",
    required: { findings: listOf(finding), exitCode: whole },
  },
  conformance: {
    version: 1,
    description: "what a table does and does not: conformance",
    required: {
      ...{ place: text, results: listOf(something), measured: anything, cost: anything },
      ...{ leftBehind: listOf(anything), exitCode: whole },
    },
  },
  costs: {
    version: 1,
    description: "what locks cost a month: cost --json",
    required: { lines: listOf(something), usdAMonth: number, prices: something },
  },
  cost: {
    version: 1,
    description: "a part of what locks cost a month, and the total: cost",
    required: { what: text, usdAMonth: number },
    optional: { requestsPerSecond: number, writeUnits: number, readUnits: number, requestsAMonth: number },
  },
  engine: {
    version: 1,
    description: "an engine on this machine: dev",
    required: {
      engine: text,
      endpoint: text,
      tableName: text,
      variables: { type: "object", additionalProperties: text },
    },
  },
  error: {
    version: 1,
    description: "what an error means: help errors CODE",
    required: { code: text, text, docs: text },
  },
  version: {
    version: 1,
    description: "this command's version: version",
    required: { version: text, node: text },
  },
} as const satisfies Readonly<Record<string, Kind>>;

export type RecordKind = keyof typeof recordKinds;

/** `lock/1`: the kind of a record, and its version. */
export function schemaName(kind: RecordKind): string {
  return `${kind}/${recordKinds[kind].version}`;
}

/** A record with its kind and version: other programs use these to check whether they support it. */
export function labelled(kind: RecordKind, record: object): object {
  return { schema: schemaName(kind), ...record };
}

/** The JSON Schema of a kind. */
export function jsonSchemaOf(kind: RecordKind): object {
  const { description, required, optional = {} }: Kind = recordKinds[kind];
  const properties = { schema: { const: schemaName(kind) }, ...required, ...optional };
  return {
    $schema: "https://json-schema.org/draft/2020-12/schema",
    title: schemaName(kind),
    description,
    type: "object",
    properties,
    required: ["schema", ...Object.keys(required)],
  };
}

const plainTypes: ReadonlySet<unknown> = new Set(["string", "number", "integer", "boolean"]);

/** The fields of a kind with a single value, for tables of other programs. A note is a sentence for people. */
export function plainFields(kind: RecordKind): readonly string[] {
  const { required, optional = {} }: Kind = recordKinds[kind];
  const fields = Object.entries({ ...required, ...optional });
  return fields.filter(([name, { type }]) => plainTypes.has(type) && name !== "note").map(([name]) => name);
}
