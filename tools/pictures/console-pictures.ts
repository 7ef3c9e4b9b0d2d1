// Screenshots of the console, with a table in which something happens.

import { join } from "node:path";
import { PassThrough } from "node:stream";
import { runCommandLine } from "@leasehold/cli";
import type { LeaseClient } from "@leasehold/client";
import { LeaseOperator } from "@leasehold/client/admin";
import { fair } from "@leasehold/client/fair";
import { coreOf } from "@leasehold/client/internal";
import { Semaphore } from "@leasehold/client/semaphore";
import { JobRuns, TaskSet } from "@leasehold/jobs";
import { chromium } from "playwright-core";

const pages = [
  { name: "locks", path: "/" },
  { name: "key", path: "/key?key=label-printer" },
  { name: "jobs", path: "/jobs" },
] as const;

/** Saves each page, light and dark, and gives the files' names. */
export async function screenshots(client: LeaseClient, folder: string): Promise<readonly string[]> {
  const waiting = new AbortController();
  const waits = await fill(client, waiting.signal);
  const interruption = new AbortController();
  const [stdin, stdout, stderr] = [new PassThrough(), new PassThrough(), new PassThrough()];
  const { store, tableName } = coreOf(client);
  const served = runCommandLine(["console", "--port", "0", "--write", "--every", "1h"], {
    stdin,
    stdout,
    stderr,
    env: { LEASEHOLD_TABLE_NAME: tableName, USER: "alice" },
    open: async () => store,
    signals: { signal: interruption.signal, redirect: () => () => {} },
  });
  const address = await new Promise<string>((resolve) =>
    stdout.once("data", (chunk) => resolve(String(chunk).trim())),
  );
  const browser = await chromium.launch({
    executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
    args: ["--no-sandbox"],
  });
  const files: string[] = [];
  for (const colorScheme of ["light", "dark"] as const) {
    const page = await browser.newPage({
      colorScheme,
      viewport: { width: 1_100, height: 620 },
      deviceScaleFactor: 1.5,
    });
    await page.goto(address);
    await page.getByRole("heading", { name: "Locks" }).waitFor();
    for (const { name, path } of pages) {
      await page.goto(`${new URL(address).origin}${path}`);
      const file = `console-${name}-${colorScheme}.png`;
      await page.screenshot({ path: join(folder, file) });
      files.push(file);
    }
  }
  await browser.close();
  waiting.abort();
  await Promise.all(waits);
  interruption.abort();
  await served;
  return files;
}

const minuteMs = 60_000;

/** Makes a table that is worth a picture. */
async function fill(client: LeaseClient, signal: AbortSignal): Promise<readonly Promise<unknown>[]> {
  await client.acquire("import/orders", {
    owner: "sfn:import-2f1c (keeper)",
    leaseDurationMs: 90_000,
    data: { file: "orders-4711.csv" },
  });
  const earlier = await client.acquire("label-printer", { owner: "ip-10-0-9-4:3310" });
  await earlier.release();
  await client.acquire("label-printer", {
    leaseDurationMs: 45_000,
    data: { job: "orders-4711", step: "page 3 of 9" },
  });
  const payments = new Semaphore(client, "payment-api", { permits: 5 });
  for (const owner of ["checkout-1", "checkout-2"])
    await payments.acquire({ owner, leaseDurationMs: minuteMs });
  const operator = new LeaseOperator(client, { by: "alice@laptop" });
  await operator.pause("price-feed", { forMs: 120 * minuteMs, reason: "INC-4411, vendor down" });
  const report = new JobRuns(client, "daily-report", { maxAttempts: 1 });
  const today = new Date().setUTCHours(8, 0, 0, 0) - 24 * 60 * minuteMs;
  for (let day = 20; day >= 0; day -= 1) {
    const slot = new Date(today - day * 24 * 60 * minuteMs);
    if (day === 9) await report.skip(slot, "holiday");
    else
      await report
        .run(slot, async () => (day === 3 ? Promise.reject(new Error("rows is not iterable")) : undefined))
        .catch((error: Error) => error);
  }
  await new TaskSet(client, "orders/today").add([{ id: "doc-33" }, { id: "doc-54" }]);
  const wait = { order: fair({ maxWaiters: 20 }), waitMs: 10 * minuteMs, signal };
  // They end when the pictures are made.
  const waits = ["ip-10-0-4-2:99", "lambda:labels 2026/11/22[$L]"].map((owner) =>
    client.acquire("label-printer", { ...wait, owner }).catch((error: Error) => error),
  );
  await new Promise((resolve) => setTimeout(resolve, 1_500));
  return waits;
}
