import { type ChildProcess, fork, spawn } from "node:child_process";
import { fileURLToPath } from "node:url";
import type {
  Answer,
  FromInstance,
  Holding,
  LeaseEventMessage,
  Setup,
  ToInstance,
  Trigger,
} from "./messages.ts";

const program = fileURLToPath(new URL("./instance.ts", import.meta.url));

/**
 * Kills a frozen process when its input ends without a line, as it does when this process is killed.
 *
 * Any other instance notices that itself.
 */
const guard = 'read -r thawed || kill -KILL "$0"';

/** Hears what instances tell unasked. */
export interface InstanceListener {
  onLeaseEvent(instance: InstanceProcess, message: LeaseEventMessage): void;
  onHolding(instance: InstanceProcess, message: Holding): void;
}

/** An instance of the job, seen from outside: a real process that can be killed and frozen. */
export class InstanceProcess {
  readonly name: string;
  readonly #child: ChildProcess;
  readonly #listener: InstanceListener;
  readonly #exited: Promise<void>;
  readonly #ready = Promise.withResolvers<void>();
  readonly #unanswered = new Map<number, (answer: Answer) => void>();
  #deliveries = 0;
  #guard: ChildProcess | undefined;

  /** Starts the process; `prepare` makes it ready for triggers. */
  constructor(name: string, listener: InstanceListener) {
    this.name = name;
    this.#listener = listener;
    // In a group of its own: a group with a stopped process is sent SIGHUP when the shell that started it ends.
    this.#child = fork(program, { detached: true });
    this.#child.on("message", (message) => this.#hear(message as FromInstance));
    this.#exited = new Promise((resolve) => {
      this.#child.once("exit", (code, signal) => {
        this.#ready.reject(
          new Error(`instance ${name} ended at its start (${signal ?? `exit code ${code}`})`),
        );
        for (const answer of this.#unanswered.values()) answer({ result: "died" });
        this.#unanswered.clear();
        resolve();
      });
    });
    this.#ready.promise.catch(() => undefined);
    // Sending to a process that has just died: its exit says the same.
    this.#child.on("error", () => undefined);
  }

  /** Its name and the id of its process, for people. */
  get label(): string {
    return `${this.name} (process ${this.#child.pid})`;
  }

  /** Whether it lives and has answered every trigger. */
  get isIdle(): boolean {
    return this.isAlive && this.#unanswered.size === 0;
  }

  /** Whether its process has not ended yet. */
  get isAlive(): boolean {
    return this.#child.exitCode === null && this.#child.signalCode === null;
  }

  /** Resolves when it is ready for triggers; rejects if its process ends before. */
  async prepare(setup: Omit<Setup, "name">): Promise<void> {
    this.#send({ type: "setup", setup: { ...setup, name: this.name } });
    await this.#ready.promise;
  }

  /** Delivers a trigger; resolves when it has been answered or the process has ended. */
  deliver(trigger: Omit<Trigger, "delivery">): Promise<Answer> {
    this.#deliveries += 1;
    const delivery = this.#deliveries;
    const { promise, resolve } = Promise.withResolvers<Answer>();
    this.#unanswered.set(delivery, resolve);
    this.#send({ type: "trigger", trigger: { ...trigger, delivery } });
    return promise;
  }

  /** Lets a run that stands still go on with its write. */
  goOn(): void {
    this.#send({ type: "goOn" });
  }

  /** SIGSTOP: the process gets no more time, and does not know it. */
  freeze(): void {
    const reader = spawn("/bin/sh", ["-c", guard, String(this.#child.pid)], {
      stdio: ["pipe", "ignore", "ignore"],
    });
    // Ctrl-C may have ended it already.
    reader.stdin.on("error", () => undefined);
    this.#guard = reader;
    this.#child.kill("SIGSTOP");
  }

  /** SIGCONT. */
  thaw(): void {
    this.#guard?.stdin?.end("thawed\n");
    this.#child.kill("SIGCONT");
  }

  /** SIGKILL, which a frozen process obeys too. Resolves when the process is gone. */
  async kill(): Promise<void> {
    this.killNow();
    await this.#exited;
  }

  /** SIGKILL without waiting, for the end of this process. */
  killNow(): void {
    this.#child.kill("SIGKILL");
  }

  #send(message: ToInstance): void {
    if (this.#child.connected) this.#child.send(message);
  }

  #hear(message: FromInstance): void {
    switch (message.type) {
      case "ready":
        this.#ready.resolve();
        break;
      case "answer":
        this.#unanswered.get(message.delivery)?.(message.answer);
        this.#unanswered.delete(message.delivery);
        break;
      case "holding":
        this.#listener.onHolding(this, message);
        break;
      case "leaseEvent":
        this.#listener.onLeaseEvent(this, message);
        break;
    }
  }
}
