// @module-tag long
import { randomUUID } from "node:crypto";
import type { InvokeResult } from "@leasehold/local";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Queue } from "../../../functions/admit-tickets/department.ts";
import { admit } from "../../../functions/admit-tickets/handler.ts";
import { agentKey, silenceVariable } from "../../../functions/admit-tickets/schema.ts";
import { leaseTable, startTestApp, type TestApp, until } from "../../support/app.ts";
import { kindOf } from "../../support/lease-writes.ts";
import type { Matcher } from "../../support/proxy.ts";
import { type HeldRequest, hold } from "../../support/proxy-behaviours.ts";
import { takeableAt } from "../../support/watching.ts";

const silenceMs = 6_000;
const admission = "Tickets/Admission";
let it: TestApp;

beforeAll(async () => {
  it = await startTestApp({ environment: { [silenceVariable]: String(silenceMs) } });
});
afterAll(async () => {
  await it?.[Symbol.asyncDispose]();
});

/** What is asked of the admission, such as `enter b`. */
type Ask = `${"enter" | "heartbeat" | "leave" | "next"} ${string}`;
type Answer = Readonly<Record<string, unknown>>;

/** A department that no other test uses. */
class Department {
  readonly #name: string = `department-${randomUUID()}`;

  /** Of its one agent. */
  get agentKey(): string {
    return agentKey(this.#name, 1);
  }

  deliver(ask: Ask): { readonly requestId: string; readonly result: Promise<InvokeResult> } {
    const [action, ticket] = ask.split(" ");
    const requestId = randomUUID();
    const event = { action, department: this.#name, ticket };
    return { requestId, result: it.app.invoke(admission, event, { requestId }) };
  }

  async ask(ask: Ask): Promise<Answer> {
    const { payload, functionError } = await this.deliver(ask).result;
    expect(functionError, JSON.stringify(payload)).toBeUndefined();
    return payload as Answer;
  }

  /** Who is in service, and then those who wait, in their order. */
  async line(): Promise<(string | undefined)[]> {
    const rules = { mostWaiting: 10, limits: new Map<string, number>(), silenceMs };
    const tableName = it.app.tableName(leaseTable);
    const event = { action: "look", department: this.#name };
    const { serving, waiting } = (await admit({ leases: it.leases, tableName, rules }, event)) as Queue;
    return [serving[0]?.ticket, ...waiting];
  }

  /** Matches the department's next write; of a kind and of its line, if they are given. */
  writes({ kind, inLine = false }: Pick<Moment, "kind" | "inLine"> = {}): Matcher {
    return ({ operation, body }) => {
      const writes =
        operation === "UpdateItem"
          ? [body]
          : (body.TransactItems ?? []).flatMap(({ Update }: { Update?: object }) => Update ?? []);
      return writes.some(
        ({ Key, ExpressionAttributeValues: values }: typeof body) =>
          Key.pk.S.endsWith(`/${this.#name}`) &&
          (kind === undefined || kindOf({ values }) === kind) &&
          (!inLine || Key.pk.S.includes("/line/")),
      );
    };
  }
}

/** An instance that has read the desk, and whose write stands before the table. */
interface Standing {
  readonly environmentId: string;
  readonly result: Promise<InvokeResult>;
  readonly write: HeldRequest;
}

async function standBeforeWrite(department: Department, { ask, ...which }: Moment): Promise<Standing> {
  const write = hold();
  // Arrivals count from here.
  it.proxy.reset();
  it.proxy.next(department.writes(which), write);
  const { requestId, result } = department.deliver(ask);
  await it.proxy.arrival(department.writes(which));
  const { id: environmentId } = await it.environmentOf(requestId);
  it.app.freeze(environmentId);
  return { environmentId, result, write };
}

interface Moment {
  readonly at: string;
  readonly before: readonly Ask[];
  readonly ask: Ask;
  /** Of its writes this one; the first if none is given. */
  readonly kind?: ReturnType<typeof kindOf>;
  /** Of its writes to the line. */
  readonly inLine?: boolean;
  readonly answer: Answer;
  readonly line: readonly (string | undefined)[];
}

const serving = (ticket: string): Answer => ({
  state: "serving",
  ticket,
  agent: 1,
  fencingToken: expect.any(Number) as number,
});
const waiting = (ticket: string, position: number): Answer => ({ state: "waiting", ticket, position });
const absent = (ticket: string): Answer => ({ state: "absent", ticket });
const called = (ticket: string): Answer => ({ serving: ticket, waiting: 1 });

const moments: readonly Moment[] = [
  { at: "an entry into a free department", before: [], ask: "enter a", answer: serving("a"), line: ["a"] },
  {
    at: "an entry into the queue",
    before: ["enter a", "enter b"],
    ask: "enter c",
    answer: waiting("c", 2),
    line: ["a", "b", "c"],
  },
  {
    at: "a waiter's heartbeat",
    before: ["enter a", "enter b", "enter c"],
    ask: "heartbeat b",
    answer: waiting("b", 1),
    line: ["a", "b", "c"],
  },
  {
    at: "a heartbeat in service",
    before: ["enter a", "enter b"],
    ask: "heartbeat a",
    answer: serving("a"),
    line: ["a", "b"],
  },
  {
    at: "the heartbeat that finds its turn",
    before: ["enter a", "enter b", "enter c", "leave a"],
    ask: "heartbeat b",
    answer: serving("b"),
    line: ["b", "c"],
  },
  {
    at: "a waiter's leaving",
    before: ["enter a", "enter b", "enter c"],
    ask: "leave b",
    answer: absent("b"),
    line: ["a", "c"],
  },
  {
    at: "a leaving from service",
    before: ["enter a", "enter b"],
    ask: "leave a",
    answer: absent("a"),
    line: [undefined, "b"],
  },
  {
    at: "the end of a service, by the desk",
    before: ["enter a", "enter b", "enter c"],
    ask: "next a",
    kind: "end",
    answer: called("b"),
    line: ["b", "c"],
  },
  {
    at: "the desk's call",
    before: ["enter a", "enter b", "enter c"],
    ask: "next a",
    kind: "acquire",
    answer: called("b"),
    line: ["b", "c"],
  },
  {
    at: "the end of the waiting of a ticket that is called",
    before: ["enter a", "enter b", "enter c"],
    ask: "next a",
    kind: "end",
    inLine: true,
    answer: called("b"),
    line: ["b", "c"],
  },
];

const deaths = moments.flatMap((moment) =>
  (["before", "after"] as const).map((lands) => ({ ...moment, lands })),
);

test.each(deaths)(
  "an instance that is killed between its read and its write, at $at, and the write lands $lands the death: the event that comes again finds one place, in its order",
  async ({ lands, ...moment }) => {
    const department = new Department();
    for (const ask of moment.before) await department.ask(ask);
    const { environmentId, result, write } = await standBeforeWrite(department, moment);
    if (lands === "before") await write.letGo();
    await it.app.kill(environmentId);
    expect(await result).toMatchObject({ payload: { errorType: "Runtime.ExitError" } });

    expect(await department.ask(moment.ask)).toMatchObject(moment.answer);
    expect(await department.line()).toEqual(moment.line);
    await write.letGo();
    expect(await department.line()).toEqual(moment.line);
  },
);

test.each(moments)(
  "an instance that is frozen between its read and its write, at $at: the event that comes again is answered by another, and the one that wakes says the same",
  async (moment) => {
    const department = new Department();
    for (const ask of moment.before) await department.ask(ask);
    const { environmentId, result, write } = await standBeforeWrite(department, moment);
    expect(await department.ask(moment.ask)).toMatchObject(moment.answer);
    expect(await department.line()).toEqual(moment.line);

    await write.letGo();
    it.app.thaw(environmentId);
    expect(await result).toMatchObject({ payload: moment.answer });
    expect(await department.line()).toEqual(moment.line);
  },
);

test("a ticket that falls silent in service is replaced by the next in line, by that one's heartbeat, and not before its time", async () => {
  const department = new Department();
  const dead = await department.ask("enter dead");
  const enteredAt = Date.now();
  const left = await it.leases.inspect(department.agentKey);
  for (const ticket of ["b", "c", "d"]) await department.ask(`enter ${ticket}`);

  let answers: Answer[] = [];
  // Those who are behind ask first: it is not who comes first that counts.
  const beat = async (): Promise<boolean> => {
    answers = [];
    for (const ticket of ["d", "c", "b"]) answers.push(await department.ask(`heartbeat ${ticket}`));
    return answers.some(({ state }) => state === "serving");
  };
  await until("somebody's turn", beat);
  expect(answers).toMatchObject([waiting("d", 3), waiting("c", 2), serving("b")]);
  expect(answers[2]?.fencingToken).toBeGreaterThan(Number(dead.fencingToken));
  const { acquiredAt } = (await it.leases.inspect(department.agentKey)) ?? {};
  expect(acquiredAt).toBeGreaterThanOrEqual(takeableAt(left, enteredAt));
  expect(await department.ask("heartbeat dead")).toEqual(absent("dead"));
  expect(await department.line()).toEqual(["b", "c", "d"]);
});
