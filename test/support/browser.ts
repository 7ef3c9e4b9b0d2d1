import { existsSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type BrowserContext, chromium } from "playwright-core";
import { onTestFinished } from "vitest";

const places = [
  process.env.CHROMIUM,
  "/usr/bin/chromium",
  "/usr/bin/chromium-browser",
  "/usr/bin/google-chrome",
];
const executablePath = places.find((place) => place !== undefined && existsSync(place));

/** Why there is no browser to test with; undefined where there is one. CI has to have one. */
export const noBrowser: string | undefined =
  executablePath === undefined && process.env.CI === undefined
    ? "there is no Chromium here: install Debian's package chromium, or set CHROMIUM to its path"
    : undefined;

/** A browser of the test's own, without a profile, that talks to nobody but the pages it is shown. */
export async function openBrowser(
  options: {
    readonly width?: number;
    readonly colors?: "light" | "dark";
    /** An IANA name. @default "UTC" */
    readonly timeZone?: string;
  } = {},
): Promise<BrowserContext> {
  if (executablePath === undefined)
    throw new Error("there is no Chromium: install it, or set CHROMIUM to its path");
  const profile = await mkdtemp(join(tmpdir(), "leasehold-browser-"));
  const context = await chromium.launchPersistentContext(profile, {
    executablePath,
    headless: true,
    viewport: { width: options.width ?? 1_000, height: 800 },
    colorScheme: options.colors ?? "light",
    timezoneId: options.timeZone ?? "UTC",
    args: [
      "--no-sandbox",
      "--disable-gpu",
      "--disable-quic",
      "--no-first-run",
      "--disable-background-networking",
      "--disable-component-update",
      "--disable-sync",
    ],
  });
  onTestFinished(async () => {
    await context.close();
    await rm(profile, { recursive: true, force: true });
  });
  return context;
}
