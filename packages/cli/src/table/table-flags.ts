// The common parts of the commands about a table: its name, tags, and the printing of requests.

import type { Call } from "../command.ts";
import { UsageError } from "../exit-codes.ts";
import { shown } from "../terminal/text.ts";
import type { PrintRequest } from "./table-writes.ts";

/** The name of a table that does not exist yet: the operand, or --table. Throws a UsageError. */
export function newTableName({ operands, global }: Pick<Call, "operands" | "global">): string {
  const name = operands[0] ?? global.table;
  if (name === undefined) throw new UsageError("no name is given; say leasehold table create NAME");
  if (!/^[\w.-]{3,255}$/.test(name)) {
    throw new UsageError(
      `"${shown(name)}" is no table's name; allowed: 3 to 255 letters, digits, _, - and .`,
    );
  }
  return name;
}

/** Tags of the form k=v. Throws a UsageError. */
export function tagsOf(texts: readonly string[]): { readonly Key: string; readonly Value: string }[] {
  return texts.map((text) => {
    const [, Key, Value] = /^([^=]{1,128})=(.{0,256})$/.exec(text) ?? [];
    if (Key === undefined || Value === undefined) {
      throw new UsageError(`--tag is "${shown(text)}"; allowed: KEY=VALUE`);
    }
    return { Key, Value };
  });
}

/** With --dry-run, a function that prints requests; else undefined. */
export function printRequest({
  global,
  terminal,
}: Pick<Call, "global" | "terminal">): PrintRequest | undefined {
  if (!global["dry-run"]) return undefined;
  return (operation, request) => terminal.print(JSON.stringify({ operation, request }, undefined, 2));
}
