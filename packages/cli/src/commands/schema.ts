import { command } from "../command.ts";
import { exitCodes, UsageError } from "../exit-codes.ts";
import { nearest } from "../flags.ts";
import { jsonSchemaOf, type RecordKind, recordKinds, schemaName } from "../terminal/record-kinds.ts";
import { jsonText, shown } from "../terminal/text.ts";

export default command({
  usage: "schema [KIND]",
  details: `
Prints the JSON Schema of what --json and --ndjson print. Each record says its kind and its version: "schema": "lock/1". A new
field makes no new version. Without KIND it lists the kinds.

  leasehold schema lock`,
  writes: false,
  operands: [0, 1],
  flags: {},
  async run({ operands: [given], terminal }) {
    const kinds = Object.keys(recordKinds) as RecordKind[];
    if (given === undefined) {
      for (const kind of kinds)
        terminal.print(`${schemaName(kind).padEnd(16)}${recordKinds[kind].description}`);
      return exitCodes.done;
    }
    const kind = kinds.find((one) => one === given || schemaName(one) === given);
    if (kind === undefined) {
      throw new UsageError(`${shown(given)} is no kind${nearest(given, kinds)}; leasehold schema lists them`);
    }
    terminal.print(jsonText(jsonSchemaOf(kind), 2));
    return exitCodes.done;
  },
});
