import { command } from "../command.ts";
import { yes } from "../flags.ts";
import { askedTable, factsOf } from "../table/asked-table.ts";
import { reportFindings } from "../table/findings.ts";
import { settingFindings } from "../table/table-checks.ts";

export default command({
  usage: "table check [NAME]",
  details: `
Checks that a table is a lease table, and that its settings are right. Exit 0, 2 where something is broken, 1 with
--strict where there are warnings. leasehold doctor checks permissions, clock and leases as well.`,
  writes: false,
  operands: [0, 1],
  flags: { strict: yes("exit 1 where there are warnings") },
  async run(call) {
    const asked = await askedTable(call, call.operands[0]);
    try {
      return reportFindings(call, settingFindings(asked, await factsOf(asked)), call.flags.strict);
    } finally {
      asked.close();
    }
  },
});
