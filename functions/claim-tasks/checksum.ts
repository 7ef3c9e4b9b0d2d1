import { createHash } from "node:crypto";
import type { Task } from "./task-board.ts";
import type { Verdict } from "./worker.ts";

/** Does one task: compares a document's SHA-256 with the one that was announced. */
export async function compareChecksum({ input }: Pick<Task, "input">): Promise<Verdict> {
  const { text, sha256 } = (input ?? {}) as { readonly text?: unknown; readonly sha256?: unknown };
  if (typeof text !== "string" || typeof sha256 !== "string") {
    return { succeeded: false, remark: "the task lacks its text or its sha256" };
  }
  const actual = createHash("sha256").update(text, "utf8").digest("hex");
  if (actual === sha256.toLowerCase()) return { succeeded: true, result: { sha256: actual } };
  return { succeeded: false, remark: `the document's SHA-256 is ${actual}` };
}
