export const dayMs = 86_400_000;

/**
 * Converts between instants and the wall time of a time zone. A wall time is given as epoch milliseconds, as if it
 * were in UTC, so that a calendar in UTC can work with it.
 */
export class TimeZone {
  /** Undefined for UTC: with Intl, the minutes of a month would take a second. */
  readonly #format: Intl.DateTimeFormat | undefined;

  /** @throws RangeError for a name that the runtime does not know. */
  constructor(name: string) {
    if (name === "UTC") return;
    this.#format = new Intl.DateTimeFormat("en-US", {
      timeZone: name,
      hourCycle: "h23",
      year: "numeric",
      month: "numeric",
      day: "numeric",
      hour: "numeric",
      minute: "numeric",
      second: "numeric",
      era: "short",
    });
  }

  /** Gives the wall time of an instant, in whole seconds. */
  wallTime(instantMs: number): number {
    if (this.#format === undefined) return Math.floor(instantMs / 1000) * 1000;
    const parts: Record<string, string> = {};
    for (const { type, value } of this.#format.formatToParts(instantMs)) parts[type] = value;
    const [year, month, day] = [Number(parts.year), Number(parts.month), Number(parts.day)];
    return Date.UTC(year, month - 1, day, Number(parts.hour), Number(parts.minute), Number(parts.second));
  }

  /**
   * Gives the instant of a wall time: the first one when the clocks show it twice, undefined when they skip it.
   */
  instant(wallMs: number): number | undefined {
    if (this.#format === undefined) return wallMs;
    const instants = [this.#offset(wallMs - dayMs), this.#offset(wallMs + dayMs)]
      .map((offsetMs) => wallMs - offsetMs)
      .filter((instantMs) => this.wallTime(instantMs) === wallMs);
    return instants.length === 0 ? undefined : Math.min(...instants);
  }

  #offset(instantMs: number): number {
    const wholeSeconds = Math.floor(instantMs / 1000) * 1000;
    return this.wallTime(wholeSeconds) - wholeSeconds;
  }
}
