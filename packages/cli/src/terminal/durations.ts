// Durations and times in the form that people use.

const units = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const;
const pattern = /^(\d+(?:\.\d+)?)(ms|s|m|h|d)$/;

/** Reads `500ms`, `30s`, `5m`, `2h`, `7d`, `1h30m` as milliseconds; returns what is allowed for any other text. */
export function parseDuration(text: string): number | { readonly advice: string } {
  if (/^\d+(\.\d+)?$/.test(text) && Number(text) !== 0) return { advice: `say ${text}s or ${text}ms` };
  if (text === "0") return 0;
  const parts = text.match(/\d+(?:\.\d+)?[a-z]+/g) ?? [];
  let total = 0;
  for (const part of parts) {
    const [, count, unit] = pattern.exec(part) ?? [];
    if (unit === undefined) return { advice: "allowed: a duration such as 500ms, 30s, 5m, 2h, 7d" };
    total += Number(count) * units[unit as keyof typeof units];
  }
  if (parts.join("") !== text || parts.length === 0 || !Number.isSafeInteger(Math.round(total))) {
    return { advice: "allowed: a duration such as 500ms, 30s, 5m, 2h, 7d" };
  }
  return Math.round(total);
}

/** A duration in its two largest units: `1h 12m`, `6m 02s`, `41s`, `1.9s`, `320ms`. */
export function durationText(ms: number): string {
  if (ms < 0) return `-${durationText(-ms)}`;
  if (!Number.isFinite(ms)) return "for ever";
  if (ms < 1_000) return `${Math.round(ms)}ms`;
  if (ms < 9_950) return `${(ms / 1_000).toFixed(1)}s`;
  const seconds = Math.round(ms / 1_000);
  const [s, m, h, d] = [
    seconds % 60,
    Math.floor(seconds / 60) % 60,
    Math.floor(seconds / 3_600) % 24,
    Math.floor(seconds / 86_400),
  ];
  const two = (number: number): string => String(number).padStart(2, "0");
  if (d > 0) return `${d}d ${two(h)}h`;
  if (h > 0) return `${h}h ${two(m)}m`;
  return m > 0 ? `${m}m ${two(s)}s` : `${s}s`;
}

/** A duration in whole seconds, for values that change on screen: `4s`, `6m 02s`; less than one in milliseconds. */
export function ageText(ms: number): string {
  if (ms < 0) return `-${ageText(-ms)}`;
  return ms >= 1_000 && ms < 9_950 ? `${Math.round(ms / 1_000)}s` : durationText(ms);
}

/** A point in time in UTC, or in the machine's own zone: `2026-11-22 02:54:10`. */
export function timeText(epochMs: number, zone: "utc" | "local" = "utc"): string {
  const at = new Date(zone === "utc" ? epochMs : epochMs - new Date(epochMs).getTimezoneOffset() * 60_000);
  return Number.isNaN(at.getTime()) ? "?" : at.toISOString().slice(0, 19).replace("T", " ");
}
