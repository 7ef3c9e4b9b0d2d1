import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Lease, LeaseClient } from "@leasehold/client";
import { LeaseAdmin, LeaseOperator } from "@leasehold/client/admin";
import { Semaphore } from "@leasehold/client/semaphore";
import { MemoryLeaseStore } from "@leasehold/client/testing";
import { JobRuns, TaskSet } from "@leasehold/jobs";
import type { Page } from "playwright-core";
import { describe, expect, it, onTestFinished } from "vitest";
import { noBrowser, openBrowser } from "../support/browser.ts";
import { busyStore, serveConsole } from "../support/console.ts";

const hostile = `<img src=x onerror="alert(1)"><script>alert(2)</script>`;

if (noBrowser !== undefined) console.warn(`The console is not tested in a browser: ${noBrowser}.`);

/** Keys, owners, remarks and payloads of any length and script. */
async function hostileTable() {
  const store = new MemoryLeaseStore();
  const owner = "o".repeat(256);
  const client = new LeaseClient({ store, owner });
  onTestFinished(() => client.close());
  const keys = [
    "k".repeat(500),
    `${"long words ".repeat(40)}end`,
    "\u0645\u0641\u062a\u0627\u062d/".repeat(40),
    "\u{1f512}".repeat(120),
    `z${"\u0301\u0302".repeat(90)}`,
    hostile,
  ];
  for (const key of keys)
    await client.acquire(key, { leaseDurationMs: 600_000, data: { [key]: "x".repeat(3_000) } });
  const semaphore = new Semaphore(client, "s".repeat(300), { permits: 90 });
  for (let index = 0; index < 3; index += 1) await semaphore.acquire({ leaseDurationMs: 600_000 });
  const job = "job".repeat(80);
  for (const hour of [1, 2, 3])
    await new JobRuns(client, job, { schedule: "rate(1 minute)" })
      .run(`2026-11-21T0${hour}:00:00.000Z`, async () => Promise.reject(new Error("e".repeat(900))))
      .catch(() => undefined);
  const set = "set".repeat(80);
  const tasks = new TaskSet(client, set, { maxAttempts: 1 });
  await tasks.add([{ id: "t".repeat(200), payload: "y".repeat(900) }, { id: "other" }]);
  await (await tasks.claim())?.fail("f".repeat(900));
  await new LeaseOperator(client, { by: "b".repeat(200) }).pause("p".repeat(300), {
    forMs: 600_000,
    reason: "r".repeat(200),
  });
  const paths = [
    "/",
    `/?${new URLSearchParams({ owner: `${"o".repeat(200)}*`, older: "x".repeat(200) })}`,
    ...[...keys, "s".repeat(300), "p".repeat(300)].map((key) => `/key?${new URLSearchParams({ key })}`),
    "/jobs",
    `/jobs/job?${new URLSearchParams({ job })}`,
    `/jobs/run?${new URLSearchParams({ job, slot: "2026-11-21T02:00:00.000Z" })}`,
    "/tasks",
    `/tasks/set?${new URLSearchParams({ set })}`,
    "/table",
    "/audit",
    "/none",
  ];
  return { store, paths };
}

/** Opens the console as its user does, and collects what must not happen in a page. */
async function openedPage(
  store: MemoryLeaseStore,
  args: readonly string[],
  options: Parameters<typeof openBrowser>[0] = {},
) {
  const served = await serveConsole(store, ["--every", "300ms", "--max-rcu", "10000", ...args]);
  const browser = await openBrowser(options);
  const page = await browser.newPage();
  const trouble: string[] = [];
  page.on("dialog", (dialog) => {
    trouble.push(`a dialog: ${dialog.message()}`);
    void dialog.dismiss();
  });
  page.on("pageerror", (error) => trouble.push(`an error: ${error.message}`));
  page.on(
    "console",
    (message) => message.type() === "error" && trouble.push(`the console: ${message.text()}`),
  );
  page.on("request", (request) => {
    if (!request.url().startsWith(served.origin)) trouble.push(`a request to ${request.url()}`);
  });
  await page.goto(served.address);
  await page.getByRole("heading", { name: "Locks" }).waitFor();
  // The page without a session is a 401, which browsers report; from here on nothing may be reported.
  trouble.length = 0;
  return { ...served, browser, page, trouble };
}

/** Texts whose colour differs from what is behind them by less than 4.5 to 1, as WCAG 2 counts it. */
async function faintTexts(page: Page): Promise<readonly string[]> {
  return await page.evaluate(`(() => {
    const pen = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
    const drawn = (...colors) => {
      pen.clearRect(0, 0, 1, 1);
      for (const color of colors) { pen.fillStyle = color; pen.fillRect(0, 0, 1, 1); }
      return [...pen.getImageData(0, 0, 1, 1).data].slice(0, 3);
    };
    const light = (color) => {
      const [r, g, b] = color.map((c) => (c / 255 <= 0.04045 ? c / 255 / 12.92 : ((c / 255 + 0.055) / 1.055) ** 2.4));
      return 0.2126 * r + 0.7152 * g + 0.0722 * b;
    };
    const faint = new Set();
    for (const one of document.querySelectorAll("body *")) {
      const own = [...one.childNodes].filter((node) => node.nodeType === 3 && node.data.trim() !== "");
      if (own.length === 0 || !one.checkVisibility() || one.closest("script, .hidden, .skip, [aria-hidden=true]")) continue;
      const behind = [];
      for (let at = one; at; at = at.parentElement) behind.unshift(getComputedStyle(at).backgroundColor);
      const back = drawn("white", ...behind);
      const front = drawn("white", ...behind, getComputedStyle(one).color);
      const [more, less] = [light(front), light(back)].sort((a, b) => b - a);
      const contrast = (more + 0.05) / (less + 0.05);
      if (contrast < 4.5) faint.add(one.className + " " + own[0].data.trim().slice(0, 40) + ": " + contrast.toFixed(2));
    }
    return [...faint];
  })()`);
}

/** Opens the dialog of a button, fills in its fields, and agrees. */
async function agree(page: Page, button: string, fields: Readonly<Record<string, string>> = {}) {
  await page.getByRole("button", { name: button }).click();
  const dialog = page.locator("dialog[open]");
  for (const [label, text] of Object.entries(fields)) await dialog.getByLabel(label).fill(text);
  await dialog.getByRole("button", { name: button }).click();
  return dialog;
}

/** Serves a page of another site, and gives its address: the same machine under another name is one to a browser. */
async function otherSite(content: string): Promise<string> {
  const server = createServer((_, response) => response.end(content)).listen(0, "127.0.0.1");
  onTestFinished(() => void server.close());
  await once(server, "listening");
  return `http://localhost:${(server.address() as AddressInfo).port}/`;
}

/** Counts the requests of a page from now on. */
function requestsOf(page: Page): () => number {
  let count = 0;
  page.on("request", () => {
    count += 1;
  });
  return () => count;
}

async function widestOf(page: Page): Promise<number> {
  return await page.evaluate("document.documentElement.scrollWidth");
}

describe.skipIf(noBrowser !== undefined)("the console in a browser", { tags: ["long"] }, () => {
  it("opens by the address that was printed, takes the secret out of it, and shows every page", async () => {
    const { store } = await busyStore(hostile);
    const { page, origin, trouble } = await openedPage(store, []);
    expect(page.url()).toBe(`${origin}/`);
    await page.getByRole("link", { name: "import" }).click();
    await page.getByRole("heading", { name: "import", exact: true }).waitFor();
    for (const name of ["Jobs", "Tasks", "Table", "Audit", "Locks"]) {
      await page.getByRole("navigation").getByRole("link", { name }).click();
      await page.locator("nav a[aria-current]").filter({ hasText: name }).waitFor();
    }
    // Once more by the page's own look.
    await page.goto(`${origin}/key?${new URLSearchParams({ key: hostile })}`);
    await page.waitForResponse((response) => response.url() === page.url());
    expect(trouble).toEqual([]);
  });

  it("asks for a secret of its owner's own, and opens by it", async () => {
    const { store } = await busyStore(hostile);
    const folder = await mkdtemp(join(tmpdir(), "leasehold-secret-"));
    onTestFinished(() => rm(folder, { recursive: true }));
    const secret = "a+secret&of%20my own";
    await writeFile(join(folder, "secret"), `${secret}\n`);
    const { address } = await serveConsole(store, ["--auth-token-file", join(folder, "secret")]);
    const page = await (await openBrowser()).newPage();
    await page.goto(address);
    await page.getByLabel("Secret").fill("a secret of others");
    await page.getByRole("button", { name: "Open" }).click();
    await page.getByText("This secret opens nothing.").waitFor();
    await page.getByLabel("Secret").fill(secret);
    await page.getByRole("button", { name: "Open" }).click();
    await page.getByRole("heading", { name: "Locks" }).waitFor();
  });

  it("opens by the printed address in a tab that has shown the locked page", async () => {
    const { store } = await busyStore(hostile);
    const { address, origin } = await serveConsole(store);
    const page = await (await openBrowser()).newPage();
    await page.goto(`${origin}/`);
    await page.getByRole("heading", { name: "Open the console" }).waitFor();
    await page.goto(address);
    await page.getByRole("heading", { name: "Locks" }).waitFor();
    expect(page.url()).toBe(`${origin}/`);
  });

  it("opens by a link from elsewhere, in a browser that has its session, and not in another one", async () => {
    const { store } = await busyStore(hostile);
    const { browser, origin } = await openedPage(store, []);
    const link = await otherSite(`<a href="${origin}/key?key=import">look</a>`);
    const page = await browser.newPage();
    await page.goto(link);
    await page.getByRole("link", { name: "look" }).click();
    await page.getByRole("heading", { name: "import", exact: true }).waitFor();
    const stranger = await (await openBrowser()).newPage();
    await stranger.goto(link);
    await stranger.getByRole("link", { name: "look" }).click();
    await stranger.getByRole("heading", { name: "Open the console" }).waitFor();
    await stranger.waitForTimeout(500);
    expect(await stranger.content()).not.toContain("payment-api");
  });

  it("looks again by itself, keeps the focus, and rests while the page is hidden or a dialog is open", async () => {
    const { store, client } = await busyStore(hostile);
    const { page } = await openedPage(store, ["--write"]);
    await page.getByRole("link", { name: "import" }).focus();
    await client.acquire("later");
    await page.getByRole("link", { name: "later" }).waitFor();
    expect(await page.evaluate("document.activeElement.textContent")).toBe("import");
    await page.getByRole("link", { name: "import" }).click();
    await page.getByRole("button", { name: "Ask it to stop" }).click();
    const looks = requestsOf(page);
    await page.waitForTimeout(1_000);
    expect(looks()).toBe(0);
    expect(await page.locator("dialog[open]").count()).toBe(1);
  });

  it("keeps a dialog that was opened while a look was under way", async () => {
    const { store } = await busyStore(hostile);
    const { page, origin } = await openedPage(store, ["--write"]);
    await page.goto(`${origin}/key?key=import`);
    const answers = Promise.withResolvers<void>();
    await page.route(`${origin}/key?key=import`, async (route) => {
      await answers.promise;
      await route.continue();
    });
    await page.waitForRequest(`${origin}/key?key=import`);
    await page.getByRole("button", { name: "Break the lease" }).click();
    const breaking = page.locator("dialog[open]");
    await breaking.getByLabel("Reason").fill("INC-1");
    const response = page.waitForResponse(`${origin}/key?key=import`);
    answers.resolve();
    await (await response).finished();
    await page.waitForTimeout(300);
    expect(await breaking.count()).toBe(1);
    expect(await breaking.getByLabel("Reason").inputValue()).toBe("INC-1");
  });

  it("breaks, pauses, resumes and asks to stop by its buttons, each once, with the key typed and a reason", async () => {
    const { store, client } = await busyStore(hostile);
    const { page, origin, trouble } = await openedPage(store, ["--write"]);
    const writes: string[] = [];
    page.on("request", (request) => {
      if (request.method() === "POST") writes.push(request.url().replace(origin, ""));
    });
    await page.goto(`${origin}/key?key=import`);
    const stopping = await agree(page, "Ask it to stop");
    await page.getByText("Asked.").waitFor();
    expect((await client.inspect("import"))?.revocation).toBeDefined();
    await stopping.waitFor({ state: "detached" });
    const breaking = await agree(page, "Break the lease", { Reason: "INC-1", Type: "imports" });
    await page.getByText("what you typed is not the key").waitFor();
    expect(await client.inspect("import")).toBeDefined();
    await breaking.getByLabel("Type").fill("import");
    await breaking.getByRole("button", { name: "Break the lease" }).click();
    await page.getByText("Broken.").waitFor();
    expect(await client.inspect("import")).toBeUndefined();
    await breaking.waitFor({ state: "detached" });
    await page.getByRole("button", { name: "Pause" }).click();
    const pausing = page.locator("dialog[open]");
    await pausing.getByLabel("Reason").fill("vendor down");
    await pausing.getByRole("button", { name: "Pause" }).dblclick();
    await page.getByText("Paused.").waitFor();
    expect((await client.inspect("import"))?.pause).toEqual({
      by: expect.stringContaining("alice"),
      reason: "vendor down",
    });
    await pausing.waitFor({ state: "detached" });
    await agree(page, "Resume");
    await page.getByText("The pause is over.").waitFor();
    expect(writes).toEqual(["stop", "break", "break", "pause", "resume"].map((act) => `/act/${act}`));
    await page.goto(`${origin}/audit`);
    for (const action of ["stop", "break", "pause", "resume"])
      await page.getByRole("cell", { name: action, exact: true }).waitFor();
    // The refusal of the wrong key is a 400, which browsers report.
    expect(trouble.filter((text) => !text.includes("400"))).toEqual([]);
  });

  it("takes no answer of what stands in front of it for its own, and waits for none without an end", async () => {
    const { store } = await busyStore(hostile);
    const { page, browser, origin, trouble } = await openedPage(store, ["--write"]);
    await browser.addInitScript(`{
      const { timeout } = AbortSignal;
      AbortSignal.timeout = () => timeout.call(AbortSignal, 500);
    }`);
    const address = `${origin}/key?key=feed`;
    await page.goto(address);
    const signIn = { status: 200, contentType: "text/html", body: "<p>Sign in</p>" };
    await page.route(address, (route) => route.fulfill(signIn));
    const state = page.locator("#state");
    await state.filter({ hasText: "could not look: Sign in" }).waitFor();
    await page.unroute(address);
    await state.filter({ hasText: /^$/ }).waitFor({ state: "attached" });
    await page.route(address, () => undefined);
    await state.filter({ hasText: "does not answer" }).waitFor();
    await page.route("**/act/pause", (route) => route.fulfill(signIn));
    const pausing = await agree(page, "Pause", { Reason: "vendor down" });
    await pausing.getByText("look whether it was done").waitFor();
    await page.waitForTimeout(2_000);
    expect(await pausing.count()).toBe(1);
    expect(trouble).toEqual([]);
  });

  it.each([
    ["light", 1_280, []],
    ["light", 360, ["--write"]],
    ["dark", 360, []],
    ["dark", 1_280, ["--write"]],
  ] as const)(
    "has a contrast of 4.5 to 1 at least, and is no wider than the window, whatever its table has: %s, %i pixels, %j",
    async (colors, width, args) => {
      const { store, paths } = await hostileTable();
      const { page, origin } = await openedPage(store, [...args, "--every", "1h"], { colors, width });
      for (const path of paths) {
        await page.goto(`${origin}${path}`);
        expect(await faintTexts(page), path).toEqual([]);
        expect(await widestOf(page), path).toBeLessThanOrEqual(width);
        for (const one of await page.locator("main summary").all()) await one.click();
        expect(await widestOf(page), `${path}, unfolded`).toBeLessThanOrEqual(width);
      }
    },
  );

  it("shows all times by one clock, UTC or the reader's own, and remembers which", async () => {
    const { store } = await busyStore(hostile);
    const { page, origin } = await openedPage(store, [], { timeZone: "Asia/Kolkata" });
    await page.goto(`${origin}/jobs/run?job=report&slot=2026-11-21T03:00:00.000Z`);
    const slot = page.locator("time[datetime='2026-11-21T03:00:00.000Z']");
    expect(await slot.textContent()).toBe("2026-11-21 03:00:00");
    expect(await slot.getAttribute("title")).toBe("2026-11-21 08:30:00 local");
    await page.getByRole("radio", { name: "local" }).check({ force: true });
    expect(await slot.textContent()).toBe("2026-11-21 08:30:00");
    expect(await slot.getAttribute("title")).toBe("2026-11-21 03:00:00 UTC");
    // A look brings times in UTC.
    await page.waitForResponse((response) => response.url() === page.url());
    await page.waitForTimeout(100);
    expect(await slot.textContent()).toBe("2026-11-21 08:30:00");
    await page.goto(`${origin}/jobs`);
    expect(await page.getByRole("radio", { name: "local" }).isChecked()).toBe(true);
    expect(await page.locator("time").allTextContents()).toEqual(["2026-11-21 08:30:00"]);
    await page.getByRole("radio", { name: "UTC" }).check({ force: true });
    expect(await page.locator("time").allTextContents()).toEqual(["2026-11-21 03:00:00"]);
  });

  it("changes only what has changed: rows, what is unfolded, focus and place stay", async () => {
    const store = new MemoryLeaseStore();
    const client = new LeaseClient({ store, owner: "worker-1" });
    onTestFinished(() => client.close());
    const data = { text: "a payload that is longer than a line of it" };
    const leases = new Map<string, Lease>();
    for (let index = 10; index < 70; index += 1)
      leases.set(`key/${index}`, await client.acquire(`key/${index}`, { leaseDurationMs: 600_000, data }));
    const { page } = await openedPage(store, []);
    const row = page.locator("tr", { hasText: "key/60" });
    await row.locator("summary").click();
    await row.locator("summary").focus();
    await row.evaluate((element) => Object.assign(element, { isTheSame: true }));
    const place = await page.evaluate("scrollY");
    expect(place).toBeGreaterThan(0);
    await leases.get("key/61")?.release();
    await client.acquire("key/99", { leaseDurationMs: 600_000 });
    await page.getByRole("link", { name: "key/99" }).waitFor();
    expect(await page.getByRole("link", { name: "key/61" }).count()).toBe(0);
    expect(await row.evaluate((element) => Object.hasOwn(element, "isTheSame"))).toBe(true);
    expect(await row.locator("details").getAttribute("open")).toBe("");
    expect(await page.evaluate("document.activeElement.tagName")).toBe("SUMMARY");
    expect(await page.evaluate("scrollY")).toBe(place);
  });

  it("marks a row that has changed, and moves nothing for those who do not want it", async () => {
    const store = new MemoryLeaseStore();
    const client = new LeaseClient({ store, owner: "worker-1" });
    onTestFinished(() => client.close());
    const { page } = await openedPage(store, ["--every", "2s"]);
    const animation = "getComputedStyle(document.querySelector('tr.changed')).animationName";
    for (const [reducedMotion, expected] of [
      ["no-preference", "changed"],
      ["reduce", "none"],
    ] as const) {
      await page.emulateMedia({ reducedMotion });
      const lease = await client.acquire("import");
      await page.getByRole("link", { name: "import" }).waitFor();
      await new LeaseAdmin(client).requestRevocation("import", { token: lease.token });
      await page.locator("tr.changed").waitFor();
      expect(await page.evaluate(animation)).toBe(expected);
      await lease.release();
      await page.getByText("No lock here").waitFor();
    }
  });

  it("rests while Live is off, and keeps what it shows when a look fails", async () => {
    const { store, client } = await busyStore(hostile);
    const { page, origin } = await openedPage(store, []);
    await page.getByRole("checkbox", { name: "Live" }).uncheck();
    const looks = requestsOf(page);
    await page.waitForTimeout(1_000);
    expect(looks()).toBe(0);
    await page.reload();
    expect(await page.getByRole("checkbox", { name: "Live" }).isChecked()).toBe(false);
    const scan = store.scan.bind(store);
    store.scan = async () => Promise.reject(new Error("throttled"));
    await page.getByRole("checkbox", { name: "Live" }).check();
    await page.getByRole("status").filter({ hasText: "throttled" }).waitFor();
    await page.getByRole("link", { name: "import" }).waitFor();
    store.scan = scan;
    await client.acquire("later");
    await page.getByRole("link", { name: "later" }).waitFor();
    expect(await page.locator("#state").textContent()).toBe("");
    expect(page.url()).toBe(`${origin}/`);
  });
});
