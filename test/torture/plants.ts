/**
 * Mistakes that are planted to see whether the torture finds them. The product stays as it is: the proxy changes the requests
 * on their way, as if the product had written them so.
 */
import type { UpdateRequest } from "@leasehold/client";
import { isA } from "../support/lease-writes.ts";
import type { Tamper } from "../worlds/network.ts";
import { isGrant, type Meant, untested } from "../worlds/simulation.ts";
import type { Primitive } from "./history.ts";

/** Changes the body of a request of the named operation. */
export type Bend = (operation: string, body: object) => object;

/** Changes nothing. */
export const straight: Bend = (_operation, body) => body;

/** A mistake. */
export interface Plant {
  readonly name: string;
  readonly what: string;
  /** Where it shows. */
  readonly primitive: Primitive;
  /** The rules that a history with this mistake breaks: one of them, or several. */
  readonly breaks: readonly string[];
  readonly bend: Bend;
}

/** A conditional write, alone or in a transaction, as it is on the wire. */
interface WireWrite {
  readonly Key?: Readonly<Record<string, { readonly S?: string }>>;
  readonly ConditionExpression?: string;
  readonly ExpressionAttributeNames?: Readonly<Record<string, string>>;
  readonly ExpressionAttributeValues?: Readonly<Record<string, unknown>>;
}

type TransactionEntry = Readonly<Record<string, WireWrite>>;

/** Makes a mistake of the worlds in each conditional write of a request. */
function sending(tamper: Tamper): Bend {
  const change = ({ ConditionExpression: condition, ...write }: WireWrite): WireWrite => {
    if (condition === undefined) return write;
    const { Key, ExpressionAttributeNames: names = {}, ExpressionAttributeValues: values = {} } = write;
    const key = { pk: Key?.pk?.S, sk: Key?.sk?.S };
    const sent = tamper({ key, condition, names, values } as UpdateRequest);
    return {
      ...write,
      ConditionExpression: sent.condition,
      ...(write.ExpressionAttributeValues && { ExpressionAttributeValues: sent.values }),
    };
  };
  return (operation, body) => {
    if (operation === "UpdateItem") return change(body);
    if (operation !== "TransactWriteItems") return body;
    const { TransactItems: entries } = body as { readonly TransactItems: readonly TransactionEntry[] };
    const changed = entries.map((entry) =>
      Object.fromEntries(Object.entries(entry).map(([action, write]) => [action, change(write)])),
    );
    return { ...body, TransactItems: changed };
  };
}

const without = (meant: Meant): Bend => sending(untested(meant));

export const plants: readonly Plant[] = [
  {
    name: "release-without-proof",
    what: "a release does not ask whose lease it ends",
    primitive: "lock",
    breaks: [
      "mutual exclusion",
      "fencing order",
      "linearizability of the fenced register",
      "a lease that is over stays over",
    ],
    bend: without({ of: ["token", "fence"], by: isA("end") }),
  },
  {
    name: "acquire-what-is-held",
    what: "an acquisition does not ask whether the lock is free",
    primitive: "lock",
    breaks: ["mutual exclusion"],
    bend: without({ of: "token", by: isGrant }),
  },
  {
    name: "fence-is-not-asked",
    what: "a fenced write does not compare fencing tokens",
    primitive: "lock",
    breaks: ["linearizability of the fenced register"],
    bend: without({ of: "fence", by: ({ key }) => key.sk === "fence" }),
  },
  {
    name: "check-is-left-out",
    what: "a transaction goes without the lease's condition check",
    primitive: "lock",
    breaks: ["linearizability of the fenced register"],
    bend: (operation, body) => {
      if (operation !== "TransactWriteItems") return body;
      const { TransactItems: entries } = body as { readonly TransactItems: readonly TransactionEntry[] };
      return { ...body, TransactItems: entries.filter((entry) => entry.ConditionCheck === undefined) };
    },
  },
  {
    name: "fencing-token-stands-still",
    what: "a grant does not count the fencing token up",
    primitive: "lock",
    breaks: ["fencing order"],
    bend: sending((write) =>
      isGrant(write) ? { ...write, values: { ...write.values, ":byFence": { N: "0" } } } : write,
    ),
  },
  {
    name: "takeover-never-succeeds",
    what: "the lock of a dead holder cannot be taken over",
    primitive: "lock",
    breaks: ["no lock stays stuck"],
    bend: sending((write) =>
      isA("takeOver")(write)
        ? { ...write, condition: `${write.condition} AND attribute_not_exists(#token)` }
        : write,
    ),
  },
  {
    name: "newcomer-passes-the-line",
    what: "a newcomer does not ask whether the line is empty",
    primitive: "fair",
    breaks: ["order of the line"],
    bend: without({ of: "waiting", by: isGrant }),
  },
  {
    name: "permits-are-not-counted",
    what: "a permit is taken without asking how many there are",
    primitive: "semaphore",
    breaks: ["the bound of the permits"],
    bend: without({ of: "permits" }),
  },
  {
    name: "writer-beside-readers",
    what: "a writer does not ask for readers",
    primitive: "readWrite",
    breaks: ["readers or one writer"],
    bend: without({ of: "readers" }),
  },
  {
    name: "slot-is-done-again",
    what: "a claim does not ask whether its slot is done",
    primitive: "runs",
    breaks: ["exactly once"],
    bend: without({ of: "doneSlot" }),
  },
  {
    name: "task-is-claimed-twice",
    what: "a claim does not ask whether the task has been claimed",
    primitive: "tasks",
    breaks: ["mutual exclusion", "exactly once"],
    bend: without({ of: ["token", "fence"], by: isGrant }),
  },
  {
    name: "group-takes-what-is-held",
    what: "a group does not ask whether its locks are free",
    primitive: "group",
    breaks: ["mutual exclusion"],
    bend: without({ of: "token", by: isGrant }),
  },
];
