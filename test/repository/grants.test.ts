import { type LeaseKeyScope, LeaseTable } from "@leasehold/cdk";
import { Lease, LeaseClient, LeaseServiceError } from "@leasehold/client";
import { LeaseAdmin, LeaseOperator } from "@leasehold/client/admin";
import { FairLock } from "@leasehold/client/fair";
import { acquireAll, LeaseGroup } from "@leasehold/client/group";
import { Leader } from "@leasehold/client/leader";
import { ReadWriteLock } from "@leasehold/client/read-write";
import { Semaphore } from "@leasehold/client/semaphore";
import { SingleFlight } from "@leasehold/client/single-flight";
import { JobRuns, TaskSet } from "@leasehold/jobs";
import { App, Stack } from "aws-cdk-lib";
import { Template } from "aws-cdk-lib/assertions";
import { Role, ServicePrincipal } from "aws-cdk-lib/aws-iam";
import { describe, expect, test, vi } from "vitest";
import { policyFor } from "../../packages/cli/src/commands/to-copy.ts";
import { Task } from "../../packages/jobs/src/tasks/task.ts";
import { type GrantName, methods, newWorld, type Prepare } from "../support/methods.ts";
import type { Call } from "../support/scripted-store.ts";

/** They send nothing, by themselves. */
const silent = [
  "LeaseClient.adopt",
  "LeaseClient.held",
  "Semaphore.adopt",
  "ReadWriteLock.adopt",
  "LeaseOperator.moment",
  "Lease.remainingMs",
  "Lease.keepAlive",
  "Lease.tellCompletionFailed",
  "Lease.toJSON",
  "Lease.fence",
  // What it gives goes into the user's own transaction.
  "Lease.conditionCheck",
  "LeaseGroup.remainingMs",
  "LeaseGroup.conditionChecks",
  // What it gives goes into the user's own transaction.
  "TaskSet.addEntries",
  "Task.remainingMs",
  "Task.settled",
  "Task.trace",
  "Task.abandon",
  "Task.fence",
  "Task.conditionCheck",
];

/** What a call asks IAM for. */
async function accessesBy(prepare: Prepare): Promise<Access[]> {
  const world = newWorld();
  const call = await prepare(world);
  const before = world.store.calls.length;
  await call();
  return world.store.calls.slice(before).flatMap(accessesOf);
}

async function sentBy(prepare: Prepare): Promise<string[]> {
  return (await accessesBy(prepare)).map(({ action }) => action);
}

async function sentByMethods(...grants: GrantName[]): Promise<string[]> {
  const sent = new Set<string>();
  for (const [grant, ...calls] of Object.values(methods)) {
    if (!grants.includes(grant)) continue;
    for (const prepare of calls) for (const action of await sentBy(prepare)) sent.add(action);
  }
  return [...sent].sort();
}

function granted(name: GrantName, scope?: LeaseKeyScope): Record<string, unknown> & { Action: string[] } {
  const stack = new Stack(new App(), "Test");
  const table = new LeaseTable(stack, "Leases");
  table.grants[name](
    new Role(stack, "Role", { assumedBy: new ServicePrincipal("lambda.amazonaws.com") }),
    scope,
  );
  const [policy] = Object.values(Template.fromStack(stack).findResources("AWS::IAM::Policy"));
  const statements = policy?.Properties.PolicyDocument.Statement;
  expect(statements).toHaveLength(1);
  return statements[0];
}

const sorted = (actions: Iterable<string>): string[] => [...new Set(actions)].sort();
/** What a user's own transaction does with `lease.conditionCheck()`. */
const inUsersTransaction = "dynamodb:ConditionCheckItem";

describe("a grant permits what its methods send, and nothing else", () => {
  test("to read", async () => {
    expect(sorted(granted("read").Action)).toEqual(await sentByMethods("read"));
  });

  test("to operate, which includes reading", async () => {
    expect(sorted(granted("operate").Action)).toEqual(await sentByMethods("read", "operate"));
  });

  test("to use leases, which includes condition checks in the user's own transactions", async () => {
    const sent = await sentByMethods("useLeases");
    expect(sorted(granted("useLeases").Action)).toEqual(sorted([...sent, inUsersTransaction]));
  });

  test("to use the other primitives, which includes using leases", async () => {
    const sent = await sentByMethods("useLeases", "usePrimitives");
    expect(sorted(granted("usePrimitives").Action)).toEqual(sorted([...sent, inUsersTransaction]));
  });

  test("but for the list, which knows no condition on keys, where it is held to keys", () => {
    for (const name of ["read", "operate"] as const) {
      const [wide, narrow] = [granted(name), granted(name, { keyPrefixes: ["orders/"] })];
      expect(wide.Condition).toBeUndefined();
      expect([...narrow.Action, "dynamodb:Scan"].sort()).toEqual(sorted(wide.Action));
      expect(narrow.Condition).toEqual({
        "ForAllValues:StringLike": { "dynamodb:LeadingKeys": ["orders/*"] },
        Null: { "dynamodb:LeadingKeys": "false" },
      });
    }
  });
});

test("reading never writes, and no single look needs more than its own grant", async () => {
  const writes = ["dynamodb:UpdateItem", "dynamodb:PutItem", "dynamodb:DeleteItem", "dynamodb:PartiQLUpdate"];
  for (const [name, [grant, ...calls]] of Object.entries(methods)) {
    if (grant !== "read") continue;
    for (const prepare of calls) {
      const sent = await sentBy(prepare);
      expect(sent, name).not.toHaveLength(0);
      for (const action of sent) expect(writes, name).not.toContain(action);
    }
  }
});

function isMethod(prototype: object, name: string): boolean {
  return typeof Object.getOwnPropertyDescriptor(prototype, name)?.value === "function";
}

test("every method of the client and of each primitive is in one grant, or sends nothing", () => {
  const classes = {
    LeaseClient,
    Lease,
    FairLock,
    Leader,
    LeaseGroup,
    Semaphore,
    ReadWriteLock,
    SingleFlight,
    LeaseAdmin,
    LeaseOperator,
    TaskSet,
    Task,
    JobRuns,
  };
  const named = Object.entries(classes).flatMap(([name, { prototype }]) =>
    // A class of an entry has its methods from the class that the entries share.
    [prototype, Object.getPrototypeOf(prototype)]
      .filter((holder) => holder !== Object.prototype)
      .flatMap((holder) => Object.getOwnPropertyNames(holder).filter((method) => isMethod(holder, method)))
      .filter((method) => method !== "constructor")
      .map((method) => `${name}.${method}`),
  );
  expect([...Object.keys(methods), ...silent].sort()).toEqual([...named, "acquireAll"].sort());
});

/** What a grant held to a prefix permits: by the CDK, and as the command line prints it. */
const scoped: Readonly<Record<string, (name: GrantName, prefix: string) => readonly PolicyStatement[]>> = {
  "of the CDK": (name, prefix) => [granted(name, { keyPrefixes: [prefix] }) as unknown as PolicyStatement],
  "of leasehold table policy": (name, prefix) => {
    const kinds = {
      read: "read",
      operate: "operate",
      useLeases: "use",
      usePrimitives: "primitives",
    } as const;
    const arn = "arn:aws:dynamodb:eu-central-1:111122223333:table/leases";
    return policyFor(kinds[name], arn, [prefix]).Statement;
  },
};
const grantNames = ["read", "operate", "useLeases", "usePrimitives"] as const;

describe.each(Object.entries(scoped))("a grant %s that is held to a prefix", (_, statementsFor) => {
  const statements = Object.fromEntries(
    grantNames.map((name) => [name, statementsFor(name, "orders/")]),
  ) as Record<GrantName, readonly PolicyStatement[]>;

  test.each(Object.entries(methods))(
    "permits %s on its own keys alone: each read, write, entry of a transaction and statement of a batch",
    async (_name, [grant, ...calls]) => {
      for (const prepare of calls) {
        const accesses = await accessesBy(prepare);
        expect(accesses).not.toHaveLength(0);
        for (const { action, leadingKey } of accesses) {
          if (leadingKey === undefined) {
            // A walk over all keys.
            for (const name of grantNames) expect(isPermitted(statements[name], { action })).toBe(false);
            continue;
          }
          const own = { action, leadingKey: `orders/${leadingKey}` };
          expect(isPermitted(statements[grant], own), action).toBe(true);
          for (const other of ["billing/", "order", "Orders/", "x/orders/", ""]) {
            const foreign = { action, leadingKey: other + leadingKey };
            for (const name of grantNames) expect(isPermitted(statements[name], foreign), action).toBe(false);
          }
        }
      }
    },
  );

  test("refuses a group that has one key of another program, for every entry of a transaction is judged", async () => {
    const world = newWorld();
    await acquireAll(world.client, ["orders/1", "billing/1"]);
    const accesses = world.store.calls.flatMap(accessesOf);
    expect(accesses.map((access) => isPermitted(statements.useLeases, access))).toEqual([true, false]);
  });

  test("takes the wildcards of a prefix as themselves", () => {
    const on = (leadingKey: string): Access => ({ action: "dynamodb:UpdateItem", leadingKey });
    for (const prefix of ["a*/", "a?/", "a$/", "a\u0024{*}/"]) {
      const literal = statementsFor("useLeases", prefix);
      expect(isPermitted(literal, on(`${prefix}1`)), prefix).toBe(true);
      for (const other of ["ab/1", "abc/1", "a/1"])
        expect(isPermitted(literal, on(other)), prefix).toBe(false);
    }
  });

  test("does not reach the registry of jobs, and a run does not fail because of it", async () => {
    const { store, client } = newWorld();
    const refused: Access[] = [];
    const update = store.update.bind(store);
    vi.spyOn(store, "update").mockImplementation(async (request, options) => {
      const [access] = accessesOf({ method: "update", requests: [request] }) as [Access];
      if (isPermitted(statements.usePrimitives, access)) return await update(request, options);
      refused.push(access);
      throw new LeaseServiceError("LEASE_REQUEST_REJECTED", "not authorized");
    });
    const runs = new JobRuns(client, "orders/report", { schedule: "rate(1 hour)" });
    expect(await runs.run("2025-12-31T23:00:00.000Z", () => "done")).toBe("done");
    expect(refused).toEqual([{ action: "dynamodb:UpdateItem", leadingKey: "leasehold/registry" }]);
  });
});

test("a statement that cannot be judged here is an error, and never permitted by mistake", () => {
  const on: Access = { action: "dynamodb:GetItem", leadingKey: "k" };
  const allow = { Effect: "Allow", Action: on.action };
  expect(isPermitted([allow], on)).toBe(true);
  expect(isPermitted([{ ...allow, Action: "dynamodb:PutItem" }], on)).toBe(false);
  expect(() => isPermitted([{ ...allow, Effect: "Deny" }], on)).toThrow("Deny");
  for (const Condition of [
    { StringLike: { "dynamodb:LeadingKeys": "k" } },
    { Null: { "aws:SourceIp": "true" } },
    { Null: { "dynamodb:LeadingKeys": "false", "aws:SourceIp": "true" } },
  ]) {
    expect(() => isPermitted([{ ...allow, Condition }], on)).toThrow("not evaluated");
  }
});

test("without its second condition a statement would permit a request that names no key, which is why it is there", () => {
  const [statement] = scoped["of the CDK"]?.("read", "orders/") ?? [];
  const { Null: _, ...half } = Object(statement?.Condition) as Record<string, unknown>;
  const scan = { action: "dynamodb:Scan" };
  expect(isPermitted([{ Effect: "Allow", Action: scan.action, Condition: half }], scan)).toBe(true);
});

// Statements of IAM, as far as our grants use them: actions, and conditions on `dynamodb:LeadingKeys`. A statement with anything
// else is an error here, and never permitted by mistake.

/** What IAM judges by itself: one action on one partition key. A request may have several. */
interface Access {
  readonly action: string;
  /** Absent where the request names no key, as a Scan. */
  readonly leadingKey?: string;
}

/** A statement of a policy, as the CDK and the command line write it. */
interface PolicyStatement {
  readonly Effect: string;
  readonly Action: string | readonly string[];
  readonly Condition?: unknown;
}

/** What DynamoDB asks IAM for a call to the store: each entry of a transaction and each statement of a batch by itself. */
function accessesOf({ method, requests, entries = [], readsKey }: Call): Access[] {
  const reads = { get: "GetItem", query: "Query", scan: "Scan" };
  const inTransaction = { delete: "DeleteItem", check: "ConditionCheckItem" };
  const named =
    method === "transact"
      ? entries.map(({ action, key }) => ({
          action: typeof action === "string" ? inTransaction[action] : "UpdateItem",
          leadingKey: key.pk,
        }))
      : method === "update" || method === "updateMany"
        ? requests.map(({ key }) => ({
            // BatchExecuteStatement is permitted by statement.
            action: method === "update" ? "UpdateItem" : "PartiQLUpdate",
            leadingKey: key.pk,
          }))
        : [{ action: reads[method], ...(readsKey === undefined ? {} : { leadingKey: readsKey }) }];
  return named.map((access) => ({ ...access, action: `dynamodb:${access.action}` }));
}

/** Whether one of the statements allows an access. */
function isPermitted(statements: readonly PolicyStatement[], access: Access): boolean {
  return statements.some(
    ({ Effect, Action, Condition = {} }) =>
      onlyAllow(Effect) &&
      [Action].flat().includes(access.action) &&
      Object.entries(Condition as object).every(([operator, block]) => holds(operator, block, access)),
  );
}

function onlyAllow(effect: string): true {
  if (effect !== "Allow")
    throw new Error(`a statement has the effect ${effect}, which is not evaluated here`);
  return true;
}

function holds(operator: string, block: unknown, { leadingKey }: Access): boolean {
  const { "dynamodb:LeadingKeys": wanted, ...others } = block as Record<string, unknown>;
  if (wanted === undefined || Object.keys(others).length > 0) {
    throw new Error(`a condition is on ${Object.keys(block as object)}, which is not evaluated here`);
  }
  if (operator === "Null") return (leadingKey === undefined) === ([wanted].flat()[0] === "true");
  if (operator === "ForAllValues:StringLike") {
    // True of all values where there are none: IAM's own trap.
    return (
      leadingKey === undefined || ([wanted].flat() as string[]).some((like) => matches(like, leadingKey))
    );
  }
  throw new Error(`the condition operator ${operator} is not evaluated here`);
}

/** `*` and `?` stand for any characters and for one, `${*}`, `${?}` and `${$}` for themselves. */
function matches(like: string, text: string): boolean {
  const parts = like.match(/\$\{[*?$]\}|[\s\S]/gu) ?? [];
  const expression = parts.map((part) => {
    if (part === "*") return ".*";
    if (part === "?") return ".";
    const literal = part.length > 1 && part.startsWith("${") ? part.charAt(2) : part;
    return literal.replace(/[\\^$.*+?()[\]{}|/]/, "\\$&");
  });
  return new RegExp(`^${expression.join("")}$`, "su").test(text);
}
