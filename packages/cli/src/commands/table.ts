// The table itself: it is created, shown, checked and changed.

import {
  CreateTableCommand,
  type Tag,
  TagResourceCommand,
  UpdateContinuousBackupsCommand,
  UpdateTableCommand,
  UpdateTimeToLiveCommand,
} from "@aws-sdk/client-dynamodb";
import { createLeaseTable } from "@leasehold/client";
import { attributeNames } from "@leasehold/client/schema";
import { type Call, command, confirm } from "../command.ts";
import { CommandError, exitCodes, messageOf, UsageError } from "../exit-codes.ts";
import { custom, several, text, type Values, yes } from "../flags.ts";
import { type AskedTable, factsOf, type Learnt, timeToLiveOf, withTable } from "../table/asked-table.ts";
import { checkedSettings, keyText, reportFindings } from "../table/findings.ts";
import { newTableName, tableTag } from "../table/place.ts";
import { durationText, shown } from "../terminal/text.ts";

/** An error where the name of the table is taken. */
function takenError(error: unknown, { tableName, region }: AskedTable): unknown {
  const { name } = Object((error as Error).cause) as { readonly name?: unknown };
  if (name !== "ResourceInUseException") return error;
  const message =
    `the table ${tableName} exists already (${region}): leasehold table check says whether it is a lease ` +
    "table, leasehold table set changes its settings";
  return new CommandError(message, exitCodes.configuration, { cause: error });
}

async function setPointInTimeRecovery({ tableName, write }: AskedTable, isOn: boolean): Promise<void> {
  const PointInTimeRecoverySpecification = { PointInTimeRecoveryEnabled: isOn };
  const input = { TableName: tableName, PointInTimeRecoverySpecification };
  await write("UpdateContinuousBackups", new UpdateContinuousBackupsCommand(input));
}

async function setTimeToLive(
  { tableName, write }: AskedTable,
  AttributeName: string,
  Enabled: boolean,
): Promise<void> {
  const TimeToLiveSpecification = { AttributeName, Enabled };
  const input = { TableName: tableName, TimeToLiveSpecification };
  await write("UpdateTimeToLive", new UpdateTimeToLiveCommand(input));
}

const { partitionKey, sortKey, timeToLive } = attributeNames;

/**
 * Turns the time to live on; if it is on for another attribute, turns that off. Returns what was done, for people.
 * DynamoDB accepts one change an hour.
 */
async function correctTimeToLive(asked: AskedTable): Promise<string> {
  const current = await timeToLiveOf(asked);
  if (current === timeToLive) return `ttl is on already, on "${timeToLive}"`;
  await setTimeToLive(asked, current ?? timeToLive, current === undefined);
  return current === undefined
    ? `ttl is on, on "${timeToLive}"`
    : `ttl is turned off for "${current}": say leasehold table set --ttl again in an hour`;
}

/** Reads a tag of the form k=v. Throws a UsageError. */
function tagIn(text: string, name: string): { readonly Key: string; readonly Value: string } {
  const [, Key, Value] = /^([^=]{1,128})=(.{0,256})$/.exec(text) ?? [];
  if (Key !== undefined && Value !== undefined) return { Key, Value };
  throw new UsageError(`${name} is "${text}"; allowed: KEY=VALUE`);
}

const createFlags = {
  stream: yes("a stream of changes: waiting workflows and durable functions need it"),
  pitr: yes("point-in-time recovery: the table can be set back to any second of 35 days"),
  kms: text("KEY", "encrypt with this KMS key (id, ARN or alias) in place of one that AWS owns"),
  "deletion-protection": yes("the table refuses to be deleted until this is taken back"),
  tag: several(custom("K=V", "a tag; may be given several times", tagIn)),
};

/** The request that creates a table; ttl and point-in-time recovery are separate requests. */
function creationOf(
  TableName: string,
  { stream, kms, "deletion-protection": isProtected }: Values<typeof createFlags>,
  Tags: Tag[],
): CreateTableCommand {
  return new CreateTableCommand({
    TableName,
    BillingMode: "PAY_PER_REQUEST",
    AttributeDefinitions: [
      { AttributeName: partitionKey, AttributeType: "S" },
      { AttributeName: sortKey, AttributeType: "S" },
    ],
    KeySchema: [
      { AttributeName: partitionKey, KeyType: "HASH" },
      { AttributeName: sortKey, KeyType: "RANGE" },
    ],
    ...(isProtected ? { DeletionProtectionEnabled: true } : {}),
    ...(stream ? { StreamSpecification: { StreamEnabled: true, StreamViewType: "NEW_AND_OLD_IMAGES" } } : {}),
    ...(kms === undefined
      ? {}
      : { SSESpecification: { Enabled: true, SSEType: "KMS", KMSMasterKeyId: kms } }),
    Tags,
  });
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
  flags: createFlags,
  async run(call, name?: string) {
    const { flags, global, clock, terminal, printer } = call;
    const tableName = newTableName(name ?? global.table);
    const tags = [tableTag, ...flags.tag];
    return await withTable(call, tableName, async (asked) => {
      const startedAt = clock.monotonic();
      await asked.write("CreateTable", creationOf(tableName, flags, tags)).catch((error: unknown) => {
        throw takenError(error, asked);
      });
      if (global["dry-run"]) await setTimeToLive(asked, timeToLive, true);
      // Waits until it is there, and turns ttl on.
      else await createLeaseTable({ tableName, dynamodb: asked.dynamodb, waitMs: longestCreationMs, clock });
      if (flags.pitr) {
        await setPointInTimeRecovery(asked, true).catch((error: unknown) => {
          const message = `${tableName} is created, without point-in-time recovery: ${messageOf(error)}`;
          throw new CommandError(message, error instanceof CommandError ? error.exitCode : exitCodes.denied);
        });
      }
      if (global["dry-run"]) return exitCodes.done;
      const { region } = asked;
      const took = durationText(clock.monotonic() - startedAt);
      const said = [
        "on demand",
        `key ${partitionKey} (S) + ${sortKey} (S)`,
        `ttl on "${timeToLive}"`,
        ...(flags.stream ? ["stream on"] : []),
        ...(flags.pitr ? ["point-in-time recovery on"] : []),
        `deletion protection ${flags["deletion-protection"] ? "on" : "off"}`,
      ];
      printer.document("tableCreated", { tableName, region, settings: { ...flags, tag: tags } }, () => [
        `created ${tableName} in ${region}: ${said.join(", ")}.   ${took}`,
      ]);
      terminal.say(`next: export LEASEHOLD_TABLE_NAME=${tableName}; leasehold doctor`);
      return exitCodes.done;
    });
  },
});

export const tableShow = command({
  usage: "table show [NAME]",
  details: "Prints a table's settings. leasehold table check says which of them are wrong.",
  writes: false,
  flags: {},
  async run(call, name?: string) {
    return await withTable(call, name, async (asked) => {
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
    });
  },
});

export const tableCheck = command({
  usage: "table check [NAME]",
  details: `
Checks that a table is a lease table, and that its settings are right. Exit 0, 2 where something is broken, 1 with
--strict where there are warnings. leasehold doctor checks permissions, clock and leases as well.`,
  writes: false,
  flags: { strict: yes("exit 1 where there are warnings") },
  async run(call, name?: string) {
    return reportFindings(call, await checkedSettings(call, name), call.flags.strict);
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
  tag: several(custom("K=V", "a tag, such as leasehold=true; may be given several times", tagIn)),
};

type SetCall = Call<typeof flags>;

/** The settings that are switched on and off: what people call each, and its request. */
const switches = {
  "deletion-protection": {
    name: "deletion protection",
    change: ({ tableName: TableName, write }: AskedTable, DeletionProtectionEnabled: boolean) =>
      write("UpdateTable", new UpdateTableCommand({ TableName, DeletionProtectionEnabled })),
  },
  stream: {
    name: "stream",
    change: ({ tableName: TableName, write }: AskedTable, StreamEnabled: boolean) => {
      const view = StreamEnabled ? { StreamViewType: "NEW_AND_OLD_IMAGES" as const } : {};
      const StreamSpecification = { StreamEnabled, ...view };
      return write("UpdateTable", new UpdateTableCommand({ TableName, StreamSpecification }));
    },
  },
  pitr: { name: "point-in-time recovery", change: setPointInTimeRecovery },
} as const;

/** In the order of their requests. */
const settings = Object.keys(switches) as (keyof typeof switches)[];
/** In the order in which people are told of them. */
const opposites = settings.toSorted();

export const tableSet = command({
  usage: "table set [NAME] flags",
  details:
    "Changes a table's settings, one request for each. What takes protection away asks for the table's name first.",
  writes: true,
  flags,
  async run(call, name?: string) {
    checkFlags(call);
    return await withTable(call, name, async (asked) => {
      const { tableName, write } = asked;
      const say = (line: string): void => {
        if (!call.global["dry-run"]) call.terminal.say(`${tableName}: ${line}`);
      };
      // Detects a wrong name before any question or change.
      const { table } = await factsOf(asked);
      if (!(await mayWeaken(call, tableName))) {
        call.terminal.say("nothing is changed");
        return exitCodes.usage;
      }
      for (const setting of settings) {
        const isOn = call.flags[setting];
        if (!isOn && !call.flags[`no-${setting}`]) continue;
        const { name, change } = switches[setting];
        await change(asked, isOn);
        say(`${name} ${isOn ? "on" : "off"}`);
      }
      if (call.flags.ttl) say(await correctTimeToLive(asked));
      const tags = [...call.flags.tag];
      if (tags.length > 0) {
        await write("TagResource", new TagResourceCommand({ ResourceArn: table.TableArn ?? "", Tags: tags }));
        say(`tagged ${tags.map(({ Key, Value }) => shown(`${Key}=${Value}`)).join(", ")}`);
      }
      return exitCodes.done;
    });
  },
});

function checkFlags({ flags }: SetCall): void {
  for (const flag of opposites) {
    if (flags[flag] && flags[`no-${flag}`]) {
      throw new UsageError(`--${flag} and --no-${flag} do not go together; give one of them`);
    }
  }
  const isAny =
    flags.tag.length > 0 || flags.ttl || opposites.some((flag) => flags[flag] || flags[`no-${flag}`]);
  if (!isAny) throw new UsageError("nothing is to be set; leasehold table set --help lists what can be");
}

/** Asks a person if a setting removes protection. */
async function mayWeaken(call: SetCall, tableName: string): Promise<boolean> {
  const { flags, global, terminal } = call;
  const weaker = opposites.filter((flag) => flags[`no-${flag}`]).map((flag) => `--no-${flag}`);
  if (weaker.length === 0 || global.yes || global["dry-run"]) return true;
  terminal.say(
    `${weaker.join(" and ")} of the table ${tableName} takes away what programs or people rely on.`,
  );
  return await confirm(call, { question: "Type the table's name to change it", word: tableName });
}
