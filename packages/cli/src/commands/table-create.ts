import { createLeaseTable } from "@leasehold/client";
import { attributeNames } from "@leasehold/client/schema";
import { command } from "../command.ts";
import { CommandError, exitCodes, messageOf } from "../exit-codes.ts";
import { text, texts, yes } from "../flags.ts";
import { askedTable } from "../table/asked-table.ts";
import { createTableInput, tableTag } from "../table/definition.ts";
import { newTableName, printRequest, tagsOf } from "../table/table-flags.ts";
import { TableWrites } from "../table/table-writes.ts";
import { durationText } from "../terminal/durations.ts";

/** DynamoDB creates a table within this time; most take some seconds. */
const longestCreationMs = 120_000;

export default command({
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
