import { execFile } from "node:child_process";
import { randomUUID } from "node:crypto";
import { promisify } from "node:util";

const run = promisify(execFile);

/** Whether tmux is installed. */
export async function hasTmux(): Promise<boolean> {
  return await run("tmux", ["-V"]).then(
    () => true,
    () => false,
  );
}

/** A real terminal, as tmux emulates it, with a shell in it. */
export class TmuxTerminal implements AsyncDisposable {
  /** A server of its own, so that no other session is touched. */
  readonly #server = `leasehold-${randomUUID()}`;

  /** Opens a terminal with a plain shell. */
  static async open(
    size: { readonly columns: number; readonly rows: number },
    env: NodeJS.ProcessEnv,
  ): Promise<TmuxTerminal> {
    const terminal = new TmuxTerminal();
    const variables = Object.entries({ ...env, PS1: "$ ", TERM: "screen-256color" }).flatMap(
      ([name, value]) => (value === undefined ? [] : ["-e", `${name}=${value}`]),
    );
    const { columns, rows } = size;
    await terminal.#tmux("new-session", "-d", "-x", `${columns}`, "-y", `${rows}`, ...variables, "sh");
    return terminal;
  }

  /** Types a line and presses Enter. */
  async type(line: string): Promise<void> {
    await this.#tmux("send-keys", "-l", line);
    await this.press("Enter");
  }

  /** Presses keys, as tmux names them: `q`, `Down`, `C-c`. */
  async press(...keys: readonly string[]): Promise<void> {
    await this.#tmux("send-keys", ...keys);
  }

  async resize(columns: number, rows: number): Promise<void> {
    await this.#tmux("resize-window", "-x", `${columns}`, "-y", `${rows}`);
  }

  /** What stands on the screen, without blanks at the ends of lines. */
  async screen(): Promise<string> {
    return await this.#tmux("capture-pane", "-p");
  }

  /** Whether a program shows the alternate screen, and whether the cursor is to be seen. */
  async mode(): Promise<{ readonly isAlternate: boolean; readonly hasCursor: boolean }> {
    const shown = await this.#tmux("display-message", "-p", "#{alternate_on} #{cursor_flag}");
    const [alternate, cursor] = shown.trim().split(" ");
    return { isAlternate: alternate === "1", hasCursor: cursor === "1" };
  }

  /** Sends a signal to a program that this terminal's shell has started, found by what its command line contains. */
  async signal(commandLine: string, name: string): Promise<void> {
    const shell = (await this.#tmux("display-message", "-p", "#{pane_pid}")).trim();
    const { stdout } = await run("ps", ["-o", "pid=,args=", "--ppid", shell]);
    const line = stdout.split("\n").find((one) => one.includes(commandLine)) ?? "";
    process.kill(Number.parseInt(line.trim(), 10), `SIG${name}` as NodeJS.Signals);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#tmux("kill-server").catch(() => undefined);
  }

  async #tmux(...args: readonly string[]): Promise<string> {
    const { stdout } = await run("tmux", ["-L", this.#server, "-f", "/dev/null", ...args]);
    return stdout;
  }
}
