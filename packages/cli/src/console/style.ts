/** The page's style: light and dark by the system's choice, and by 360 pixels of width. */
export const style = `
:root { color-scheme: light dark; --back: #fff; --front: #1c2024; --dim: #5a6470; --line: #d8dde3; --box: #f5f7f9;
  --good: #157f3d; --bad: #b42318; --warn: #8a5a00; --accent: #0b5cad; --bar: #0b5cad; }
@media (prefers-color-scheme: dark) { :root { --back: #14171a; --front: #e6e9ec; --dim: #9aa5b1; --line: #333a42; --box: #1c2126;
  --good: #4cc47c; --bad: #ff7b6e; --warn: #e5b04c; --accent: #6cb2ff; --bar: #4a94e6; } }
* { box-sizing: border-box; }
body { margin: 0; font: 15px/1.5 system-ui, sans-serif; background: var(--back); color: var(--front); }
a { color: var(--accent); } a:focus-visible, button:focus-visible, input:focus-visible, summary:focus-visible { outline: 3px solid var(--accent); outline-offset: 2px; }
.skip { position: absolute; left: -999px; } .skip:focus { left: 8px; top: 8px; background: var(--back); padding: 4px 8px; }
header { border-bottom: 1px solid var(--line); padding: 8px 16px; display: flex; flex-wrap: wrap; gap: 4px 16px; align-items: baseline; }
header strong { font-size: 16px; } nav { display: flex; flex-wrap: wrap; gap: 2px 14px; }
nav a[aria-current] { font-weight: 600; text-decoration: none; color: var(--front); border-bottom: 2px solid var(--accent); }
main { padding: 8px 16px 32px; max-width: 1200px; } footer { border-top: 1px solid var(--line); color: var(--dim); padding: 8px 16px; font-size: 13px; }
h1 { font-size: 20px; margin: 8px 0; overflow-wrap: anywhere; } h2 { font-size: 16px; margin: 24px 0 6px; }
.wrap { overflow-x: auto; } table { border-collapse: collapse; width: 100%; } caption { text-align: left; color: var(--dim); padding: 4px 0; }
th, td { text-align: left; padding: 4px 10px 4px 0; border-bottom: 1px solid var(--line); vertical-align: top; }
th { color: var(--dim); font-weight: 500; font-size: 13px; } td { overflow-wrap: anywhere; } .number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
.dim { color: var(--dim); } .good { color: var(--good); } .bad { color: var(--bad); font-weight: 600; } .warn { color: var(--warn); font-weight: 600; }
code, pre { font: 13px/1.5 ui-monospace, monospace; } pre { background: var(--box); border: 1px solid var(--line); padding: 8px; overflow-x: auto; white-space: pre-wrap; overflow-wrap: anywhere; }
.notice { border-left: 4px solid var(--warn); background: var(--box); padding: 6px 12px; margin: 8px 0; } .notice ul { margin: 4px 0; padding-left: 20px; }
meter { width: 90px; height: 12px; } dl { display: grid; grid-template-columns: max-content 1fr; gap: 2px 16px; margin: 8px 0; } dt { color: var(--dim); } dd { margin: 0; overflow-wrap: anywhere; }
form.filter { display: flex; flex-wrap: wrap; gap: 6px; margin: 8px 0; align-items: center; } input, select, button, textarea { font: inherit; color: inherit; background: var(--back); border: 1px solid var(--dim); border-radius: 4px; padding: 3px 8px; }
button { cursor: pointer; background: var(--box); } button.danger { border-color: var(--bad); color: var(--bad); }
.strip { display: flex; flex-wrap: wrap; gap: 3px; } .cell { width: 18px; height: 18px; border: 1px solid var(--dim); border-radius: 3px; font-size: 11px; line-height: 16px; text-align: center; text-decoration: none; color: var(--front); }
.cell.succeeded { background: var(--good); color: var(--back); } .cell.failed, .cell.exhausted { background: var(--bad); color: var(--back); } .cell.missed { border-style: dashed; }
.cell.lost { background: repeating-linear-gradient(45deg, var(--bad) 0 3px, transparent 3px 6px); } .cell.skipped { background: var(--line); } .cell.running { border: 2px solid var(--accent); }
svg text { fill: var(--front); font-size: 12px; } svg .lane { fill: var(--bar); } svg .overlap { fill: var(--bad); } svg .axis { stroke: var(--line); }
dialog { max-width: 560px; width: calc(100% - 24px); border: 1px solid var(--line); border-radius: 6px; background: var(--back); color: var(--front); } dialog label { display: block; margin: 8px 0; } dialog input { width: 100%; }
@media (max-width: 640px) { .wide { display: none; } header, main { padding-left: 10px; padding-right: 10px; } dl { grid-template-columns: 1fr; } dt { margin-top: 6px; } }
@media (prefers-reduced-motion: no-preference) { .changed { animation: changed 1.5s; } @keyframes changed { from { background: var(--line); } } }
`;

/** A closed lock. */
export const icon = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32"><path d="M9 14V10a7 7 0 0 1 14 0v4" fill="none" stroke="#4a94e6" stroke-width="4"/><rect x="5" y="14" width="22" height="15" rx="3" fill="#4a94e6"/></svg>`;
