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
  readonly optional: Fields;
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

const kind = (description: string, required: Fields, optional: Fields = {}): Kind => ({
  version: 1,
  description,
  required,
  optional,
});

/** The fields of a lease besides its key. */
const lease: Fields = {
  ...{ sortKey: text, owner: text, token: text, version: whole, fencingToken: whole },
  ...{ acquiredAt: time, expiresAt: time, leaseDurationMs: milliseconds, inCooldown: flag, reentrant: flag },
  ...{ heldForMs: milliseconds, remainingMs: milliseconds },
};
const leaseDetails: Fields = {
  ...{ data: anything, invalidData: text, revocation: text, seat: something },
  pause: nested({ by: text, reason: text }),
};
const leaseShape = nested({ key: text, state: text, ...lease }, leaseDetails);

const row: Fields = {
  key: text,
  primitive: text,
  readAt: time,
  state: text,
  waiting: whole,
  parked: whole,
  note: text,
};
const rowDetails: Fields = {
  ...lease,
  longestWaitMs: milliseconds,
  permits: nested({ taken: whole }, { of: whole }),
  leases: listOf(leaseShape),
  ...leaseDetails,
};

const audit: Fields = { key: text, sortKey: text, at: time, action: text, by: text };
const auditDetails: Fields = {
  reason: text,
  holder: nested({ owner: text, acquiredAt: time, fencingToken: whole }),
  until: time,
};

const run: Fields = {
  job: text,
  slot: text,
  state: text,
  attempt: whole,
  lostAttempts: whole,
  exhausted: flag,
  attempts: listOf(
    nested({ attempt: whole, state: text }, { owner: text, startedAt: time, endedAt: time, remark: text }),
  ),
};
const runDetails: Fields = {
  ...{ owner: text, fencingToken: whole, startedAt: time, endedAt: time, expiresAt: time },
  ...{ remark: text, progress: anything },
};
const runShape = nested(run, runDetails);

const finding = nested({ check: text, result: text, text }, { fix: text, docs: text });

export const recordKinds = {
  lock: kind("a key, as one primitive uses it: ls", row, rowDetails),
  key: kind(
    "everything about a key: get",
    {
      ...{ key: text, readAt: time, leases: listOf(leaseShape), rows: listOf(nested(row, rowDetails)) },
      ...{ waiting: listOf(something), parked: something, seats: listOf(something), items: counts },
      ...{ audit: listOf(nested(audit, auditDetails)), holders: listOf(something) },
      nextSteps: listOf(nested({ action: text, what: text, command: text }, { caution: text })),
    },
    { lastHolder: something, doneSlot: text },
  ),
  change: kind(
    "something that has happened to a key: history",
    { key: text, at: time, what: text },
    { owner: text, heldForMs: milliseconds, fencingToken: whole, by: text, reason: text },
  ),
  action: kind("what an operator has done: audit, stop, break, pause, resume", audit, auditDetails),
  handle: kind("whether a handle holds its lease: check", {
    key: text,
    held: flag,
    remainingMs: milliseconds,
  }),
  job: kind(
    "how a job does: jobs",
    { job: text, last24h: counts },
    { missed: whole, lastRun: runShape, lastSuccess: runShape },
  ),
  run: kind("a run of a job: jobs runs, jobs show", run, runDetails),
  missed: kind("a slot that was due and is not done: jobs missed", { slot: text }, { run: runShape }),
  tasks: kind(
    "how a set of tasks does: tasks",
    { set: text, counts },
    { oldestWaiting: time, oldestClaim: time },
  ),
  task: kind(
    "a task: tasks ls",
    { id: text, state: text, attempts: whole, maxAttempts: whole, remark: text, addedAt: time },
    { owner: text, dueAt: time, startedAt: time, expiresAt: time, endedAt: time, payload: anything },
  ),
  tasksAdded: kind("what tasks add has done", { set: text, added: whole, known: whole }),
  tasksWorked: kind("what tasks work has done", {
    ...{ set: text, succeeded: whole, failed: whole, parked: whole, returned: whole, settled: whole },
    lost: whole,
  }),
  table: kind("a table's settings, as DynamoDB describes them: table show", {
    table: something,
    ttl: something,
    pointInTimeRecovery: something,
    tags: something,
  }),
  tableCreated: kind("a table that was made: table create", {
    tableName: text,
    region: text,
    settings: something,
  }),
  findings: kind("what a look has found: doctor, table check", {
    findings: listOf(finding),
    exitCode: whole,
  }),
  conformance: kind("what a table does and does not: conformance", {
    ...{ place: text, results: listOf(something), measured: anything, cost: anything },
    ...{ leftBehind: listOf(anything), exitCode: whole },
  }),
  costs: kind("what locks cost a month: cost --json", {
    lines: listOf(something),
    usdAMonth: number,
    prices: something,
  }),
  cost: kind(
    "a part of what locks cost a month, and the total: cost",
    { what: text, usdAMonth: number },
    { requestsPerSecond: number, writeUnits: number, readUnits: number, requestsAMonth: number },
  ),
  engine: kind("an engine on this machine: dev", {
    ...{ engine: text, endpoint: text, tableName: text },
    variables: { type: "object", additionalProperties: text },
  }),
  error: kind("what an error means: help errors CODE", { code: text, text, docs: text }),
  version: kind("this command's version: version", { version: text, node: text }),
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

export function jsonSchemaOf(kind: RecordKind): object {
  const { description, required, optional } = recordKinds[kind];
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
  const { required, optional } = recordKinds[kind];
  const fields = Object.entries({ ...required, ...optional });
  return fields.filter(([name, { type }]) => plainTypes.has(type) && name !== "note").map(([name]) => name);
}
