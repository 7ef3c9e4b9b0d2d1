import { spawn } from "node:child_process";
import { EventEmitter, once } from "node:events";
import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { delimiter, dirname, join } from "node:path";

const fixtures = join(import.meta.dirname, "fixtures");
const minuteMs = 60_000;

type Variables = Readonly<Record<string, string | undefined>>;

/** The environment of somebody who has never seen this repository: neither its commands nor npm's variables from here. */
function strangersEnvironment(): Variables {
  const path = (process.env.PATH ?? "").split(delimiter).filter((each) => !each.includes("node_modules"));
  const entries = Object.entries(process.env).filter(
    ([name]) => !/^(npm_|INIT_CWD$|NODE_OPTIONS$|NODE_PATH$)/i.test(name),
  );
  return {
    ...Object.fromEntries(entries),
    PATH: [dirname(process.execPath), ...path].join(delimiter),
    CI: "true",
    CDK_DISABLE_CLI_TELEMETRY: "true",
  };
}

/** A command that runs until it ends, or is ended. */
export interface Served {
  /** Resolves when what it has printed fits. Rejects when it ends before. */
  until(pattern: RegExp): Promise<RegExpExecArray>;
  /** Ends it as Ctrl-C in its terminal does. */
  end(): Promise<void>;
  /** Resolves to all that it has printed, when it has ended, whatever its exit code says. */
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
  async step(what: string, command: string, args: readonly string[]): Promise<string> {
    const { child, output } = this.#start(what, command, args, {});
    const printed = await output();
    if (child.exitCode === 0) return printed;
    throw new Error(`${this.#name}: ${what} has ended with ${child.exitCode}:\n${printed}`);
  }

  /** Starts a command in a group of its own, which Ctrl-C ends, and the time limit too. */
  serve(what: string, command: string, args: readonly string[], env: Variables = {}): Served {
    return this.#start(what, command, args, env);
  }

  #start(what: string, command: string, args: readonly string[], env: Variables) {
    const since = performance.now();
    const child = spawn(command, args, {
      cwd: this.folder,
      env: { ...strangersEnvironment(), ...env },
      stdio: ["ignore", "pipe", "pipe"],
      detached: true,
    });
    const kill = (signal: NodeJS.Signals): void => {
      const isRunning = child.exitCode === null && child.signalCode === null;
      if (isRunning && child.pid) process.kill(-child.pid, signal);
    };
    let printed = "";
    const heard = new EventEmitter();
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding("utf8").on("data", (text: string) => {
        printed += text;
        heard.emit("more");
      });
    }
    const limit = setTimeout(kill, 5 * minuteMs, "SIGKILL");
    const closed = once(child, "close").then(() => {
      clearTimeout(limit);
      console.log(`${this.#name}: ${what} (${((performance.now() - since) / 1_000).toFixed(1)} s)`);
      heard.emit("more");
    });
    return {
      child,
      until: async (pattern: RegExp) => {
        for (;;) {
          const found = pattern.exec(printed);
          if (found !== null) return found;
          if (child.exitCode !== null || child.signalCode !== null)
            throw new Error(`${this.#name}: ${what} has ended:\n${printed}`);
          await once(heard, "more");
        }
      },
      end: async () => {
        kill("SIGINT");
        await closed;
      },
      output: async () => {
        await closed;
        return printed;
      },
    };
  }

  async install(packages: readonly string[]): Promise<void> {
    const options = ["--no-audit", "--no-fund", "--prefer-offline", "--fetch-retries=1"];
    await this.step("npm install", "npm", ["install", ...options, ...packages]);
  }

  async write(file: string, text: string): Promise<void> {
    await mkdir(dirname(join(this.folder, file)), { recursive: true });
    await writeFile(join(this.folder, file), text);
  }

  /** Writes a fixture, with its relative imports changed to what the stranger's tools understand. */
  async writeFixture(fixture: string, file: string, relative: string): Promise<void> {
    const text = await readFile(join(fixtures, fixture), "utf8");
    await this.write(file, text.replaceAll(/(?<=")\.\/([\w-]+)\.js(?=")/g, relative));
  }

  async remove(): Promise<void> {
    await rm(dirname(this.folder), { recursive: true, force: true });
  }
}
