import { createHash, randomUUID } from "node:crypto";
import type jsonata from "jsonata";

const algorithms: Readonly<Record<string, string>> = {
  MD5: "md5",
  "SHA-1": "sha1",
  "SHA-256": "sha256",
  "SHA-384": "sha384",
  "SHA-512": "sha512",
};

/** Adds the functions that Step Functions has beyond JSONata's own, and its `$random`, which takes a seed. */
export function addStepFunctions(expression: jsonata.Expression, random: () => number): void {
  expression.registerFunction("partition", partition, "<an:a<a>>");
  expression.registerFunction("range", range, "<nnn:a<n>>");
  expression.registerFunction("hash", hash, "<ss:s>");
  expression.registerFunction("parse", parse, "<s:x>");
  expression.registerFunction("uuid", () => randomUUID(), "<:s>");
  expression.registerFunction(
    "random",
    (seed?: number) => (seed === undefined ? random() : seeded(seed)),
    "<n?:n>",
  );
}

function partition(items: readonly unknown[] | undefined, size: number): unknown[][] | undefined {
  if (items === undefined) return undefined;
  if (!Number.isInteger(size) || size < 1) throw new Error("$partition needs a whole size of at least 1");
  return Array.from({ length: Math.ceil(items.length / size) }, (_, index) =>
    items.slice(index * size, (index + 1) * size),
  );
}

function range(first: number, last: number, step: number): number[] {
  const length = Math.floor((last - first) / step) + 1;
  if (!Number.isFinite(length) || length > 1000) throw new Error("$range gives at most 1000 numbers");
  return Array.from({ length: Math.max(0, length) }, (_, index) => first + index * step);
}

function hash(data: string | undefined, algorithm: string): string | undefined {
  if (data === undefined) return undefined;
  const name = algorithms[algorithm];
  if (name === undefined) throw new Error(`$hash knows ${Object.keys(algorithms).join(", ")}`);
  return createHash(name).update(data).digest("hex");
}

function parse(text: string | undefined): unknown {
  return text === undefined ? undefined : JSON.parse(text);
}

/** The same number for the same seed, as Step Functions promises; not the same number as there. */
function seeded(seed: number): number {
  return createHash("sha256").update(String(seed)).digest().readUInt32BE(0) / 2 ** 32;
}
