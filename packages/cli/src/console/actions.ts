// The writes of the console. Each acts only on the lease that the page has shown, reports its result, and leaves a
// trace with the person's name.

import type { LeaseClient } from "@leasehold/client";
import { LeaseAdmin, LeaseOperator, type OperatorResult } from "@leasehold/client/admin";
import { parsedJson } from "@leasehold/client/internal";
import { JobRuns, TaskSet } from "@leasehold/jobs";
import { exitCodeOf, exitCodes, messageOf } from "../exit-codes.ts";
import { defined } from "../flags.ts";
import { parseDuration, shown } from "../terminal/text.ts";
import { leftLines } from "../view/next-steps.ts";
import { acquisitionId } from "./html.ts";
import type { ActionResult } from "./server.ts";

type Fields = Readonly<Record<string, string>>;
type Act = (fields: Fields, client: LeaseClient, by: string) => Promise<ActionResult>;

const done = (message: string): ActionResult => ({ status: 200, message });
const refused = (message: string): ActionResult => ({ status: 409, message });
const wrong = (message: string): ActionResult => ({ status: 400, message });

/** A reason that may be left empty. */
const optional = (reason: string | undefined) => defined({ reason: reason || undefined });

const acts: Readonly<Record<string, Act>> = {
  stop: onLease(async (operator, key, lease, { reason }) =>
    told(
      await operator.stop(key, { ...lease, ...optional(reason) }),
      "Asked. It hears of it at its next renewal.",
    ),
  ),
  break: onLease(async (operator, key, lease, { reason, word }) => {
    // A character that cannot be typed is typed in the form in which it is shown.
    if (word !== key && word !== shown(key)) return wrong("Not done: what you typed is not the key.");
    if (!reason) return wrong("Not done: a reason is needed.");
    return told(await operator.break(key, { ...lease, reason }), "Broken. The key is free.");
  }),
  resume: onLease(async (operator, key, { token }, { reason }) =>
    told(await operator.resume(key, { token, ...optional(reason) }), "The pause is over."),
  ),
  pause: async ({ key = "", for: given = "", reason }, client, by) => {
    const forMs = parseDuration(given);
    if (typeof forMs !== "number") return wrong(`Not done: "${given}" is no duration; ${forMs.advice}.`);
    if (!reason) return wrong("Not done: a reason is needed.");
    const result = await new LeaseOperator(client, { by }).pause(key, { forMs, reason });
    if (result.outcome === "heldByAnother") {
      return refused(
        `Not done: ${result.holder.owner} holds it. To wait for it: leasehold pause … --wait 5m`,
      );
    }
    return result.outcome === "free"
      ? refused("Not done: it was released just now. Try again.")
      : done(["Paused.", ...leftLines(key, result.leaves)].join(" "));
  },
  skip: async ({ job = "", slot = "", reason }, client, by) => {
    if (!reason) return wrong("Not done: a reason is needed.");
    await new JobRuns(client, job).skip(slot, reason, { by });
    return done("Skipped.");
  },
  requeue: async ({ set = "", state, remark, ids = "[]", reason }, client, by) => {
    const wanted = idsIn(ids);
    if (wanted === undefined) return wrong("Not done: ids is no list of tasks.");
    const tasks = new TaskSet(client, set);
    const trace = { by, ...optional(reason) };
    let requeued = 0;
    try {
      for (const id of wanted) {
        // Since the page was read, the task may have been requeued and have ended in another way.
        const task = await tasks.get(id);
        if (task?.state === state && task?.remark === remark && (await tasks.requeue(id, trace)))
          requeued += 1;
      }
    } catch (error) {
      return failed(error, requeued > 0 ? `${requeued} requeued. ` : "");
    }
    const left = wanted.size - requeued;
    return done(
      `${requeued} requeued.${left > 0 ? ` ${left} have changed meanwhile, and were left as they are.` : ""}`,
    );
  },
};

/** Reads the tasks that a page has named; undefined if the value is no list of texts. */
function idsIn(json: string): ReadonlySet<string> | undefined {
  const ids = parsedJson(json)?.value;
  return Array.isArray(ids) && ids.every((id) => typeof id === "string") ? new Set(ids) : undefined;
}

export async function act(
  name: string,
  fields: Fields,
  client: LeaseClient,
  by: string,
): Promise<ActionResult> {
  const found = Object.hasOwn(acts, name) ? acts[name] : undefined;
  if (found === undefined) return { status: 404, message: `There is no action "${name}".` };
  try {
    return await found(fields, client, by);
  } catch (error) {
    return failed(error);
  }
}

/** The result of a write that has failed, behind what is done. Throws a fault of this program again. */
function failed(error: unknown, done = ""): ActionResult {
  const code = exitCodeOf(error);
  if (code === exitCodes.fault) throw error;
  const status = code === exitCodes.denied ? 403 : code === exitCodes.unavailable ? 503 : 409;
  return { status, message: done + messageOf(error) };
}

/** An action only on the lease that the page has shown, and on no later one. */
function onLease(
  write: (
    operator: LeaseOperator,
    key: string,
    lease: { readonly token: string; readonly sortKey: string },
    fields: Fields,
  ) => Promise<ActionResult>,
): Act {
  return async (fields, client, by) => {
    const { key = "", id, "sort-key": sortKey = "lease" } = fields;
    const { leases } = await new LeaseAdmin(client).describe(key);
    const lease = leases.find((one) => one.sortKey === sortKey && acquisitionId(one) === id);
    if (lease !== undefined) {
      const { token } = lease;
      return await write(new LeaseOperator(client, { by }), key, { token, sortKey }, fields);
    }
    const other = leases.find((one) => one.sortKey === sortKey);
    return other === undefined
      ? refused("Not done: it was released meanwhile.")
      : refused(`Not done: ${other.owner} holds it by now. Look again.`);
  };
}

function told(result: OperatorResult, message: string): ActionResult {
  if (result.outcome === "done") return done(message);
  if (result.outcome === "free") return refused("Not done: it was released meanwhile.");
  return refused(`Not done: ${result.holder.owner} holds it by now. Look again.`);
}
