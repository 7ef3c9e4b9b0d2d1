import { readFileSync } from "node:fs";
import { join } from "node:path";
import { type LeaseKeyScope, LeaseTable } from "@leasehold/cdk";
import { Lease, LeaseClient, LeaseServiceError } from "@leasehold/client";
import { LeaseAdmin, LeaseOperator } from "@leasehold/client/admin";
import { FairLock } from "@leasehold/client/fair";
import { LeaseGroup } from "@leasehold/client/group";
import { Leader } from "@leasehold/client/leader";
import { ReadWriteLock } from "@leasehold/client/read-write";
import { Semaphore } from "@leasehold/client/semaphore";
import { SingleFlight } from "@leasehold/client/single-flight";
import { JobRuns, TaskSet } from "@leasehold/jobs";
import { App, Stack } from "aws-cdk-lib";
import { Template } from "aws-cdk-lib/assertions";
import { Role, ServicePrincipal } from "aws-cdk-lib/aws-iam";
import { describe, expect, test, vi } from "vitest";
import { Task } from "../../packages/jobs/src/tasks/task.ts";
import { type GrantName, methods, newWorld } from "../support/methods.ts";
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

/** What DynamoDB asks IAM for a call to the store: each entry of a transaction and each statement of a batch by itself. */
function actionsOf({ method, requests, entries = [] }: Call): string[] {
  const named = {
    get: ["GetItem"],
    query: ["Query"],
    scan: ["Scan"],
    update: ["UpdateItem"],
    // BatchExecuteStatement is permitted by statement.
    updateMany: requests.map(() => "PartiQLUpdate"),
    transact: entries.map(({ action }) =>
      typeof action === "string"
        ? { delete: "DeleteItem", check: "ConditionCheckItem" }[action]
        : "UpdateItem",
    ),
  }[method];
  return named.map((action) => `dynamodb:${action}`);
}

/** What the methods of these grants ask IAM for. Those of a grant that send nothing at all are a mistake. */
async function sentBy(...grants: readonly GrantName[]): Promise<string[]> {
  const sent = new Set<string>();
  for (const [name, [grant, ...calls]] of Object.entries(methods)) {
    if (!grants.includes(grant)) continue;
    for (const prepare of calls) {
      const world = newWorld();
      const call = await prepare(world);
      const before = world.store.calls.length;
      await call();
      const actions = world.store.calls.slice(before).flatMap(actionsOf);
      expect(actions, name).not.toHaveLength(0);
      for (const action of actions) sent.add(action);
    }
  }
  return sorted(sent);
}

interface Statement {
  readonly Action: readonly string[];
  readonly Condition?: object;
}

function granted(name: GrantName, scope?: LeaseKeyScope): Statement {
  const stack = new Stack(new App(), "Test");
  const role = new Role(stack, "Role", { assumedBy: new ServicePrincipal("lambda.amazonaws.com") });
  new LeaseTable(stack, "Leases").grants[name](role, scope);
  const [policy] = Object.values(Template.fromStack(stack).findResources("AWS::IAM::Policy"));
  const statements = policy?.Properties.PolicyDocument.Statement;
  expect(statements).toHaveLength(1);
  return statements[0];
}

const sorted = (actions: Iterable<string>): string[] => [...new Set(actions)].sort();
/** What a user's own transaction does with `lease.conditionCheck()`. */
const inUsersTransaction = "dynamodb:ConditionCheckItem";

describe("a grant permits what its methods send, and nothing else", () => {
  test("to read, which no write is part of", async () => {
    const { Action } = granted("read");
    expect(sorted(Action)).toEqual(await sentBy("read"));
    expect(Action.filter((action) => /Update|Put|Delete/.test(action))).toEqual([]);
  });

  test("to operate, which includes reading", async () => {
    expect(sorted(granted("operate").Action)).toEqual(await sentBy("read", "operate"));
  });

  test("to use leases, which includes condition checks in the user's own transactions", async () => {
    const sent = await sentBy("useLeases");
    expect(sorted(granted("useLeases").Action)).toEqual(sorted([...sent, inUsersTransaction]));
  });

  test("to use the other primitives, which includes using leases", async () => {
    const sent = await sentBy("useLeases", "usePrimitives");
    expect(sorted(granted("usePrimitives").Action)).toEqual(sorted([...sent, inUsersTransaction]));
  });

  test("but for the list, which knows no condition on keys, where it is held to keys", () => {
    for (const name of ["read", "operate"] as const) {
      const [wide, narrow] = [granted(name), granted(name, { keyPrefixes: ["orders/"] })];
      expect(wide.Condition).toBeUndefined();
      expect([...narrow.Action, "dynamodb:Scan"].sort()).toEqual(sorted(wide.Action));
      // "For all values" is also true of a request that names no key.
      expect(narrow.Condition).toEqual({
        "ForAllValues:StringLike": { "dynamodb:LeadingKeys": ["orders/*"] },
        Null: { "dynamodb:LeadingKeys": "false" },
      });
    }
  });
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

test("a run does not fail where its grant ends at a prefix, which the registry of jobs is not under", async () => {
  const { store, client } = newWorld();
  const refused: string[] = [];
  const update = store.update.bind(store);
  vi.spyOn(store, "update").mockImplementation(async (request, options) => {
    if (request.key.pk.startsWith("orders/")) return await update(request, options);
    refused.push(request.key.pk);
    throw new LeaseServiceError("LEASE_REQUEST_REJECTED", "not authorized");
  });
  const runs = new JobRuns(client, "orders/report", { schedule: "rate(1 hour)" });
  expect(await runs.run("2025-12-31T23:00:00.000Z", () => "done")).toBe("done");
  expect(refused).toEqual(["leasehold/registry"]);
});

describe("docs/iam.md", () => {
  const page = readFileSync(join(import.meta.dirname, "../../docs/iam.md"), "utf8");
  const policies = Object.fromEntries(
    [...page.matchAll(/^## (?<name>[^\n]+)\n(?:(?!^## )[\s\S])*?```json\n(?<json>[\s\S]*?)```/gm)].map(
      ({ groups }) => [groups?.name, JSON.parse(groups?.json ?? "")],
    ),
  );

  test.each([
    ["Use", "useLeases"],
    ["Use all primitives", "usePrimitives"],
    ["Read", "read"],
    ["Operate", "operate"],
  ] as const)("permits by %s what the grant permits", (name, grant) => {
    const policy = policies[name];
    expect(policy?.Action ?? policy?.Statement[0].Action).toEqual(granted(grant).Action);
  });

  test("limits a statement to keys as the grants do", () => {
    const said = policies["Only some keys"]?.Condition;
    const keys = { "dynamodb:LeadingKeys": [said["ForAllValues:StringLike"]["dynamodb:LeadingKeys"]].flat() };
    const { Condition } = granted("useLeases", { keyPrefixes: ["orders/"] });
    expect({ ...said, "ForAllValues:StringLike": keys }).toEqual(Condition);
  });
});
