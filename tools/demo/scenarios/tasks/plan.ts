import { createHash } from "node:crypto";
import type { TaskInput } from "@leasehold/jobs";
import { taskSetKey } from "../../../../functions/claim-tasks/schema.ts";
import type { GateRequest } from "../../gate.ts";

/** The set. */
export const set = "checksums";
/** How many calls of the worker function are made at once. */
export const workersAtOnce = 4;
/** How long it takes until another worker is called where one has found nothing more to do. */
export const betweenCallsMs = 250;
/** How often a task is tried: the worker's own default. */
export const mostAttempts = 3;

const ids = Array.from({ length: 60 }, (_, index) => `doc-${String(index + 1).padStart(2, "0")}`);

/** Their documents are damaged: every attempt fails. */
export const damaged: readonly string[] = ["doc-07", "doc-21", "doc-33", "doc-48"];
/** It lacks its checksum: no attempt can help it, and the first one parks it. */
export const incomplete = "doc-54";
/** The tasks that cannot succeed. */
export const bad: readonly string[] = [...damaged, incomplete];
/** The damaged one whose worker is killed in the last attempt. */
export const poison = "doc-33";

/** Documents whose SHA-256 is to be compared with the announced one. */
export function tasksToAdd(): TaskInput[] {
  return ids.map((id) => {
    const text = `The text of ${id}.`;
    if (id === incomplete) return { id, payload: { text } };
    const announced = damaged.includes(id) ? `${text} And more.` : text;
    return { id, payload: { text, sha256: createHash("sha256").update(announced).digest("hex") } };
  });
}

/** Sees endings of tasks on their way to the table: of good ones, or of one task alone. */
export class EndingWatch {
  readonly #only: string | undefined;
  readonly #after: number;
  readonly #seen = new Set<string>();

  /** Finds the ending of one task, or of the first good one after so many others. */
  constructor(which: { readonly only: string } | { readonly after: number }) {
    this.#only = "only" in which ? which.only : undefined;
    this.#after = "after" in which ? which.after : 0;
  }

  /** Gives the id of the task that a request ends, if it is the one that is watched for. */
  sees({ operation, body }: GateRequest): string | undefined {
    if (operation !== "TransactWriteItems") return undefined;
    const text = JSON.stringify(body);
    if (!text.includes(JSON.stringify(taskSetKey(set)))) return undefined;
    const id = ids.find((one) => text.includes(`#${one}"`));
    if (id === undefined || this.#only !== undefined) return id === this.#only ? id : undefined;
    if (bad.includes(id)) return undefined;
    this.#seen.add(id);
    return this.#seen.size > this.#after ? id : undefined;
  }
}
