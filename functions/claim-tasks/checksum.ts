import { createHash } from "node:crypto";
import { FinalFailureError } from "@leasehold/jobs";

/**
 * Does one task: compares a document's SHA-256 with the announced one, and gives the remark of its success. Throws an
 * error that says what is wrong with the document; a FinalFailureError when the task itself is wrong.
 */
export function compareChecksum(payload: unknown): string {
  const { text, sha256 } = (payload ?? {}) as { readonly text?: unknown; readonly sha256?: unknown };
  if (typeof text !== "string" || typeof sha256 !== "string") {
    throw new FinalFailureError("the task lacks its text or its sha256");
  }
  const actual = createHash("sha256").update(text, "utf8").digest("hex");
  if (actual === sha256.toLowerCase()) return `the SHA-256 is ${actual}`;
  throw new Error(`the document's SHA-256 is ${actual}`);
}
