/**
 * Mistakes that are planted to see whether the torture finds them. The product stays as it is: the proxy changes the requests
 * on their way, as if the product had written them so.
 */
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
  readonly UpdateExpression?: string;
  readonly ConditionExpression?: string;
  readonly ExpressionAttributeNames?: Readonly<Record<string, string>>;
  readonly ExpressionAttributeValues?: Readonly<Record<string, unknown>>;
}

type TransactionEntry = Readonly<Record<string, WireWrite>>;

/** Changes each conditional write of a request. */
function writes(change: (write: WireWrite) => WireWrite): Bend {
  return (operation, body) => {
    if (operation === "UpdateItem") return change(body as WireWrite);
    if (operation !== "TransactWriteItems") return body;
    const { TransactItems: entries } = body as { readonly TransactItems: readonly TransactionEntry[] };
    const changed = entries.map((entry) =>
      Object.fromEntries(Object.entries(entry).map(([action, write]) => [action, change(write)])),
    );
    return { ...body, TransactItems: changed };
  };
}

/** Leaves out the tests of one attribute, in the writes that are meant. */
function withoutTest(attribute: string, isMeant: (write: WireWrite) => boolean = () => true): Bend {
  return writes((write) => {
    const { ExpressionAttributeNames: names = {}, ConditionExpression: condition } = write;
    const name = Object.keys(names).find((each) => names[each] === attribute);
    if (name === undefined || condition === undefined || !isMeant(write)) return write;
    // Our conditions are tests in a row, some of them alternatives in brackets.
    const tests = condition.split(" AND ").filter((test) => !new RegExp(`${name}\\b`).test(test));
    return pruned({ ...write, ConditionExpression: tests.join(" AND ") });
  });
}

/** Leaves out the names and values that no expression mentions any more: the service refuses them. */
function pruned({ ConditionExpression: condition = "", ...write }: WireWrite): WireWrite {
  const text = `${write.UpdateExpression ?? ""} ${condition}`;
  const mentioned = <Value>(all: Readonly<Record<string, Value>> = {}): Record<string, Value> =>
    Object.fromEntries(Object.entries(all).filter(([name]) => new RegExp(`${name}\\b`).test(text)));
  const names = mentioned(write.ExpressionAttributeNames);
  const values = mentioned(write.ExpressionAttributeValues);
  const { ExpressionAttributeNames: _, ExpressionAttributeValues: __, ...rest } = write;
  return {
    ...rest,
    ...(condition !== "" && { ConditionExpression: condition }),
    ...(Object.keys(names).length > 0 && { ExpressionAttributeNames: names }),
    ...(Object.keys(values).length > 0 && { ExpressionAttributeValues: values }),
  };
}

/** Applies one change after the other. */
function both(first: Bend, second: Bend): Bend {
  return (operation, body) => second(operation, first(operation, body));
}

const isGrant = ({ UpdateExpression: update = "" }: WireWrite): boolean => update.includes("#token = :token");
const isTakeover = (write: WireWrite): boolean =>
  isGrant(write) && (write.ConditionExpression ?? "").includes("#version = ");
const isRelease = ({ UpdateExpression: update = "" }: WireWrite): boolean => /REMOVE .*#token\b/.test(update);

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
    bend: both(withoutTest("token", isRelease), withoutTest("fence", isRelease)),
  },
  {
    name: "acquire-what-is-held",
    what: "an acquisition does not ask whether the lock is free",
    primitive: "lock",
    breaks: ["mutual exclusion"],
    bend: withoutTest("token", isGrant),
  },
  {
    name: "fence-is-not-asked",
    what: "a fenced write does not compare fencing tokens",
    primitive: "lock",
    breaks: ["linearizability of the fenced register"],
    bend: withoutTest("fence", ({ Key }) => Key?.sk?.S === "fence"),
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
    bend: writes((write) =>
      isGrant(write)
        ? {
            ...write,
            ExpressionAttributeValues: { ...write.ExpressionAttributeValues, ":byFence": { N: "0" } },
          }
        : write,
    ),
  },
  {
    name: "takeover-never-succeeds",
    what: "the lock of a dead holder cannot be taken over",
    primitive: "lock",
    breaks: ["no lock stays stuck"],
    bend: writes((write) =>
      isTakeover(write)
        ? { ...write, ConditionExpression: `${write.ConditionExpression} AND attribute_not_exists(#token)` }
        : write,
    ),
  },
  {
    name: "newcomer-passes-the-line",
    what: "a newcomer does not ask whether the line is empty",
    primitive: "fair",
    breaks: ["order of the line"],
    bend: withoutTest("waiting", isGrant),
  },
  {
    name: "permits-are-not-counted",
    what: "a permit is taken without asking how many there are",
    primitive: "semaphore",
    breaks: ["the bound of the permits"],
    bend: withoutTest("permits"),
  },
  {
    name: "writer-beside-readers",
    what: "a writer does not ask for readers",
    primitive: "readWrite",
    breaks: ["readers or one writer"],
    bend: withoutTest("readers"),
  },
  {
    name: "slot-is-done-again",
    what: "a claim does not ask whether its slot is done",
    primitive: "runs",
    breaks: ["exactly once"],
    bend: withoutTest("doneSlot"),
  },
  {
    name: "task-is-claimed-twice",
    what: "a claim does not ask whether the task has been claimed",
    primitive: "tasks",
    breaks: ["mutual exclusion", "exactly once"],
    bend: both(withoutTest("token", isGrant), withoutTest("fence", isGrant)),
  },
  {
    name: "group-takes-what-is-held",
    what: "a group does not ask whether its locks are free",
    primitive: "group",
    breaks: ["mutual exclusion"],
    bend: withoutTest("token", isGrant),
  },
];
