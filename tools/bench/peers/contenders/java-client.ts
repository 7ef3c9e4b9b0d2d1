/**
 * Amazon's lock client for Java, itself: in a JVM, which is told what to do over a pipe. Maven fetches the client and its SDK the
 * first time. Java compiles the program that it starts.
 */
import { type ChildProcessByStdio, execFile, spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import { readFile, rename, rm } from "node:fs/promises";
import type { Socket } from "node:net";
import { join, resolve } from "node:path";
import { createInterface } from "node:readline";
import type { Readable, Writable } from "node:stream";
import { promisify } from "node:util";
import type { Contender, HeldLock, Holding, LockClient, OtherProcess, Place } from "../contender.ts";

const run = promisify(execFile);
// From the repository's folder, in which every program starts: a holder is bundled, and its bundle lies elsewhere.
const folder = resolve("tools/bench/peers/java");
const cache = resolve("node_modules/.cache/java-lock-client");
const copyDependencies = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies";

/** Peer.java's. */
const oldestJava = 17;
const needs = `needs a JDK ${oldestJava} or newer, and Maven`;

/** The folder with the client's jars: for each pom.xml another one. */
async function jars(): Promise<string> {
  const pom = await readFile(join(folder, "pom.xml"));
  return join(cache, createHash("sha256").update(pom).digest("hex").slice(0, 16));
}

/** Has Maven fetch the client, where that was not done before; gives the reason where it cannot run here. */
export async function missingForJava(): Promise<string | undefined> {
  const fetched = await jars();
  try {
    const { stdout } = await run("javac", ["-version"]);
    if (Number(/\d+/.exec(stdout)) < oldestJava) return needs;
    if (!existsSync(fetched)) await run("mvn", ["-version"]);
  } catch {
    return needs; // Ignored: what is missing is said to the caller.
  }
  if (existsSync(fetched)) return undefined;
  const part = `${fetched}.${process.pid}`;
  try {
    const quietly = ["-q", "-B", "-f", join(folder, "pom.xml")];
    const whole = ["-DincludeScope=runtime", `-DoutputDirectory=${part}`];
    await run("mvn", [...quietly, copyDependencies, ...whole], { timeout: 300_000 });
    await rename(part, fetched);
    return undefined;
  } catch (error) {
    console.error(String((error as { readonly stdout?: unknown }).stdout ?? error).trim());
    return "could not be fetched by Maven"; // Ignored: the machine may be offline.
  } finally {
    await rm(part, { recursive: true, force: true });
  }
}

type Running = ChildProcessByStdio<Writable, Readable, null>;

interface Asked {
  readonly resolve: (answer: string) => void;
  readonly reject: (error: Error) => void;
}

/** The JVM: it ends with this process, whose end closes the pipe. */
class Jvm implements OtherProcess {
  readonly #child: Promise<Running> = this.#start();
  readonly #asked = new Map<number, Asked>();
  #count = 0;
  #ended: Error | undefined;

  /** Sends a line, and gives what is answered to it. */
  async ask(verb: string, ...words: readonly (string | number)[]): Promise<string> {
    this.#count += 1;
    const number = this.#count;
    const child = await this.#child;
    if (this.#ended !== undefined) throw this.#ended;
    const { promise, ...asked } = Promise.withResolvers<string>();
    this.#asked.set(number, asked);
    stay(child, true);
    child.stdin.write(`${[number, verb, ...words].join("\t")}\n`);
    return await promise;
  }

  async used(): Promise<{ cpuUs: number; requests: number }> {
    const [cpuUs, requests] = (await this.ask("used")).split(" ").map(Number);
    return { cpuUs: cpuUs ?? Number.NaN, requests: requests ?? Number.NaN };
  }

  async heapBytes(): Promise<number> {
    return Number(await this.ask("heap"));
  }

  async #start(): Promise<Running> {
    const args = ["-cp", join(await jars(), "*"), join(folder, "Peer.java")];
    const child = spawn("java", args, { stdio: ["pipe", "pipe", "inherit"] });
    child.on("exit", (code, signal) => this.#fail(new Error(`the JVM ended with ${code ?? signal}`)));
    child.on("error", (error) => this.#fail(error));
    child.stdin.on("error", (error) => this.#fail(error));
    createInterface({ input: child.stdout }).on("line", (line) => {
      const [number, state, text = ""] = line.split("\t");
      const asked = this.#asked.get(Number(number));
      this.#asked.delete(Number(number));
      // What nobody waits for must not keep this process.
      if (this.#asked.size === 0) stay(child, false);
      if (state === "ok") asked?.resolve(text);
      else asked?.reject(new Error(text));
    });
    return child;
  }

  #fail(error: Error): void {
    this.#ended ??= error;
    for (const { reject } of this.#asked.values()) reject(error);
    this.#asked.clear();
  }
}

/** Whether the JVM and its pipes keep this process. */
function stay(child: Running, isAwaited: boolean): void {
  // The pipes of a child are sockets, which its type does not say.
  for (const one of [child, child.stdin as Socket, child.stdout as Socket])
    isAwaited ? one.ref() : one.unref();
}

let jvm: Jvm | undefined;
let clients = 0;

/** One lock client in the JVM that all of this process share. */
class JavaLocks implements LockClient {
  readonly runsIn: Jvm;
  readonly #opened: Promise<string>;
  readonly #id: number;

  constructor({ clientConfig, plainTable }: Place, { leaseDurationMs, heartbeatMs = 0 }: Holding) {
    jvm ??= new Jvm();
    clients += 1;
    this.runsIn = jvm;
    this.#id = clients;
    const { endpoint, region, credentials } = clientConfig;
    const { accessKeyId, secretAccessKey } = credentials as { accessKeyId: string; secretAccessKey: string };
    const connection = [String(endpoint), String(region), accessKeyId, secretAccessKey];
    this.#opened = jvm.ask("open", this.#id, ...connection, plainTable, leaseDurationMs, heartbeatMs);
  }

  async acquire(key: string): Promise<HeldLock> {
    await this.#opened;
    const lock = await this.runsIn.ask("acquire", this.#id, key);
    return { release: () => this.runsIn.ask("release", lock) };
  }

  /** Ends its waits; what it holds is released, as the client's own `close` does. */
  async close(): Promise<void> {
    await this.runsIn.ask("close", this.#id);
  }
}

export const javaClient: Contender = {
  id: "java-client",
  name: "Amazon's, for Java",
  cannot: { bundle: "runs in a JVM" },
  open: (place, holding) => new JavaLocks(place, holding),
};
