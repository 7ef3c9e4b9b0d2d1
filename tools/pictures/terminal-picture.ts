// Plays commands in a shell, one after the other, and draws what they print as one SVG, without a script: each line appears when
// it was printed, and the film begins anew.

import { spawn } from "node:child_process";
import { setTimeout as pause } from "node:timers/promises";

/** A line as it was printed, with the escape sequences of its colours. */
interface PrintedLine {
  readonly text: string;
  /** Milliseconds since the beginning. */
  readonly at: number;
}

/** One line that is typed. */
export interface Step {
  readonly command: string;
  /** Whether the next line is typed while it still runs; what it prints is not shown. */
  readonly inBackground?: boolean;
  /** How long to wait before the next line, in milliseconds. */
  readonly pauseMs?: number;
}

const typingMs = 600;

/** Plays the steps with the variables set, and gives what a terminal would show. */
export async function record(
  steps: readonly Step[],
  env: NodeJS.ProcessEnv,
): Promise<readonly PrintedLine[]> {
  const lines: PrintedLine[] = [];
  const startedAt = performance.now();
  const background: Promise<void>[] = [];
  const print = (text: string): number => lines.push({ text, at: performance.now() - startedAt });
  for (const { command, inBackground = false, pauseMs = 800 } of steps) {
    print(`\u001b[1m$\u001b[22m ${command}${inBackground ? " &" : ""}`);
    await pause(typingMs);
    const done = play(command, env, inBackground ? () => 0 : print);
    if (inBackground) background.push(done);
    else await done;
    await pause(pauseMs);
    if (!inBackground) print("");
  }
  await Promise.all(background);
  return lines;
}

async function play(command: string, env: NodeJS.ProcessEnv, print: (line: string) => number): Promise<void> {
  const child = spawn("bash", ["-c", command], { env, stdio: ["ignore", "pipe", "pipe"] });
  for (const stream of [child.stdout, child.stderr]) {
    let rest = "";
    stream.on("data", (chunk: Buffer) => {
      const parts = (rest + chunk.toString("utf8")).split("\n");
      rest = parts.pop() ?? "";
      for (const line of parts) print(line);
    });
  }
  const code = await new Promise<number | null>((resolve, reject) => {
    child.once("error", reject);
    child.once("close", resolve);
  });
  if (code !== 0) throw new Error(`${command} has ended with ${code}`);
}

const letterWidth = 8.43;
const lineHeight = 20;
const margin = 16;
const barHeight = 32;
/** What is seen last stays for so long. */
const restMs = 5_000;

const stylesOfCodes: Readonly<Record<string, string>> = {
  1: "bold",
  2: "dim",
  31: "red",
  32: "green",
  33: "yellow",
  34: "blue",
  35: "magenta",
  36: "cyan",
};
const endings = new Set(["0", "22", "39", ""]);

/** Draws what was printed on a terminal of so many columns. */
export function terminalPicture(lines: readonly PrintedLine[], columns: number, title: string): string {
  const width = Math.ceil(columns * letterWidth + 2 * margin);
  const height = barHeight + lines.length * lineHeight + margin;
  const lastsMs = Math.round(Math.max(...lines.map(({ at }) => at), 0) + restMs);
  const share = (ms: number): string => ((ms / lastsMs) * 100).toFixed(2);
  const films = lines.map(({ at }, index) => {
    const from = share(at);
    return `@keyframes l${index}{0%,${from}%{opacity:0}${(Number(from) + 0.01).toFixed(2)}%,100%{opacity:1}}.l${index}{animation:l${index} ${lastsMs}ms infinite}`;
  });
  const drawn = lines.map(({ text }, index) => {
    const y = barHeight + (index + 1) * lineHeight - 4;
    return `<text class="l${index}" x="${margin}" y="${y}" xml:space="preserve">${spans(text)}</text>`;
  });
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" role="img" aria-label="${escaped(title)}">
<title>${escaped(title)}</title>
<style>text{font:14px ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;fill:#d7dce2}.bold{font-weight:700;fill:#fff}.dim{fill:#8b96a3}.red{fill:#ff7b72}.green{fill:#5fd38a}.yellow{fill:#e5c07b}.blue{fill:#6cb2ff}.magenta{fill:#d2a8ff}.cyan{fill:#76d7ea}
@media (prefers-reduced-motion:no-preference){${films.join("")}}</style>
<rect width="${width}" height="${height}" rx="8" fill="#15191e"/>
<circle cx="20" cy="17" r="6" fill="#ff5f57"/><circle cx="40" cy="17" r="6" fill="#febc2e"/><circle cx="60" cy="17" r="6" fill="#28c840"/>
${drawn.join("\n")}
</svg>
`;
}

/** Turns the escape sequences of colours into spans; there are no others in what the command prints. */
function spans(text: string): string {
  let style: string | undefined;
  return text
    .split(new RegExp(`${String.fromCharCode(27)}\\[([\\d;]*)m`))
    .map((part, index) => {
      if (index % 2 === 0) {
        if (part === "") return "";
        return style === undefined ? escaped(part) : `<tspan class="${style}">${escaped(part)}</tspan>`;
      }
      for (const code of part.split(";"))
        style = endings.has(code) ? undefined : (stylesOfCodes[code] ?? style);
      return "";
    })
    .join("");
}

function escaped(text: string): string {
  return text
    .replaceAll("&", "&amp;")
    .replaceAll("<", "&lt;")
    .replaceAll(">", "&gt;")
    .replaceAll('"', "&quot;");
}
