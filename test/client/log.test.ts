import { Console } from "node:console";
import { PassThrough } from "node:stream";
import { Logger as PowertoolsLogger } from "@aws-lambda-powertools/logger";
import { type LogEntry, type LoggedEvent, type Logger, logLevels, logListener } from "@leasehold/client/log";
import pino from "pino";
import { describe, expect, it, vi } from "vitest";
import {
  sampleTime as at,
  sampleEvents as events,
  sampleError as mistake,
  sampleSubject as subject,
} from "../support/sample-events.ts";

/** A logger that keeps what it gets. */
function keeping(): { readonly logger: Logger; readonly kept: (LogEntry & { readonly level: string })[] } {
  const kept: (LogEntry & { readonly level: string })[] = [];
  const at = (level: string) => (entry: LogEntry) => void kept.push({ level, ...entry });
  return { logger: { debug: at("debug"), info: at("info"), warn: at("warn"), error: at("error") }, kept };
}

function logged(event: LoggedEvent): LogEntry & { readonly level: string } {
  const { logger, kept } = keeping();
  logListener({ logger })(event);
  expect(kept).toHaveLength(1);
  return kept[0] as LogEntry & { readonly level: string };
}

describe("an entry", () => {
  it.each(Object.values(events))("of $type names the event, its level and every property of it", (event) => {
    const entry = logged(event);
    const { type, ...properties } = event;
    expect(entry.level).toBe(logLevels[type]);
    expect(entry.event).toBe(type);
    expect(entry.message).toMatch(/^leasehold: /);
    for (const [name, value] of Object.entries(properties)) {
      if (name !== "message" && name !== "error") expect(entry[name]).toEqual(value);
    }
  });

  it.each<[LoggedEvent, string]>([
    [events.acquired, 'leasehold: acquired "import" after 12 ms'],
    [events.takeover, 'leasehold: took "import" over from "dead" (serviceClock)'],
    [events.contended, 'leasehold: "import" at "permit/1" is held by "other" until 2026-01-01T00:00:00.000Z'],
    [
      { ...events.contended, inCooldown: true },
      'leasehold: "import" at "permit/1" is in its cooldown after "other" until 2026-01-01T00:00:00.000Z',
    ],
    [events.renewed, 'leasehold: renewed "import" until 2026-01-01T00:00:00.000Z'],
    [events.lost, 'leasehold: lost "import" after 5000 ms (taken)'],
    [events.released, 'leasehold: released "import" after 5000 ms'],
    [
      { ...events.released, confirmed: false },
      'leasehold: released "import" after 5000 ms, which the service did not confirm',
    ],
    [
      events.completionFailed,
      'leasehold: the slot "8:00" of "import" is done but not recorded (LEASE_NO_ANSWER)',
    ],
    [
      events.skew,
      "leasehold: the service's clock is 9000 to 10000 ms ahead of this machine's; allowed: 1000 ms",
    ],
    [events.error, 'leasehold: a mistake in the program, at the operation renew of "import": no such method'],
    [events.shortLease, 'leasehold: the lease of "import" lasts 30 ms, less than one slow answer can take'],
    [events.unreadable, "leasehold: token is odd"],
    [events.served, 'leasehold: served "import" (cache) after 3 ms'],
    [events.computed, 'leasehold: computed "import" in 40 ms (attempt 1)'],
    [
      { ...events.computed, error: mistake, attempt: 2 },
      'leasehold: failed to compute "import" in 40 ms (attempt 2)',
    ],
    [events.cacheFailed, 'leasehold: the cache failed at the write of "import" (threw)'],
    [events.refreshFailed, 'leasehold: failed to refresh "import" ahead; its value is given until its end'],
  ])("says in a sentence what happened: $type", (event, message) => {
    expect(logged(event).message).toBe(message);
  });

  it.each([
    [{ ...events.released, confirmed: false }],
    [{ ...events.computed, error: mistake }],
    [{ ...events.served, source: "stale", error: mistake } as const],
  ])("is a warning where something failed: $type", (event) => {
    expect(logged(event).level).toBe("warn");
  });

  it("shows an error as plain values, which every logger can write", () => {
    const { stack } = mistake;
    const error = { name: "TypeError", message: "no such method", code: "ERR_X", stack };
    expect(logged(events.error).error).toEqual(error);
    expect(logged({ ...events.computed, error: "no such file" }).error).toEqual({ message: "no such file" });
  });

  it.each([
    ["a value without a text", Object.create(null), { message: "an object" }],
    [
      "an error with odd members",
      Object.assign(new Error(), { message: [1n], code: 5n, name: 7n }),
      { name: "7", message: "1" },
    ],
  ])("shows %s, which JSON cannot write, as plain values too", (_, error, shown) => {
    const entry = logged({ ...events.computed, error });
    expect(JSON.parse(JSON.stringify(entry)).error).toMatchObject(shown);
  });
});

describe("a level", () => {
  const levelsFor = (options: Parameters<typeof logListener>[0]): string[] => {
    const { logger, kept } = keeping();
    const listener = logListener({ logger, ...options });
    for (const event of Object.values(events)) listener(event);
    return [...new Set(kept.map(({ level }) => level))].sort();
  };

  it("of a logger of its user's is the logger's own matter: it gets everything", () => {
    expect(levelsFor({})).toEqual(["debug", "error", "info", "warn"]);
  });

  it("leaves out what is below it", () => {
    expect(levelsFor({ level: "debug" })).toEqual(["debug", "error", "info", "warn"]);
    expect(levelsFor({ level: "info" })).toEqual(["error", "info", "warn"]);
    expect(levelsFor({ level: "warn" })).toEqual(["error", "warn"]);
    expect(levelsFor({ level: "error" })).toEqual(["error"]);
  });
});

describe("without a logger", () => {
  const spies = () =>
    Object.fromEntries(
      (["debug", "info", "warn", "error"] as const).map((level) => [
        level,
        vi.spyOn(console, level).mockImplementation(() => undefined),
      ]),
    );

  it("the console gets one line of JSON for each event, from the level info on", () => {
    const { debug, info, warn, error } = spies();
    const listener = logListener();
    for (const event of Object.values(events))
      listener({ ...event, key: "two\nlines\u001b[31m" } as LoggedEvent);
    expect(debug).not.toHaveBeenCalled();
    const lines = [info, warn, error].flatMap((spy) => spy?.mock.calls ?? []);
    expect(lines).toHaveLength(Object.values(logLevels).filter((level) => level !== "debug").length);
    for (const [line, ...others] of lines) {
      expect(others).toEqual([]);
      expect([...line].filter((character: string) => character < " ")).toEqual([]);
      const { time, level, message, event } = JSON.parse(line);
      expect(new Date(time).toISOString()).toBe(time);
      expect(level).toBe(event === "released" ? "info" : logLevels[event as LoggedEvent["type"]]);
      expect(message).toMatch(/^leasehold: /);
    }
  });

  it("Lambda's console gets the object where it writes JSON itself, so that the fields can be queried", () => {
    vi.stubEnv("AWS_LAMBDA_LOG_FORMAT", "JSON");
    const { info } = spies();
    logListener()(events.acquired);
    expect(info?.mock.calls).toEqual([
      [
        {
          message: 'leasehold: acquired "import" after 12 ms',
          event: "acquired",
          ...subject,
          waitedMs: 12,
          expiresAt: at,
        },
      ],
    ]);
  });
});

describe("a logger that people have gets what it can write:", () => {
  const written = (stream: PassThrough): unknown[] =>
    String(stream.read() ?? "")
      .split("\n")
      .filter(Boolean)
      .map((line) => JSON.parse(line));

  it("pino", () => {
    const stream = new PassThrough();
    logListener({ logger: pino({ level: "debug" }, stream) })(events.lost);
    expect(written(stream)).toMatchObject([
      {
        level: 40,
        message: 'leasehold: lost "import" after 5000 ms (taken)',
        event: "lost",
        ...subject,
        heldMs: 5_000,
      },
    ]);
  });

  it("Powertools' Logger", () => {
    const stream = new PassThrough();
    const logger = new PowertoolsLogger({ serviceName: "imports", logLevel: "INFO" });
    // Its lines go past the global console.
    Object.defineProperty(logger, "console", { value: new Console(stream, stream) });
    logListener({ logger })(events.error);
    expect(written(stream)).toMatchObject([
      {
        level: "ERROR",
        service: "imports",
        event: "error",
        key: "import",
        error: { message: "no such method" },
      },
    ]);
  });

  it("a console of one's own", () => {
    const stream = new PassThrough();
    logListener({ logger: new Console(stream, stream) })(events.acquired);
    expect(written(stream)).toMatchObject([{ level: "info", event: "acquired", ...subject }]);
  });
});

it.each([
  [{ level: "trace" }, 'level is "trace"; allowed: debug, info, warn, error'],
  [
    { logger: { info: () => undefined } },
    "logger is an instance of Object; allowed: an object with the methods debug, info",
  ],
  [{ console }, "options.console is not an option here"],
])("options that are none are refused: %o", (options, message) => {
  expect(() => logListener(options as never)).toThrow(message);
});
