/** The pages' style: light and dark by the reader's choice, from 360 pixels of width on. Browsers of 2024 and newer. */
export const style = `
:root { color-scheme: light dark;
  --page: light-dark(#f4f6f8, #0e1115); --card: light-dark(#fff, #171b21); --raised: light-dark(#eef1f5, #232932);
  --ink: light-dark(#161a1f, #e6e9ed); --soft: light-dark(#545e69, #a0abb7); --line: light-dark(#dce1e7, #2d343d);
  --link: light-dark(#0a53be, #80b8ff); --good: light-dark(#0f6537, #5fd495); --bad: light-dark(#b0201a, #ff948b);
  --warn: light-dark(#7f4c00, #f2bd62); --special: light-dark(#6737a3, #cdaeff); --write: light-dark(#b3201a, #a31d18); }
* { box-sizing: border-box; }
body { margin: 0; font: 14px/1.45 system-ui, sans-serif; background: var(--page); color: var(--ink); }
a { color: var(--link); text-underline-offset: .2em; text-decoration-thickness: 1px; text-decoration-color: color-mix(in srgb, currentcolor 45%, transparent); }
a:hover { text-decoration-color: currentcolor; }
:focus-visible { outline: 2px solid var(--link); outline-offset: 2px; border-radius: 3px; }
main:focus-visible { outline: none; }
h1 { font-size: 1.45rem; line-height: 1.25; margin: 0 0 .75rem; overflow-wrap: anywhere; font-weight: 650; }
h2 { font-size: 1rem; margin: 0 0 .6rem; font-weight: 650; }
p { margin: .4rem 0; overflow-wrap: anywhere; } ul { margin: .3rem 0; padding-left: 1.2rem; }
code, pre { font: .93em/1.5 ui-monospace, monospace; overflow-wrap: anywhere; }
pre { margin: .35rem 0; padding: .5rem .7rem; background: var(--raised); border-radius: 6px; white-space: pre-wrap; max-height: 24rem; overflow: auto; }
.dim { color: var(--soft); } .hidden { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); white-space: nowrap; }
.skip { position: absolute; left: -999px; } .skip:focus { left: 8px; top: 8px; background: var(--card); padding: 4px 8px; z-index: 3; }

header { display: flex; flex-wrap: wrap; align-items: center; gap: .4rem .8rem; padding: .55rem 1.25rem 0; background: var(--card); border-bottom: 1px solid var(--line); }
header p { margin: 0; } .brand { display: flex; align-items: center; gap: .45rem; font-size: 1rem; letter-spacing: -.01em; }
.environment { display: flex; flex-wrap: wrap; gap: .1rem .7rem; padding: .15rem .7rem; border-radius: 6px; background: var(--place); color: #fff; min-width: 0; }
.environment > * { overflow-wrap: anywhere; min-width: 0; }
.color0 { --place: #1d4f9c; } .color1 { --place: #00636b; } .color2 { --place: #5b3a9e; } .color3 { --place: #2c6423; } .color4 { --place: #7a4300; } .color5 { --place: #88246b; }
.mode { font-weight: 650; padding: .1rem .7rem; border-radius: 6px; border: 1px solid var(--line); color: var(--soft); }
nav[aria-label=Pages] { flex-basis: 100%; display: flex; flex-wrap: wrap; gap: 0 .25rem; margin: 0 -.6rem; }
nav[aria-label=Pages] a { padding: .45rem .6rem; color: inherit; text-decoration: none; border-bottom: 3px solid transparent; }
nav[aria-label=Pages] a:hover { border-color: var(--line); } nav[aria-label=Pages] a[aria-current] { font-weight: 650; border-color: currentcolor; }
.switches { margin-left: auto; display: flex; align-items: center; gap: .8rem; }
fieldset { display: flex; margin: 0; padding: 2px; border: 1px solid color-mix(in srgb, currentcolor 40%, transparent); border-radius: 7px; }
fieldset input { position: absolute; opacity: 0; } fieldset span { display: block; padding: .05rem .6rem; border-radius: 5px; cursor: pointer; }
fieldset :checked + span { background: var(--ink); color: var(--card); } fieldset :focus-visible + span { outline: 2px solid var(--link); outline-offset: 2px; }
.check { display: inline-flex; align-items: center; gap: .4rem; white-space: nowrap; }
[data-mode=write] header { background: var(--write); color: #fff; border-color: transparent; --link: #fff; }
[data-mode=write] .mode { background: #fff; color: #b3201a; border-color: #fff; text-transform: uppercase; letter-spacing: .04em; }
[data-mode=write] .environment { outline: 1px solid #fff; } [data-mode=write] nav[aria-label=Pages] a:hover { border-color: #fff8; }
[data-mode=write] fieldset :checked + span { background: #fff; color: #8c1914; }
@media (min-width: 60rem) { header { position: sticky; top: 0; z-index: 2; } [data-mode=write] { box-shadow: inset 4px 0 var(--write), inset -4px 0 var(--write); min-height: 100vh; } }
#state { margin: 0; padding: 0 1.25rem; background: light-dark(#fff3d6, #3a2c0c); color: light-dark(#5f3a00, #ffd98f); font-weight: 600; white-space: pre-line; } #state:not(:empty) { padding-block: .5rem; }
main { padding: 1rem 1.25rem 2rem; max-width: 100rem; margin: 0 auto; } footer { padding: .6rem 1.25rem 1.2rem; color: var(--soft); display: flex; flex-wrap: wrap; gap: .2rem 1.4rem; max-width: 100rem; margin: 0 auto; }

.card { background: var(--card); border: 1px solid var(--line); border-radius: 10px; padding: .9rem 1rem; margin: 0 0 1rem; min-width: 0; }
.notice { border-left: 4px solid var(--warn); border-radius: 4px 10px 10px 4px; } .card > .strip { margin: .8rem 0; } .problem { color: var(--bad); font-weight: 600; } .empty { color: var(--soft); padding: 1.2rem 0; text-align: center; } .lead { --tone: var(--soft); font-size: 1.05rem; margin: 0 0 .7rem; } .lead::before { content: ""; display: inline-block; width: .7em; height: .7em; border-radius: 50%; background: var(--tone); margin-right: .5em; }
.columns { display: grid; gap: 0 1rem; grid-template-columns: minmax(0, 1fr); } @media (min-width: 60rem) { .columns { grid-template-columns: repeat(2, minmax(0, 1fr)); } .columns.main { grid-template-columns: minmax(0, 1fr) 24rem; } }
dl { margin: 0; display: grid; gap: .35rem; } dl div { display: grid; grid-template-columns: minmax(7rem, 11rem) minmax(0, 1fr); gap: .1rem 1rem; } dt { color: var(--soft); } dd { margin: 0; overflow-wrap: anywhere; }
.badge { --tone: var(--soft); display: inline-block; padding: 0 .5rem; border-radius: 1rem; font-size: .86em; font-weight: 600; color: var(--tone); background: color-mix(in srgb, var(--tone) 12%, var(--card)); overflow-wrap: anywhere; max-width: 100%; }
.lead.good, .good, .succeeded { --tone: var(--good); } .bad, .failed, .exhausted, .lost, .parked { --tone: var(--bad); } .warn, .missed { --tone: var(--warn); } .info, .running { --tone: var(--link); } .special { --tone: var(--special); } .waiting, .cancelled, .skipped { --tone: var(--soft); }
bdi { overflow-wrap: anywhere; }

.list { container-type: inline-size; } table { border-collapse: collapse; width: 100%; table-layout: fixed; }
caption { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); }
th, td { text-align: left; padding: .38rem .5rem; border-bottom: 1px solid var(--line); vertical-align: top; overflow-wrap: anywhere; }
th { color: var(--soft); font-weight: 550; font-size: .9em; vertical-align: bottom; overflow-wrap: normal; } th a { color: inherit; text-decoration: none; } th a:hover { color: var(--link); } th[aria-sort] a { color: var(--ink); font-weight: 650; }
.order { font-size: .75em; padding-left: .25em; opacity: .55; } th[aria-sort] .order { opacity: 1; }
tbody tr:last-child td { border-bottom: 0; } tbody tr:hover { background: color-mix(in srgb, var(--link) 5%, transparent); }
th.key { width: 23%; } th.state { width: 8.2rem; } th.number { width: 6.7rem; } th.bar { width: 11.8rem; } th.time { width: 10.8rem; } th.marks { width: 26%; }
td.key a, td.number a { text-decoration: none; } td.key a:hover, td.number a:hover { text-decoration: underline; } td.key { font-weight: 550; overflow: clip; overflow-clip-margin: 3px; } .number { text-align: right; font-variant-numeric: tabular-nums; } td.time, .left, .lead, dd { font-variant-numeric: tabular-nums; } td.number .dim, td.time .dim { display: block; font-size: .9em; white-space: nowrap; }
meter { appearance: none; display: inline-block; width: 4.5rem; height: 8px; border: 0; border-radius: 4px; background: var(--raised); vertical-align: middle; } meter::-webkit-meter-bar { background: var(--raised); border: 0; border-radius: 4px; height: 8px; display: block; } meter::-webkit-meter-inner-element { display: block; } meter::-webkit-meter-optimum-value { background: var(--link); border-radius: 4px; } meter::-moz-meter-bar { background: var(--link); border-radius: 4px; }
.left { white-space: nowrap; color: var(--soft); }
summary { cursor: pointer; white-space: nowrap; overflow: clip; overflow-clip-margin: 3px; text-overflow: ellipsis; } details[open] summary code { color: var(--soft); }
@container (max-width: 66rem) {
  table, tbody, td { display: block; } thead { display: block; border-bottom: 1px solid var(--line); } thead tr { display: flex; flex-wrap: wrap; gap: .1rem .9rem; padding-bottom: .4rem; } th { display: none; } th.sorts { display: block; width: auto; padding: .15rem 0; border: 0; text-align: left; }
  tbody tr { display: flex; flex-wrap: wrap; gap: .2rem 1rem; padding: .55rem 0; border-bottom: 1px solid var(--line); } tbody tr:last-child { border: 0; }
  td { border: 0; padding: 0; min-width: 0; flex: 1 1 8.6rem; } td.number { text-align: left; } td:empty { display: none; } td.key { flex: 1 1 calc(100% - 10rem); order: -2; } tr:not(:has(> td.state)) > td.key { flex-basis: 100%; } td.state { flex: none; order: -1; max-width: 100%; } td.long, td.lane, td.marks { flex-basis: 100%; }
  td:not(.key, .state, .lane, .marks)::before { content: attr(data-label) " "; font-size: .9em; color: var(--soft); } td:has(> details:first-child)::before { content: none; } td.number .dim, td.time .dim { display: inline; }
}
.tabs, .chips, .pager, .legend, .strip, .offers, .buttons, .filters { display: flex; flex-wrap: wrap; gap: .4rem; align-items: center; }
.tabs { margin: 0 0 .8rem; } .tabs a { padding: .2rem .7rem; border: 1px solid var(--line); border-radius: 1rem; background: var(--card); color: inherit; text-decoration: none; } .tabs a:hover { border-color: var(--soft); } .tabs a[aria-current] { background: var(--ink); color: var(--card); border-color: var(--ink); } .tabs b { font-weight: 650; font-variant-numeric: tabular-nums; padding-left: .15rem; } .card .tabs { margin-top: .8rem; }
.filters { gap: .5rem .8rem; align-items: end; margin: 0 0 .6rem; } .filters label:not(.check) { display: grid; gap: .1rem; color: var(--soft); font-size: .9em; } .filters input:not([type=checkbox]) { width: 10.5rem; } .filters .check { padding-bottom: .35rem; }
.chip { padding: .12rem .6rem; border-radius: 1rem; background: color-mix(in srgb, var(--link) 12%, var(--card)); text-decoration: none; overflow-wrap: anywhere; min-width: 0; } .chip:hover { text-decoration: line-through; }
.pager { justify-content: center; gap: 1rem; padding: .8rem 0 .2rem; font-variant-numeric: tabular-nums; }
input, select, button { font: inherit; color: var(--ink); background: var(--card); border: 1px solid color-mix(in srgb, var(--soft) 70%, var(--card)); border-radius: 6px; padding: .28rem .6rem; max-width: 100%; } input::placeholder { color: var(--soft); opacity: .8; } input[type=checkbox] { accent-color: var(--link); margin: 0; }
button { cursor: pointer; background: var(--raised); font-weight: 550; overflow-wrap: anywhere; text-align: start; } button:hover { border-color: var(--ink); } button.danger { color: var(--bad); border-color: var(--bad); } dialog button.danger { background: var(--write); color: #fff; border-color: transparent; }
.offers { list-style: none; padding: 0; align-items: stretch; } .offers li { max-width: 100%; } .offers li:has(> pre) { flex-basis: 100%; } .offers li > p { margin: .2rem 0 0; }
dialog { max-width: 34rem; width: calc(100% - 24px); border: 1px solid var(--line); border-radius: 10px; background: var(--card); color: var(--ink); padding: 1.1rem 1.2rem; } dialog::backdrop { background: #0008; } dialog label, form[data-opens-session] label { display: grid; max-width: 26rem; gap: .2rem; margin: .6rem 0; overflow-wrap: anywhere; }

.strip { gap: 3px; } .mark { --tone: var(--soft); display: inline-grid; place-items: center; width: 1.15rem; height: 1.25rem; border-radius: 4px; font-size: .78rem; line-height: 1; font-weight: 700; text-decoration: none; color: var(--tone); background: color-mix(in srgb, var(--tone) 14%, var(--card)); border: 1px solid color-mix(in srgb, var(--tone) 50%, var(--card)); }
.mark.succeeded { --tone: var(--good); } .mark.failed, .mark.exhausted, .mark.lost { --tone: var(--bad); } .mark.exhausted { background: var(--tone); color: var(--card); } .mark.missed { --tone: var(--warn); border-style: dashed; } .mark.running, .mark.info { --tone: var(--link); }
.legend { gap: .3rem 1rem; margin-top: .8rem; }
.bars { display: block; width: 100%; height: 18px; } .bars line { stroke: var(--line); } .bars .now { stroke: var(--soft); stroke-dasharray: 2 2; } .bars rect, .stack rect { fill: var(--tone); } .past { --tone: color-mix(in srgb, var(--soft) 75%, var(--card)); } .holds { --tone: var(--good); } .paused { --tone: var(--special); } .waits { --tone: color-mix(in srgb, var(--warn) 75%, var(--card)); } .overlap { --tone: var(--bad); }
.stack { display: block; width: 100%; height: 14px; border-radius: 4px; background: var(--raised); margin-top: .2rem; } .stack .waiting { --tone: light-dark(#8b96a3, #6d7884); } .stack .cancelled { --tone: light-dark(#c3cad2, #434c56); } .stack .failed { --tone: color-mix(in srgb, var(--bad) 60%, var(--card)); } .count { font-weight: 600; color: var(--tone); }
@media (max-width: 40rem) { .tabs { flex-wrap: nowrap; overflow-x: auto; padding-bottom: 3px; scrollbar-width: thin; } .tabs a { flex: none; } header, main, footer { padding-inline: .8rem; } header { gap: .4rem; } .brand span { position: absolute; clip-path: inset(50%); } .environment { order: 1; flex-basis: 100%; } nav[aria-label=Pages] { order: 2; } .switches { gap: .5rem; } .card { padding: .75rem .8rem; } dl div { grid-template-columns: 5.5rem minmax(0, 1fr); gap: .1rem .7rem; } .filters label:not(.check) { flex: 1 1 8rem; } .filters input:not([type=checkbox]) { width: 100%; } }
@media (prefers-reduced-motion: no-preference) { .changed { animation: changed 1.6s; } @keyframes changed { from { background: color-mix(in srgb, var(--link) 22%, transparent); } } }
`;
