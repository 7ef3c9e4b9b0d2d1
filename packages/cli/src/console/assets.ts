// The files of the pages: one script, one style, one icon.

/**
 * The page's only script. It opens the session by the secret in the address, looks again every few seconds while the page
 * is seen, keeps the focus where it is, and sends writes with the header that another origin cannot set.
 */
export const script = `
"use strict";
const main = document.querySelector("main");
const state = document.querySelector("#state");
const everyMs = Number(document.body.dataset.everyMs);

async function openSession() {
  const secret = new URLSearchParams(location.hash.slice(1)).get("secret");
  if (secret === null) {
    if (!document.body.dataset.locked) return false;
    // A link from elsewhere comes without the cookie: where there is a session, the page's own request has it.
    const again = await fetch(location.href, { headers: { accept: "text/html" } });
    if (again.ok) location.replace(location.href);
    return true;
  }
  history.replaceState(null, "", location.pathname + location.search);
  const isOpen = await sendSecret(secret);
  if (isOpen) location.reload();
  else state.textContent = "This address is of an earlier console: take the one that the console has printed.";
  return true;
}

async function sendSecret(secret) {
  const answer = await fetch("/session", { method: "POST", headers: { "x-leasehold-write": "1" }, body: secret });
  return answer.ok;
}

document.addEventListener("submit", async (event) => {
  const form = event.target;
  if (!(form instanceof HTMLFormElement) || form.dataset.opensSession === undefined) return;
  event.preventDefault();
  // Ignored: what kept the answer away is not known; the person tries again.
  const isOpen = await sendSecret(form.elements.secret.value).catch(() => undefined);
  if (isOpen) location.reload();
  else form.querySelector("[role=status]").textContent = isOpen === false ? "This secret opens nothing." : "The console does not answer.";
});

function isInUse() {
  if (document.querySelector("dialog[open]")) return true;
  const { activeElement } = document;
  return main.contains(activeElement) && /^(INPUT|SELECT|TEXTAREA)$/.test(activeElement.tagName);
}

let isLooking = false;
async function look() {
  if (isLooking || document.hidden || isInUse() || !everyMs) return;
  isLooking = true;
  try {
    const answer = await fetch(location.href, { headers: { accept: "text/html" }, redirect: "error" });
    if (answer.status === 401) { state.textContent = "The session is over: open the address that the console has printed."; return; }
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    const next = page.querySelector("main");
    // A dialog may have been opened since the question: what is typed there is worth more than a new page.
    if (!next || isInUse()) return;
    const focused = document.activeElement && document.activeElement.dataset ? document.activeElement.dataset.focus : undefined;
    const opened = new Set([...main.querySelectorAll("details[open]")].map((one) => one.dataset.focus));
    const rows = new Map([...main.querySelectorAll("[data-row]")].map((one) => [one.dataset.row, one.dataset.version]));
    main.replaceChildren(...next.childNodes);
    for (const one of main.querySelectorAll("details")) if (opened.has(one.dataset.focus)) one.open = true;
    for (const one of main.querySelectorAll("[data-row]")) if (rows.has(one.dataset.row) && rows.get(one.dataset.row) !== one.dataset.version) one.classList.add("changed");
    if (focused) { const again = [...main.querySelectorAll("[data-focus]")].find((one) => one.dataset.focus === focused); if (again) again.focus(); }
    document.querySelector("footer").replaceChildren(...page.querySelector("footer").childNodes);
    state.textContent = "";
    localTimes();
  } catch {
    // Ignored: whatever keeps the answer away, the next look tries again.
    state.textContent = "The console does not answer. What you see is what it said last.";
  } finally {
    isLooking = false;
  }
}

function localTimes() {
  for (const one of document.querySelectorAll("time[datetime]")) {
    const at = new Date(one.dateTime);
    if (Number.isNaN(at.getTime()) || one.title) continue;
    one.title = one.textContent;
    one.textContent = at.toLocaleString();
  }
}

document.addEventListener("click", (event) => {
  const button = event.target instanceof Element ? event.target.closest("[data-opens]") : null;
  if (button) { const dialog = document.getElementById(button.dataset.opens); if (dialog) dialog.showModal(); }
  const closing = event.target instanceof Element ? event.target.closest("[data-closes]") : null;
  if (closing) closing.closest("dialog").close();
});

document.addEventListener("submit", async (event) => {
  const form = event.target;
  if (!(form instanceof HTMLFormElement) || !form.dataset.action) return;
  event.preventDefault();
  const said = form.querySelector("[role=status]");
  said.textContent = "…";
  // Ignored: what kept the answer away is not known; the person is told to look.
  const answer = await fetch("/act/" + form.dataset.action, {
    method: "POST",
    headers: { "x-leasehold-write": "1", "content-type": "application/json" },
    body: JSON.stringify(Object.fromEntries(new FormData(form))),
  }).catch(() => undefined);
  if (!answer) { said.textContent = "The console does not answer: look whether it was done before you try again."; return; }
  // Ignored: an answer that is no JSON is told by its status.
  const result = await answer.json().catch(() => ({ message: "answer " + answer.status }));
  said.textContent = result.message;
  if (answer.ok) setTimeout(() => { form.closest("dialog").close(); void look(); }, 1500);
});

void openSession().then((isOpening) => {
  if (isOpening) return;
  localTimes();
  setInterval(look, everyMs || 2000);
  document.addEventListener("visibilitychange", () => void look());
});
`;

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
