import { randomBytes } from "node:crypto";
import { readFile } from "node:fs/promises";
import { isIP, isIPv6 } from "node:net";
import { hostname } from "node:os";
import { onAbort } from "@leasehold/client/internal";
import { command } from "../command.ts";
import type { Connection } from "../connection.ts";
import { act } from "../console/actions.ts";
import { jobPage, jobsPage, runPage } from "../console/job-pages.ts";
import { keyPage } from "../console/key-page.ts";
import { ConsoleServer, hostIn } from "../console/server.ts";
import { auditPage, locksPage, tablePage } from "../console/table-pages.ts";
import { Kept, type MakePage } from "../console/table-reader.ts";
import { setPage, tasksPage } from "../console/task-pages.ts";
import { exitCodes, messageOf, UsageError } from "../exit-codes.ts";
import { custom, text, usually, whole, yes } from "../flags.ts";
import { checkedSettings } from "../table/findings.ts";
import { isLoopback, isLoopbackHost } from "../table/place.ts";
import { shown } from "../terminal/text.ts";
import { pauseAfter } from "../view/read-cost.ts";
import { readTable, usualMostItems } from "../view/table-snapshot.ts";
import { paceFlags } from "./polling.ts";

/** The pages by their addresses. */
const pages: Readonly<Record<string, MakePage>> = {
  "/": locksPage,
  "/audit": auditPage,
  "/table": tablePage,
  "/key": keyPage,
  "/jobs": jobsPage,
  "/jobs/job": jobPage,
  "/jobs/run": runPage,
  "/tasks": tasksPage,
  "/tasks/set": setPage,
};

const usualPort = 8787;
/** Settings change seldom, and reading them takes four requests. */
const healthForMs = 60_000;

export const consoleCommand = command({
  usage: "console",
  writes: false,
  details: `
Serves pages on this machine: locks, a key with its line and its past, jobs, tasks, the table, and what operators did.
They are read-only unless --write is given. The address that is printed opens them: keep it to yourself.

  leasehold console                       on http://127.0.0.1:8787
  leasehold console --write               with buttons to stop, break, pause, skip and requeue

To show it to others, put something in front of it that knows who people are (--trust-header), or give it a secret of
your own (--auth-token-file).`,
  flags: {
    port: whole("port (default 8787; the next free one where it is taken)", { most: 65_535 }),
    host: usually(text("HOST", "address to listen on (default 127.0.0.1)"), "127.0.0.1"),
    write: yes("offer writes, too"),
    ...paceFlags("how often a page looks again"),
    scan: yes("read tables of more than 100,000 items, too"),
    "auth-token-file": text("FILE", "a secret of your own, at least 16 characters: the page asks for it"),
    "trust-header": text("NAME", "the header in which something in front of it says who a person is"),
    "public-url": custom("URL", "the address under which others reach it", publicUrlIn),
  },
  async run(call) {
    const { flags, global, connect, env, terminal, clock, signal, by } = call;
    const { host, port, "public-url": publicUrl, "trust-header": trustedHeader } = flags;
    const secret = await secretOf(flags["auth-token-file"]);
    if (!isLoopbackHost(host) && secret === undefined && trustedHeader === undefined) {
      const advice = "--auth-token-file FILE, or --trust-header NAME behind something that sets it";
      throw new UsageError(`--host ${shown(host)} lets others in: it needs ${advice}`);
    }
    const isReadOnly = !flags.write || global["read-only"];
    const connection = await connect();
    const { client, place } = connection;
    const monotonicMs = (): number => clock.monotonic();
    const pace = { everyMs: flags.every, mostUnitsPerSecond: flags["max-rcu"] };
    const mostItems = flags.scan ? Number.POSITIVE_INFINITY : usualMostItems;
    const table = new Kept(
      () => readTable(client, { mostItems }),
      ({ cost }) => pauseAfter(cost, pace),
      monotonicMs,
      flags.every,
    );
    const health = new Kept(
      () => checkedSettings(call),
      () => healthForMs,
      monotonicMs,
    );
    const context = { connection, table, isReadOnly, health };
    const opening = secret ?? randomBytes(24).toString("base64url");
    const server = new ConsoleServer(
      {
        environment: { ...environmentOf(connection, env), isReadOnly },
        everyMs: () => table.forMs,
        page: async (request) =>
          Object.hasOwn(pages, request.path) ? await pages[request.path]?.(request, context) : undefined,
        act: async (name, fields, person) => {
          const result = await act(name, fields, client, person ?? by);
          table.forget();
          terminal.say(
            `${shown(person ?? by)}: ${name} ${shown(fields.key ?? fields.job ?? fields.set ?? "")}: ${shown(result.message)}`,
          );
          return result;
        },
        // The end of the command ends the looks that are under way.
        report: (error) => {
          if (!signal.aborted) terminal.complain(`leasehold: ${shown(messageOf(error))}`);
        },
      },
      {
        secret: opening,
        isOwnHost: ownHosts(host),
        publicUrl,
        trustedHeader,
      },
    );
    const actual = await listen(server, host, port);
    const isEverywhere = allAddresses.has(host);
    const address = publicUrl?.origin ?? `http://${isEverywhere ? "localhost" : inAddress(host)}:${actual}`;
    const opens = secret === undefined && trustedHeader === undefined ? `/#secret=${opening}` : "/";
    terminal.print(`${address}${opens}`);
    terminal.say(`${place}, ${isReadOnly ? "read-only" : "with writes"}. Ctrl-C ends it.`);
    const where = isEverywhere ? "every address of this machine" : shown(host);
    if (isEverywhere || publicUrl !== undefined) terminal.say(`It listens on ${where}, port ${actual}.`);
    if (secret !== undefined) terminal.say("The page asks for the secret of --auth-token-file.");
    if (!isReadOnly) terminal.say("Everybody who opens this address can stop, break and pause locks.");
    await new Promise((resolve) => onAbort(signal, resolve));
    await server.close();
    return exitCodes.done;
  },
});

/** What is known of the place of a table without a request. */
function environmentOf(
  { tableName, region, endpoint, profile }: Connection,
  { AWS_ACCOUNT_ID }: NodeJS.ProcessEnv,
): { readonly table: string; readonly facts: readonly string[] } {
  const [, account, table] = /^arn:[^:]+:dynamodb:[^:]+:(\d+):table\/(.+)$/.exec(tableName) ?? [];
  const owner = account ?? AWS_ACCOUNT_ID;
  const facts = isLoopback(endpoint)
    ? [endpoint]
    : [region, owner && `account ${owner}`, profile && `profile ${profile}`, endpoint];
  return { table: table ?? tableName, facts: facts.flatMap((fact) => fact || []) };
}

/** These addresses stand for every address of the machine. */
const allAddresses: ReadonlySet<string> = new Set(["0.0.0.0", "::"]);

/** An address as it stands in a URL. */
function inAddress(host: string): string {
  return isIPv6(host) ? `[${host}]` : host;
}

/**
 * The hosts that a request may name. A page of another site can point its own name to this machine (DNS rebinding), so
 * only known names count. No page can do that with an address, nor with the machine's own names.
 */
function ownHosts(host: string): (given: string, port: number) => boolean {
  if (allAddresses.has(host)) {
    const names = new Set(["localhost", hostname().toLowerCase()]);
    // Any port: a container's port has another number outside.
    return (given) => {
      const name = hostIn(given)?.hostname ?? "";
      return names.has(name) || isIP(name.replace(/^\[|\]$/g, "")) > 0;
    };
  }
  const names = isLoopbackHost(host) ? ["127.0.0.1", "localhost", "[::1]"] : [inAddress(host)];
  // Browsers omit port 80, and write names in lower case.
  return (given, port) => {
    const one = hostIn(given)?.host;
    return one !== undefined && names.some((name) => hostIn(`${name}:${port}`)?.host === one);
  };
}

/** Throws a UsageError. */
function publicUrlIn(given: string, name: string): URL {
  if (/^https?:/.test(given) && URL.canParse(given)) return new URL(given);
  throw new UsageError(`${name} is "${given}"; allowed: an address with http: or https:`);
}

const leastSecret = 16;

async function secretOf(file: string | undefined): Promise<string | undefined> {
  if (file === undefined) return undefined;
  const content = await readFile(file, "utf8").catch((error: Error) => {
    throw new UsageError(`--auth-token-file: ${error.message}`);
  });
  const secret = content.trim();
  if (secret.length >= leastSecret) return secret;
  throw new UsageError(`--auth-token-file has ${secret.length} characters; allowed: ${leastSecret} and more`);
}

/** Listens on the given port, or on the first free port from the usual one on. */
async function listen(server: ConsoleServer, host: string, port: number | undefined): Promise<number> {
  if (port !== undefined) return await server.listen(host, port);
  for (let candidate = usualPort; ; candidate += 1) {
    try {
      return await server.listen(host, candidate);
    } catch (error) {
      const isTaken = (error as NodeJS.ErrnoException).code === "EADDRINUSE";
      if (!isTaken || candidate >= usualPort + 50) throw error;
    }
  }
}
