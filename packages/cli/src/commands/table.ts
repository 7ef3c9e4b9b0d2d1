// The table itself: it is created, shown, checked and changed.

import {
  CreateTableCommand,
  type CreateTableCommandInput,
  DescribeTimeToLiveCommand,
  TagResourceCommand,
  UpdateContinuousBackupsCommand,
  UpdateTableCommand,
  type UpdateTableCommandInput,
  UpdateTimeToLiveCommand,
} from "@aws-sdk/client-dynamodb";
import { createLeaseTable } from "@leasehold/client";
import { attributeNames } from "@leasehold/client/schema";
import { type Call, command } from "../command.ts";
import { CommandError, exitCodes, messageOf, UsageError } from "../exit-codes.ts";
import { text, texts, yes } from "../flags.ts";
import { type AskedTable, askedTable, factsOf, type Learnt, refusalIn } from "../table/asked-table.ts";
import { createTableInput, newTableName, tableTag, tagsOf } from "../table/definition.ts";
import { keyText, reportFindings, settingFindings } from "../table/findings.ts";
import { confirm } from "../terminal/terminal.ts";
import { durationText, shown } from "../terminal/text.ts";

/** Prints a request instead of sending it. */
type PrintRequest = (operation: string, request: object) => void;

/** With --dry-run, a function that prints requests; else undefined. */
function printRequest({ global, terminal }: Pick<Call, "global" | "terminal">): PrintRequest | undefined {
  if (!global["dry-run"]) return undefined;
  return (operation, request) => terminal.print(JSON.stringify({ operation, request }, undefined, 2));
}

/** Changes a table's settings. */
class TableWrites {
  readonly #asked: AskedTable;
  readonly #print: PrintRequest | undefined;

  /** With `print` nothing is sent. */
  constructor(asked: AskedTable, print: PrintRequest | undefined) {
    this.#asked = asked;
    this.#print = print;
  }

  /** Creates the table. Rejects with a CommandError (78) if the name is taken. */
  async create(input: CreateTableCommandInput): Promise<void> {
    try {
      await this.#send("CreateTable", input, new CreateTableCommand(input));
    } catch (error) {
      const { name } = Object((error as Error).cause) as { readonly name?: unknown };
      if (name !== "ResourceInUseException") throw error;
      const where = this.#asked.region;
      throw new CommandError(
        `the table ${this.#asked.tableName} exists already (${where}): leasehold table check says whether it is a lease ` +
          "table, leasehold table set changes its settings",
        exitCodes.configuration,
        { cause: error },
      );
    }
  }

  async setPointInTimeRecovery(isOn: boolean): Promise<void> {
    const input = {
      TableName: this.#asked.tableName,
      PointInTimeRecoverySpecification: { PointInTimeRecoveryEnabled: isOn },
    };
    await this.#send("UpdateContinuousBackups", input, new UpdateContinuousBackupsCommand(input));
  }

  async update(change: Omit<UpdateTableCommandInput, "TableName">): Promise<void> {
    const input = { TableName: this.#asked.tableName, ...change };
    await this.#send("UpdateTable", input, new UpdateTableCommand(input));
  }

  async tag(
    tableArn: string,
    tags: readonly { readonly Key: string; readonly Value: string }[],
  ): Promise<void> {
    const input = { ResourceArn: tableArn, Tags: [...tags] };
    await this.#send("TagResource", input, new TagResourceCommand(input));
  }

  /**
   * Turns the time to live on; if it is on for another attribute, turns that off. Returns what was done, for people.
   * DynamoDB accepts one change an hour.
   */
  async setTimeToLive(): Promise<string> {
    const TableName = this.#asked.tableName;
    const { TimeToLiveDescription: current } = await this.#asked.ask((dynamodb, options) =>
      dynamodb.send(new DescribeTimeToLiveCommand({ TableName }), options),
    );
    const isOn = current?.TimeToLiveStatus?.startsWith("ENABL") ?? false;
    const { timeToLive } = attributeNames;
    if (isOn && current?.AttributeName === timeToLive) return `ttl is on already, on "${timeToLive}"`;
    const attribute = isOn ? (current?.AttributeName ?? "") : timeToLive;
    const input = { TableName, TimeToLiveSpecification: { AttributeName: attribute, Enabled: !isOn } };
    await this.#send("UpdateTimeToLive", input, new UpdateTimeToLiveCommand(input));
    return isOn
      ? `ttl is turned off for "${attribute}": say leasehold table set --ttl again in an hour`
      : `ttl is on, on "${timeToLive}"`;
  }

  // biome-ignore lint/suspicious/noExplicitAny: the SDK's overloads take each command by its own type.
  async #send(operation: string, input: object, command: any): Promise<void> {
    if (this.#print !== undefined) {
      this.#print(operation, input);
      return;
    }
    try {
      await this.#asked.ask((dynamodb, options) => dynamodb.send(command, options));
    } catch (error) {
      if (refusalIn(error) !== "unsupported") throw error;
      const message = `the engine of the table ${this.#asked.tableName} does not know ${operation}: nothing is changed`;
      throw new CommandError(message, exitCodes.configuration, { cause: error });
    }
  }
}

/** DynamoDB creates a table within this time; most take some seconds. */
const longestCreationMs = 120_000;

export const tableCreate = command({
  usage: "table create NAME [flags]",
  details: `
Creates a lease table: on demand, with the key and the ttl that the library needs, and the tag leasehold=true, by which
commands find it. Needs CreateTable, TagResource, DescribeTable, DescribeTimeToLive, UpdateTimeToLive, and for --pitr
UpdateContinuousBackups. In production, deletion protection and point-in-time recovery are worth their price.

  leasehold table create leases --deletion-protection --pitr
  leasehold table cfn leases          # the same for CloudFormation; also terraform, cdk`,
  writes: true,
  operands: [0, 1],
  flags: {
    stream: yes("a stream of changes: waiting workflows and durable functions need it"),
    pitr: yes("point-in-time recovery: the table can be set back to any second of 35 days"),
    kms: text("KEY", "encrypt with this KMS key (id, ARN or alias) in place of one that AWS owns"),
    "deletion-protection": yes("the table refuses to be deleted until this is taken back"),
    tag: texts("K=V", "a tag; may be given several times"),
  },
  async run(call) {
    const { flags, global, clock, terminal, printer } = call;
    const tableName = newTableName(call);
    const tags = [tableTag, ...tagsOf(flags.tag)];
    const asked = await askedTable(call, tableName);
    const writes = new TableWrites(asked, printRequest(call));
    const startedAt = clock.monotonic();
    try {
      await writes.create(
        createTableInput({
          tableName,
          stream: flags.stream,
          deletionProtection: flags["deletion-protection"],
          kmsKey: flags.kms,
          tags,
        }),
      );
      if (global["dry-run"]) {
        const { timeToLive } = attributeNames;
        const TimeToLiveSpecification = { AttributeName: timeToLive, Enabled: true };
        printRequest(call)?.("UpdateTimeToLive", { TableName: tableName, TimeToLiveSpecification });
      } else {
        // Waits until it is there, and turns ttl on.
        await createLeaseTable({ tableName, dynamodb: asked.dynamodb, waitMs: longestCreationMs, clock });
      }
      if (flags.pitr) {
        await writes.setPointInTimeRecovery(true).catch((error: unknown) => {
          const reason = messageOf(error);
          const exitCode = error instanceof CommandError ? error.exitCode : exitCodes.denied;
          throw new CommandError(
            `${tableName} is created, without point-in-time recovery: ${reason}`,
            exitCode,
          );
        });
      }
      if (global["dry-run"]) return exitCodes.done;
      const { region } = asked;
      const took = durationText(clock.monotonic() - startedAt);
      const { partitionKey, sortKey, timeToLive } = attributeNames;
      const settings = [
        "on demand",
        `key ${partitionKey} (S) + ${sortKey} (S)`,
        `ttl on "${timeToLive}"`,
        ...(flags.stream ? ["stream on"] : []),
        ...(flags.pitr ? ["point-in-time recovery on"] : []),
        `deletion protection ${flags["deletion-protection"] ? "on" : "off"}`,
      ];
      printer.document("tableCreated", { tableName, region, settings: { ...flags, tag: tags } }, () => [
        `created ${tableName} in ${region}: ${settings.join(", ")}.   ${took}`,
      ]);
      terminal.say(`next: export LEASEHOLD_TABLE_NAME=${tableName}; leasehold doctor`);
      return exitCodes.done;
    } finally {
      asked.close();
    }
  },
});

export const tableShow = command({
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

export const tableCheck = command({
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

export const tableSet = command({
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
