// Makes the docs' screenshots of the console: wide and narrow, light and dark, with a table in memory in which something happens
// at a time that stands still. `npm run generate -- pictures`; it needs Chromium. The other pictures are drawn by hand.

import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { PassThrough } from "node:stream";
import { runCommandLine } from "@leasehold/cli";
import { type Browser, chromium } from "playwright-core";
import { type PlayedTable, playedTable } from "./console-table.ts";

const pages = [
  { name: "locks", path: "/", writes: false, isNarrowToo: false },
  { name: "key", path: "/key?key=label-printer", writes: true, isNarrowToo: true },
  { name: "jobs", path: "/jobs", writes: false, isNarrowToo: false },
  { name: "tasks", path: "/tasks", writes: false, isNarrowToo: false },
] as const;

const widths = [
  { width: 1_280, most: 860, scale: 1.5, isNarrow: false },
  { width: 360, most: 800, scale: 2, isNarrow: true },
] as const;

/** A repository keeps every picture that it ever had. */
const mostBytes = 100_000;

/** Saves the pages of a console that only reads, or of one that writes. */
async function photographed(browser: Browser, { store, clock }: PlayedTable, writes: boolean): Promise<void> {
  const interruption = new AbortController();
  const [stdin, stdout, stderr] = [new PassThrough(), new PassThrough(), new PassThrough()];
  const served = runCommandLine(["console", "--port", "0", ...(writes ? ["--write"] : [])], {
    ...{ stdin, stdout, stderr, clock },
    env: {
      LEASEHOLD_TABLE_NAME: store.tableName,
      AWS_REGION: "eu-central-1",
      AWS_ACCOUNT_ID: "111122223333",
    },
    open: async () => store,
    signals: { signal: interruption.signal, redirect: () => () => {} },
  });
  const address = await new Promise<string>((resolve) =>
    stdout.once("data", (chunk) => resolve(String(chunk).trim())),
  );
  for (const { width, most, scale, isNarrow } of widths) {
    for (const colorScheme of ["light", "dark"] as const) {
      const page = await browser.newPage({
        ...{ colorScheme, deviceScaleFactor: scale },
        viewport: { width, height: 400 },
      });
      // A third of the bytes of a PNG, which is all that Playwright itself has beside JPEG.
      const session = await page.context().newCDPSession(page);
      await page.goto(address);
      await page.getByRole("heading", { name: "Locks" }).waitFor();
      const wanted = pages.filter((one) => one.writes === writes && (one.isNarrowToo || !isNarrow));
      for (const { name, path } of wanted) {
        await page.goto(`${new URL(address).origin}${path}`);
        const height = Number(await page.evaluate("document.documentElement.scrollHeight"));
        const file = `console-${name}-${width}-${colorScheme}.webp`;
        const clip = { x: 0, y: 0, width, height: Math.min(most, height), scale: 1 };
        const picture = { format: "webp", quality: 80, clip, captureBeyondViewport: true } as const;
        const { data } = await session.send("Page.captureScreenshot", picture);
        const bytes = Buffer.from(data, "base64");
        if (bytes.length > mostBytes)
          throw new Error(`${file} has ${bytes.length} bytes; allowed: ${mostBytes}`);
        await writeFile(join(import.meta.dirname, "../../docs/pictures", file), bytes);
        console.log(`docs/pictures/${file}`);
      }
      await page.close();
    }
  }
  interruption.abort();
  await served;
}

const table = await playedTable();
const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
  args: ["--no-sandbox"],
});
for (const writes of [false, true]) await photographed(browser, table, writes);
await browser.close();
await table.close();
