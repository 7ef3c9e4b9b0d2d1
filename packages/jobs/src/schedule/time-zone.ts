/**
 * Converts between instants and the wall time of a time zone. A wall time is given as the epoch milliseconds that it
 * would be in UTC, so that a calendar in UTC can work on it.
 */
export class TimeZone {
  /** Undefined for UTC: asking Intl for each would take a second for the minutes of a month. */
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

  /** What the clocks on the wall show at an instant, to the second. */
  wallTime(instantMs: number): number {
    if (this.#format === undefined) return Math.floor(instantMs / 1000) * 1000;
    const parts: Record<string, string> = {};
    for (const { type, value } of this.#format.formatToParts(instantMs)) parts[type] = value;
    const [year, month, day] = [Number(parts.year), Number(parts.month), Number(parts.day)];
    return Date.UTC(year, month - 1, day, Number(parts.hour), Number(parts.minute), Number(parts.second));
  }

  /**
   * The instant at which the clocks show a wall time; the first one where they show it twice, and undefined where
   * they skip it.
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

const dayMs = 86_400_000;
