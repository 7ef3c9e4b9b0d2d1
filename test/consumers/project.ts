import { execFile, spawn } from "node:child_process";
import { EventEmitter, once } from "node:events";
import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { delimiter, dirname, join } from "node:path";
import { promisify } from "node:util";

const run = promisify(execFile);
const fixtures = join(import.meta.dirname, "fixtures");
const minuteMs = 60_000;

/** The environment of somebody who has never seen this repository: neither its commands nor npm's variables from here. */
export function strangersEnvironment(): Record<string, string> {
  const path = (process.env.PATH ?? "").split(delimiter).filter((each) => !each.includes("node_modules"));
  const entries = Object.entries(process.env).filter(
    ([name]) => !/^(npm_|INIT_CWD$|NODE_OPTIONS$|NODE_PATH$)/i.test(name),
  );
  return {
    ...(Object.fromEntries(entries) as Record<string, string>),
    PATH: [dirname(process.execPath), ...path].join(delimiter),
    CI: "true",
    CDK_DISABLE_CLI_TELEMETRY: "true",
  };
}

/** A command that runs until it is ended. */
export interface Served {
  /** Resolves when what it has printed fits. Rejects when it ends before, and after the time limit. */
  until(pattern: RegExp): Promise<RegExpExecArray>;
  /** Ends it as Ctrl-C in its terminal does. */
  end(): Promise<void>;
  /** Resolves to all that it has printed, when it has ended. Rejects after the time limit. */
  output(): Promise<string>;
}

/** A project outside the repository, and the steps that its owner takes. Each step has a time limit, and is timed. */
export class StrangersProject {
  readonly folder: string;
  readonly #name: string;

  private constructor(name: string, folder: string) {
    this.#name = name;
    this.folder = folder;
  }

  static async create(name: string): Promise<StrangersProject> {
    // The CDK's template names its files after the folder.
    const folder = join(await mkdtemp(join(tmpdir(), "leasehold-consumers-")), "stranger");
    await mkdir(folder);
    return new StrangersProject(name, folder);
  }

  /** Runs a command in the project, and gives what it printed. Rejects with all that it printed if it fails. */
  async step(
    what: string,
    command: string,
    args: readonly string[],
    limitMs = 2 * minuteMs,
  ): Promise<string> {
    const since = performance.now();
    const options = { cwd: this.folder, env: strangersEnvironment(), timeout: limitMs, maxBuffer: 2 ** 26 };
    try {
      const { stdout } = await run(command, args, options);
      return stdout;
    } catch (error) {
      // The message has what the command printed to stderr.
      const { stdout = "", message } = error as Error & { readonly stdout?: string };
      throw new Error(`${this.#name}: ${what}: ${message}\n${stdout}`);
    } finally {
      const seconds = ((performance.now() - since) / 1_000).toFixed(1);
      console.log(`${this.#name}: ${what} (${seconds} s)`);
    }
  }

  /** Runs a command with further variables, and gives all that it printed, whatever its exit code says. */
  async stepWith(
    what: string,
    command: string,
    args: readonly string[],
    env: Readonly<Record<string, string | undefined>>,
  ): Promise<{ readonly output: string }> {
    const served = await this.serve(what, command, args, env);
    return { output: await served.output() };
  }

  /** Starts a command in a group of its own, which Ctrl-C ends, and the time limit too. */
  async serve(
    what: string,
    command: string,
    args: readonly string[],
    env: Readonly<Record<string, string | undefined>> = {},
    limitMs = 5 * minuteMs,
  ): Promise<Served> {
    const since = performance.now();
    const child = spawn(command, args, {
      cwd: this.folder,
      env: { ...strangersEnvironment(), ...env },
      stdio: ["ignore", "pipe", "pipe"],
      detached: true,
    });
    let output = "";
    const heard = new EventEmitter();
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding("utf8").on("data", (text: string) => {
        output += text;
        heard.emit("more");
      });
    }
    const closed = once(child, "close").then(() => {
      console.log(`${this.#name}: ${what} (${((performance.now() - since) / 1_000).toFixed(1)} s)`);
      heard.emit("more");
    });
    let isOver = false;
    const limit = setTimeout(() => {
      isOver = true;
      if (child.pid) process.kill(-child.pid, "SIGKILL");
    }, limitMs);
    closed.then(() => clearTimeout(limit));
    const mistakeOf = (said: string): Error =>
      new Error(`${this.#name}: ${what} ${said}:\n${output || "(nothing)"}`);
    const tooLong = (): Error =>
      mistakeOf(
        `was killed after ${limitMs / 1_000} s. If npm waits for its registry, its last line is the answer before: ` +
          "see whether `npm ping` answers, and start it again. It has printed",
      );
    return {
      until: async (pattern) => {
        for (;;) {
          const found = pattern.exec(output);
          if (found !== null) return found;
          if (child.exitCode !== null || child.signalCode !== null)
            throw isOver ? tooLong() : mistakeOf(`has ended with ${child.exitCode}`);
          await once(heard, "more");
        }
      },
      end: async () => {
        if (child.exitCode === null && child.signalCode === null && child.pid)
          process.kill(-child.pid, "SIGINT");
        await closed;
      },
      output: async () => {
        await closed;
        if (isOver) throw tooLong();
        return output;
      },
    };
  }

  async install(packages: readonly string[]): Promise<void> {
    const options = ["--no-audit", "--no-fund", "--prefer-offline", "--fetch-retries=1"];
    await this.step("npm install", "npm", ["install", ...options, ...packages], 5 * minuteMs);
  }

  async write(file: string, text: string): Promise<void> {
    await mkdir(dirname(join(this.folder, file)), { recursive: true });
    await writeFile(join(this.folder, file), text);
  }

  /** Writes a fixture as it is, or with its relative imports changed to what the stranger's tools understand. */
  async writeFixture(fixture: string, file: string, relative: string): Promise<void> {
    const text = await readFile(join(fixtures, fixture), "utf8");
    await this.write(file, text.replaceAll(/(?<=")\.\/([\w-]+)\.js(?=")/g, relative));
  }

  async remove(): Promise<void> {
    await rm(dirname(this.folder), { recursive: true, force: true });
  }
}
