import { command } from "../command.ts";
import { exitCodes } from "../exit-codes.ts";
import { yes } from "../flags.ts";
import { type DefinitionKind, definitionText } from "../table/definition.ts";
import { newTableName } from "../table/table-flags.ts";

const languages: Readonly<Record<DefinitionKind, string>> = {
  cfn: "CloudFormation",
  terraform: "Terraform",
  cdk: "the AWS CDK",
};

/** The command that prints a definition of a table in one language. */
export function definitionCommand(kind: DefinitionKind) {
  return command({
    usage: `table ${kind} [NAME] [flags]`,
    details: `Prints the definition of a lease table for ${languages[kind]}, to copy. Sends nothing. NAME is leases by default.`,
    writes: false,
    operands: [0, 1],
    flags: {
      stream: yes("a stream of changes: waiting workflows and durable functions need it"),
      "no-pitr": yes("without point-in-time recovery"),
      "no-deletion-protection": yes("without deletion protection"),
    },
    async run({ flags, operands, global, terminal }) {
      const tableName = newTableName({ operands: [operands[0] ?? global.table ?? "leases"], global });
      const text = definitionText(kind, {
        tableName,
        stream: flags.stream,
        pointInTimeRecovery: !flags["no-pitr"],
        deletionProtection: !flags["no-deletion-protection"],
      });
      for (const line of text.trimEnd().split("\n")) terminal.print(line);
      return exitCodes.done;
    },
  });
}
