import { type Call, command } from "../command.ts";
import { exitCodes, UsageError } from "../exit-codes.ts";
import { texts, yes } from "../flags.ts";
import { askedTable, factsOf } from "../table/asked-table.ts";
import { printRequest, tagsOf } from "../table/table-flags.ts";
import { TableWrites } from "../table/table-writes.ts";
import { confirm } from "../terminal/terminal.ts";
import { shown } from "../terminal/text.ts";

const flags = {
  "deletion-protection": yes("the table refuses to be deleted"),
  "no-deletion-protection": yes("the table may be deleted; asks first"),
  pitr: yes("point-in-time recovery on"),
  "no-pitr": yes("point-in-time recovery off: what it has kept is gone; asks first"),
  stream: yes("a stream of changes, old and new"),
  "no-stream": yes("no stream: waiting workflows are not woken any more; asks first"),
  ttl: yes("ttl on the right attribute; from a wrong one it takes two calls, an hour apart"),
  tag: texts("K=V", "a tag, such as leasehold=true; may be given several times"),
};

type SetCall = Call<typeof flags>;

const opposites = ["deletion-protection", "pitr", "stream"] as const;

export default command({
  usage: "table set [NAME] flags",
  details:
    "Changes a table's settings, one request for each. What takes protection away asks for the table's name first.",
  writes: true,
  operands: [0, 1],
  flags,
  async run(call) {
    const tags = tagsOf(call.flags.tag);
    checkFlags(call, tags.length > 0);
    const asked = await askedTable(call, call.operands[0]);
    const { tableName } = asked;
    const writes = new TableWrites(asked, printRequest(call));
    const say = (line: string): void => {
      if (!call.global["dry-run"]) call.terminal.say(`${tableName}: ${line}`);
    };
    try {
      // Detects a wrong name before any question or change.
      const { table } = await factsOf(asked);
      if (!(await mayWeaken(call, tableName))) {
        call.terminal.say("nothing is changed");
        return exitCodes.usage;
      }
      for (const [flag, isOn] of switched(call, "deletion-protection")) {
        await writes.update({ DeletionProtectionEnabled: isOn });
        say(`${flag} ${isOn ? "on" : "off"}`);
      }
      for (const [, isOn] of switched(call, "stream")) {
        const stream = isOn
          ? { StreamEnabled: true, StreamViewType: "NEW_AND_OLD_IMAGES" as const }
          : { StreamEnabled: false };
        await writes.update({ StreamSpecification: stream });
        say(`stream ${isOn ? "on" : "off"}`);
      }
      for (const [, isOn] of switched(call, "pitr")) {
        await writes.setPointInTimeRecovery(isOn);
        say(`point-in-time recovery ${isOn ? "on" : "off"}`);
      }
      if (call.flags.ttl) say(await writes.setTimeToLive());
      if (tags.length > 0) {
        await writes.tag(table.TableArn ?? "", tags);
        say(`tagged ${tags.map(({ Key, Value }) => shown(`${Key}=${Value}`)).join(", ")}`);
      }
      return exitCodes.done;
    } finally {
      asked.close();
    }
  },
});

/** The setting, if the flags switch it on or off. */
function switched(
  { flags }: SetCall,
  flag: (typeof opposites)[number],
): readonly (readonly [flag: string, isOn: boolean])[] {
  const name = flag.replace("-", " ");
  if (flags[flag]) return [[name, true]];
  return flags[`no-${flag}`] ? [[name, false]] : [];
}

function checkFlags({ flags }: SetCall, hasTags: boolean): void {
  for (const flag of opposites) {
    if (flags[flag] && flags[`no-${flag}`]) {
      throw new UsageError(`--${flag} and --no-${flag} do not go together; give one of them`);
    }
  }
  const isAny = hasTags || flags.ttl || opposites.some((flag) => flags[flag] || flags[`no-${flag}`]);
  if (!isAny) throw new UsageError("nothing is to be set; leasehold table set --help lists what can be");
}

/** Asks a person if a setting removes protection. */
async function mayWeaken({ flags, global, terminal, signal }: SetCall, tableName: string): Promise<boolean> {
  const weaker = opposites.filter((flag) => flags[`no-${flag}`]).map((flag) => `--no-${flag}`);
  if (weaker.length === 0 || global.yes || global["dry-run"]) return true;
  terminal.say(
    `${weaker.join(" and ")} of the table ${tableName} takes away what programs or people rely on.`,
  );
  return await confirm(terminal, { question: "Type the table's name to change it", word: tableName, signal });
}
