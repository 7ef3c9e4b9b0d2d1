import { command } from "../command.ts";
import { exitCodes } from "../exit-codes.ts";
import { askedTable, factsOf, type Learnt } from "../table/asked-table.ts";
import { keyText } from "../table/table-checks.ts";
import { shown } from "../terminal/text.ts";

export default command({
  usage: "table show [NAME]",
  details: "Prints a table's settings. leasehold table check says which of them are wrong.",
  writes: false,
  operands: [0, 1],
  flags: {},
  async run(call) {
    const asked = await askedTable(call, call.operands[0]);
    try {
      const facts = await factsOf(asked);
      const { table, ttl, pointInTimeRecovery, tags } = facts;
      const said = <T>(learnt: Learnt<T>, text: (value: T) => string): string =>
        "unknown" in learnt ? `not known: ${learnt.unknown}` : text(learnt.value);
      const entries = {
        table: `${table.TableName}, ${table.TableStatus}`,
        arn: table.TableArn ?? "",
        key: keyText(facts),
        billing: table.BillingModeSummary?.BillingMode === "PAY_PER_REQUEST" ? "on demand" : "provisioned",
        ttl: said(ttl, (attribute) => (attribute === undefined ? "off" : `on "${attribute}"`)),
        stream: table.StreamSpecification?.StreamViewType ?? "none",
        "deletion protection": table.DeletionProtectionEnabled === true ? "on" : "off",
        "point-in-time recovery": said(pointInTimeRecovery, (isOn) => (isOn ? "on" : "off")),
        encryption: table.SSEDescription?.KMSMasterKeyArn ?? "a key that AWS owns",
        replicas: (table.Replicas ?? []).map(({ RegionName }) => RegionName).join(", ") || "none",
        size: `about ${table.ItemCount ?? 0} items, ${table.TableSizeBytes ?? 0} bytes (counted every 6 hours)`,
        tags: said(tags, (list) => list.map(({ Key, Value }) => `${Key}=${Value}`).join(", ") || "none"),
      };
      const width = Math.max(...Object.keys(entries).map(({ length }) => length));
      call.printer.document("table", { table, ttl, pointInTimeRecovery, tags }, () =>
        Object.entries(entries).map(([name, value]) => `${name.padEnd(width)}  ${shown(value)}`),
      );
      return exitCodes.done;
    } finally {
      asked.close();
    }
  },
});
