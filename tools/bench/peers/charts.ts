/**
 * The charts of a run, as SVG by ECharts on the server: each for a light and for a dark page, with its title, its unit and its labels in
 * the picture. They are drawn for a narrow screen: larger ones show them larger.
 */
import { BarChart, LineChart } from "echarts/charts";
import { GridComponent, TitleComponent } from "echarts/components";
import { init, use } from "echarts/core";
import { LabelLayout } from "echarts/features";
import { SVGRenderer } from "echarts/renderers";
import type { HandOverTimes, PeerResults } from "./results.ts";
import { nameOf } from "./tables.ts";

use([BarChart, LineChart, GridComponent, TitleComponent, LabelLayout, SVGRenderer]);

/** Values of several contenders in one unit: a bar for each, or two where a chart compares two things. */
interface BarChartData {
  readonly kind: "bars";
  readonly name: string;
  readonly title: string;
  /** What the length of a bar means. */
  readonly unit: string;
  readonly digits: number;
  readonly series: readonly string[];
  /** A value is undefined where there is none. */
  readonly bars: readonly { readonly label: string; readonly values: readonly (number | undefined)[] }[];
}

/** How values of several contenders grow, on two logarithmic axes. */
interface LineChartData {
  readonly kind: "lines";
  readonly name: string;
  readonly title: string;
  readonly unit: string;
  /** What grows. */
  readonly along: string;
  readonly at: readonly number[];
  readonly lines: readonly { readonly label: string; readonly values: readonly (number | undefined)[] }[];
}

export type ChartData = BarChartData | LineChartData;

/** What the charts of a run show. */
export function chartsOf({ conditions, ...results }: PeerResults): ChartData[] {
  const lease = conditions.takeOverLeaseMs / 1000;
  const waiters = [...new Set(results.handOvers.map((one) => one.waiters))];
  const locks = [...new Set(results.holding.map((one) => one.locks))];
  const handOvers = (
    name: string,
    title: string,
    unit: string,
    value: (one: HandOverTimes) => number,
  ): LineChartData => ({
    kind: "lines",
    name: `hand-over-${name}`,
    title,
    unit,
    along: "callers that wait",
    at: waiters,
    lines: linesOf(results.handOvers, waiters, (one) => one.waiters, value),
  });
  return [
    {
      kind: "bars",
      name: "cycle",
      title: "A free lock taken and given back",
      unit: "times two bare writes; shorter is better",
      digits: 2,
      series: ["time (p50)", "CPU"],
      bars: results.cycles
        .filter(({ id }) => id !== "floor")
        .map(({ id, ratio, cpuRatio }) => ({ label: nameOf(id), values: [ratio, cpuRatio] })),
    },
    {
      kind: "bars",
      name: "take-over",
      title: `Taking over from a dead holder, lease ${lease} s`,
      unit: "seconds; shorter is better",
      digits: 2,
      series: ["called at the death", `called ${2 * lease} s after it`],
      bars: results.takeOvers.map(({ id, fromDeathMs, laterMs }) => ({
        label: nameOf(id),
        values: [fromDeathMs === undefined ? undefined : fromDeathMs / 1000, laterMs / 1000],
      })),
    },
    handOvers("idle", "Idle time of a hand-over", "ms, p50; lower is better", (one) => one.idleMs),
    handOvers(
      "requests",
      "Requests of a hand-over",
      "requests of all; lower is better",
      (one) => one.requests,
    ),
    {
      kind: "lines",
      name: "heartbeats",
      title: "Requests of a heartbeat period",
      unit: "requests; lower is better",
      along: "locks held in one process",
      at: locks,
      lines: linesOf(
        results.holding,
        locks,
        (one) => one.locks,
        ({ requests }) => requests,
      ),
    },
    {
      kind: "bars",
      name: "bundle",
      title: "A function's bundle",
      unit: "KB, minified and gzipped; shorter is better",
      digits: 0,
      series: [""],
      bars: results.bundles.map(({ id, gzipBytes }) => ({ label: nameOf(id), values: [gzipBytes / 1000] })),
    },
  ];
}

function linesOf<One extends { readonly id: string }>(
  measured: readonly One[],
  at: readonly number[],
  where: (one: One) => number,
  value: (one: One) => number,
): LineChartData["lines"] {
  return [...new Set(measured.map(({ id }) => id))].map((id) => ({
    label: nameOf(id),
    values: at.map((x) => {
      const found = measured.find((one) => one.id === id && where(one) === x);
      return found === undefined ? undefined : value(found);
    }),
  }));
}

/** How a page looks. */
export type Theme = "light" | "dark";

const palettes = {
  light: {
    background: "#ffffff",
    text: "#1f2328",
    muted: "#59636e",
    lines: "#d1d9e0",
    bars: ["#0969da", "#8c959f"],
    leasehold: ["#0969da", "#1b7c83", "#6639ba"],
    others: ["#bc4c00", "#9a6700", "#cf222e", "#59636e"],
  },
  dark: {
    background: "#0d1117",
    text: "#f0f6fc",
    muted: "#9198a1",
    lines: "#3d444d",
    bars: ["#4493f8", "#656c76"],
    leasehold: ["#4493f8", "#39c5cf", "#ab7df8"],
    others: ["#f0883e", "#d29922", "#ff7b72", "#9198a1"],
  },
} as const;
type Palette = (typeof palettes)[Theme];

const width = 440;
const font = "system-ui, -apple-system, 'Segoe UI', 'DejaVu Sans', sans-serif";
const barHeight = 16;

/** Draws a chart. */
export function svgOf(data: ChartData, theme: Theme): string {
  const palette = palettes[theme];
  const { height, option } = data.kind === "bars" ? barOption(data, palette) : lineOption(data, palette);
  const chart = init(null, null, { renderer: "svg", ssr: true, width, height });
  chart.setOption({
    animation: false,
    backgroundColor: palette.background,
    textStyle: { fontFamily: font, fontSize: 14, color: palette.text },
    ...option,
  });
  const svg = chart.renderToSVGString({ useViewBox: true });
  chart.dispose();
  // What a pointer would do, and a counter of all that this process has drawn: no picture needs them.
  const still = svg
    .replace(/<style ?>.*?<\/style>\s*/s, "")
    .replaceAll(/ (?:class="zr\d+-cls-\d+"|ecmeta_\w+="[^"]*")/g, "")
    .replaceAll(/\bzr\d+-/g, "zr-");
  return `${still.replace(/^<svg[^>]*>/, `$&\n<title>${data.title}</title>`)}\n`;
}

function barOption(
  { title, unit, digits, series, bars }: BarChartData,
  palette: Palette,
): { height: number; option: object } {
  const rowHeight = 30 + series.length * (barHeight + 2);
  const top = series.length > 1 ? 94 : 72;
  const height = top + bars.length * rowHeight + 10;
  const isOurs = (label: string): boolean => label.startsWith("Leasehold");
  return {
    height,
    option: {
      title: titleOf(title, legendOf(unit, series, palette), palette),
      grid: { left: 14, right: 62, top, bottom: 10 },
      xAxis: { type: "value", min: 0, axisLabel: { show: false }, splitLine: { show: false } },
      yAxis: {
        type: "category",
        inverse: true,
        data: bars.map(({ label }) => label),
        axisLine: { show: false },
        axisTick: { show: false },
        // Each name stands above its bars, so that these have the whole width.
        axisLabel: {
          inside: true,
          margin: 0,
          align: "left",
          verticalAlign: "bottom",
          padding: [0, 0, (series.length * (barHeight + 2)) / 2 + 6, 0],
          formatter: (label: string) => `{${isOurs(label) ? "ours" : "other"}|${label}}`,
          rich: {
            ours: { fontFamily: font, fontSize: 14, fontWeight: "bold", color: palette.text },
            other: { fontFamily: font, fontSize: 14, color: palette.text },
          },
        },
        z: 10,
      },
      series: series.map((name, index) => ({
        type: "bar",
        name,
        barWidth: barHeight,
        barGap: "12%",
        itemStyle: { color: palette.bars[index % palette.bars.length] },
        label: {
          show: true,
          position: "right",
          formatter: ({ value }: { readonly value: unknown }) =>
            typeof value === "number" ? value.toFixed(digits) : "",
          fontSize: 13,
          color: palette.text,
        },
        data: bars.map(({ values }) => values[index] ?? "-"),
      })),
    },
  };
}

/** Says the unit, and with two series which colour is which. */
function legendOf(unit: string, series: readonly string[], palette: Palette): { text: string; rich: object } {
  const entries =
    series.length > 1 ? series.map((name, index) => `{s${index}|■} ${name}`).join("\u00a0".repeat(6)) : "";
  const rich = Object.fromEntries(
    series.map((_, index) => [
      `s${index}`,
      { color: palette.bars[index % palette.bars.length], fontSize: 14 },
    ]),
  );
  return { text: entries === "" ? unit : `${unit}\n${entries}`, rich };
}

function lineOption(
  { title, unit, along, at, lines }: LineChartData,
  palette: Palette,
): { height: number; option: object } {
  const colours = { ours: [...palette.leasehold], others: [...palette.others] };
  const axis = {
    type: "log",
    axisLine: { show: true, lineStyle: { color: palette.lines } },
    axisLabel: {
      color: palette.muted,
      fontSize: 13,
      formatter: (value: number) => value.toLocaleString("en-US"),
    },
    splitLine: { show: true, lineStyle: { color: palette.lines, type: "dashed" } },
    minorTick: { show: false },
  };
  return {
    height: 360,
    option: {
      title: titleOf(title, { text: `${unit}; both axes are logarithmic`, rich: {} }, palette),
      grid: { left: 56, right: 160, top: 70, bottom: 48 },
      xAxis: {
        ...axis,
        min: Math.min(...at),
        max: Math.max(...at),
        splitLine: { show: false },
        name: along,
        nameLocation: "middle",
        nameGap: 30,
        nameTextStyle: { color: palette.muted, fontSize: 13 },
      },
      yAxis: axis,
      series: lines.map(({ label, values }) => {
        const isOurs = label.startsWith("Leasehold");
        const color = (isOurs ? colours.ours : colours.others).shift() ?? palette.muted;
        return {
          type: "line",
          name: label,
          symbol: "circle",
          symbolSize: 7,
          lineStyle: { width: isOurs ? 3 : 2, color },
          itemStyle: { color },
          endLabel: {
            show: true,
            formatter: label,
            color,
            fontSize: 13,
            fontWeight: isOurs ? "bold" : "normal",
            distance: 6,
          },
          labelLayout: { moveOverlap: "shiftY" },
          data: at.map((x, index) => [x, values[index] ?? "-"]),
        };
      }),
    },
  };
}

function titleOf(text: string, subtitle: { text: string; rich: object }, palette: Palette): object {
  return {
    text,
    subtext: subtitle.text,
    left: 10,
    top: 8,
    itemGap: 6,
    textStyle: { fontFamily: font, fontSize: 16, fontWeight: "bold", color: palette.text },
    subtextStyle: {
      fontFamily: font,
      fontSize: 13,
      lineHeight: 20,
      color: palette.muted,
      rich: subtitle.rich,
    },
  };
}
