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
