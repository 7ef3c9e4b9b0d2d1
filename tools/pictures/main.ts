// Makes the pictures of the docs that show the command line and the console: from real runs, the command line's on an engine
// that is started for them, the console's on a table in memory at a time that stands still. `npm run generate -- pictures`; the screenshots need Chromium.

import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { createLeaseTable } from "@leasehold/client";
import { startEngine } from "@leasehold/engine";
import { build } from "../packaging/pack.ts";
import { screenshots } from "./console-pictures.ts";
import { record, type Step, terminalPicture } from "./terminal-picture.ts";

const root = join(import.meta.dirname, "../..");
const pictures = join(root, "docs/pictures");
const columns = 104;

const steps: readonly Step[] = [
  { command: "leasehold run nightly-report -- sleep 9", inBackground: true, pauseMs: 1_500 },
  { command: "leasehold ls", pauseMs: 1_500 },
  { command: "leasehold run nightly-report --wait 1m -- echo 'my turn'", pauseMs: 1_500 },
  { command: "leasehold run backup --slot day -- echo 'the backup runs'" },
  { command: "leasehold run backup --slot day --skip-ok -- echo 'the backup runs'", pauseMs: 2_000 },
];

await using engine = await startEngine();
const dynamodb = new DynamoDBClient({ ...engine.clientConfig });
const tableName = "leases";
await createLeaseTable({ tableName, dynamodb });
await mkdir(pictures, { recursive: true });

// The command as users have it, by its name.
await build();
const bin = await mkdtemp(join(tmpdir(), "leasehold-pictures-"));
try {
  const program = join(root, "packages/cli/dist/esm/main.js");
  await writeFile(join(bin, "leasehold"), `#!/bin/sh\nexec "${process.execPath}" "${program}" "$@"\n`, {
    mode: 0o755,
  });
  const lines = await record(steps, {
    PATH: `${bin}:${process.env.PATH}`,
    HOME: bin,
    USER: "alice",
    LEASEHOLD_OWNER: "alice@laptop",
    LEASEHOLD_TABLE_NAME: tableName,
    AWS_ENDPOINT_URL_DYNAMODB: engine.endpoint,
    AWS_REGION: "us-east-1",
    AWS_ACCESS_KEY_ID: "local",
    AWS_SECRET_ACCESS_KEY: "local",
    FORCE_COLOR: "1",
  });
  const title = "A command runs under a lease; a second one waits for it; a slot runs once";
  await writeFile(join(pictures, "terminal.svg"), terminalPicture(lines, columns, title));
  console.log(`docs/pictures/terminal.svg: ${lines.length} lines`);
} finally {
  await rm(bin, { recursive: true, force: true });
}

for (const file of await screenshots(pictures)) console.log(`docs/pictures/${file}`);
