import { type Call, command } from "../command.ts";
import { exitCodes, UsageError } from "../exit-codes.ts";
import { text, texts, yes } from "../flags.ts";
import { isPrefix, type PolicyKind, policyFor } from "../table/policies.ts";
import { shown } from "../terminal/text.ts";

const flags = {
  use: yes("for programs that use locks"),
  primitives: yes("for programs with job runs, tasks or single flight too"),
  operate: yes("for people on call: every look; break, stop, skip, requeue"),
  read: yes("for people and dashboards: every look, no write"),
  create: yes("for leasehold table create, set and doctor"),
  prefix: texts("PREFIX", "only keys that begin with this; may be given several times"),
  account: text("ID", "the account of the table (default: a placeholder, ACCOUNT)"),
};

type IamCall = Call<typeof flags>;

const kinds: readonly PolicyKind[] = ["use", "primitives", "operate", "read", "create"];

export default command({
  usage: "iam --use|--primitives|--operate|--read|--create [flags]",
  details: `
Prints a policy for IAM, to copy. Sends nothing. What is not known of the table stands as a placeholder: REGION, ACCOUNT,
TABLE. With --prefix the policy has no Scan, so that leasehold ls is refused: DynamoDB cannot limit a scan to some keys.

  leasehold iam --use --prefix orders/ --table leases --region eu-central-1 --account 123456789012
  leasehold iam --read -t arn:aws:dynamodb:eu-central-1:123456789012:table/leases`,
  writes: false,
  flags,
  async run(call) {
    const { flags, terminal } = call;
    const chosen = kinds.filter((kind) => flags[kind]);
    const [kind] = chosen;
    if (kind === undefined || chosen.length > 1) {
      throw new UsageError(`say whom the policy is for: one of ${kinds.map((one) => `--${one}`).join(", ")}`);
    }
    const wrong = flags.prefix.find((prefix) => !isPrefix(prefix));
    if (wrong !== undefined)
      throw new UsageError(`--prefix is "${shown(wrong.slice(0, 40))}…", longer than a key may be`);
    if (kind === "create" && flags.prefix.length > 0) {
      throw new UsageError("--prefix does not go together with --create: a table's settings have no keys");
    }
    terminal.print(JSON.stringify(policyFor(kind, arnOf(call), flags.prefix), undefined, 2));
    return exitCodes.done;
  },
});

/** The table's ARN, as far as flags and variables determine it. */
function arnOf({ global, flags, env }: IamCall): string {
  const { table = "TABLE" } = global;
  if (table.startsWith("arn:")) return table;
  const region = global.region ?? (env.AWS_REGION || env.AWS_DEFAULT_REGION || "REGION");
  const partition = region.startsWith("cn-") ? "aws-cn" : region.startsWith("us-gov-") ? "aws-us-gov" : "aws";
  return `arn:${partition}:dynamodb:${region}:${flags.account ?? "ACCOUNT"}:table/${table}`;
}
