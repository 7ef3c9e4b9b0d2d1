// The findings on a table, and their display. A check that was not possible is reported, and never shown as good.

import type { Call } from "../command.ts";
import { exitCodes } from "../exit-codes.ts";
import type { Paint, Style } from "../terminal/table.ts";
import { shown } from "../terminal/text.ts";

/** One finding. */
export interface Finding {
  readonly check: string;
  readonly result: "ok" | "warning" | "error" | "not checked";
  /** The finding; for "not checked", the reason. */
  readonly text: string;
  /** What to do. */
  readonly fix?: string;
  /** The page of the documentation. */
  readonly docs?: string;
}

const signs: Readonly<Record<Finding["result"], readonly [sign: string, style: Style]>> = {
  ok: ["✓", "green"],
  warning: ["!", "yellow"],
  error: ["✗", "red"],
  "not checked": ["?", "dim"],
};

/** A line for each finding, and further lines for what to do. */
export function findingLines(findings: readonly Finding[], paint: Paint): string[] {
  const width = Math.max(...findings.map(({ check }) => check.length));
  const indent = " ".repeat(width + 4);
  return findings.flatMap(({ check, result, text, fix, docs }) => {
    const [sign, style] = signs[result];
    const said = result === "not checked" ? `not checked, because ${shown(text)}` : shown(text);
    return [
      `${paint(style, sign)} ${check.padEnd(width)}  ${said}`,
      ...(fix === undefined ? [] : [`${indent}fix: ${shown(fix)}`]),
      ...(docs === undefined ? [] : [`${indent}see ${docs}`]),
    ];
  });
}

/** `1 error, 3 warnings, 2 not checked`. */
export function findingsSummary(findings: readonly Finding[]): string {
  const count = (result: Finding["result"]): number =>
    findings.filter((finding) => finding.result === result).length;
  const [errors, warnings, unchecked] = [count("error"), count("warning"), count("not checked")];
  return [
    `${errors} ${errors === 1 ? "error" : "errors"}`,
    `${warnings} ${warnings === 1 ? "warning" : "warnings"}`,
    ...(unchecked > 0 ? [`${unchecked} not checked`] : []),
  ].join(", ");
}

/** Prints findings, and returns the exit code: 2 if something is broken, 1 with `isStrict` if there are warnings. */
export function reportFindings(
  { printer, terminal }: Pick<Call, "printer" | "terminal">,
  findings: readonly Finding[],
  isStrict: boolean,
): number {
  const has = (result: Finding["result"]): boolean => findings.some((finding) => finding.result === result);
  const exitCode = has("error")
    ? exitCodes.broken
    : isStrict && has("warning")
      ? exitCodes.nothing
      : exitCodes.done;
  printer.document("findings", { findings, exitCode }, () => findingLines(findings, terminal.paint));
  terminal.say(`${findingsSummary(findings)}. exit ${exitCode}`);
  return exitCode;
}
