/**
 * The pages' only script. It opens the session by the secret in the address, looks again every few seconds while the
 * page is seen, changes only what has changed, shows times by one clock, and sends writes with the header that another
 * origin cannot set.
 */
export const script = `
"use strict";
const main = document.querySelector("main");
const footer = document.querySelector("footer");
const state = document.querySelector("#state");
const live = document.querySelector("#live");
const everyMs = Number(document.body.dataset.everyMs);

async function openSession() {
  const secret = new URLSearchParams(location.hash.slice(1)).get("secret");
  if (secret === null) {
    if (document.body.dataset.mode !== "locked") return false;
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

// The same form in both zones: 2026-11-22 02:54:10.
function timeText(at, isLocal) {
  const wall = isLocal ? new Date(at.getTime() - at.getTimezoneOffset() * 60000) : at;
  return wall.toISOString().slice(0, 19).replace("T", " ");
}

function showTimes(root) {
  const isLocal = localStorage.getItem("leasehold-clock") === "local";
  for (const one of root.querySelectorAll("time")) {
    const at = new Date(one.dateTime);
    if (Number.isNaN(at.getTime())) continue;
    one.textContent = timeText(at, isLocal);
    one.title = timeText(at, !isLocal) + (isLocal ? " UTC" : " local");
  }
}

function nameOf(node) {
  return node.nodeType === Node.ELEMENT_NODE ? node.dataset.row || node.id : "";
}

// Gives an element the content of another one. What is the same stays: with its focus, its place, and what is unfolded.
function change(old, next) {
  for (const { name, value } of next.attributes) if (old.getAttribute(name) !== value) old.setAttribute(name, value);
  for (const { name } of [...old.attributes]) if (name !== "open" && !next.hasAttribute(name)) old.removeAttribute(name);
  const wanted = [...next.childNodes];
  const names = new Set(wanted.map(nameOf));
  for (const one of [...old.childNodes]) if (nameOf(one) && !names.has(nameOf(one))) one.remove();
  const known = new Map([...old.childNodes].filter(nameOf).map((one) => [nameOf(one), one]));
  let at = old.firstChild;
  for (const one of wanted) {
    const name = nameOf(one);
    const same = name ? known.get(name) : at && !nameOf(at) && at.nodeName === one.nodeName ? at : undefined;
    if (!same) { old.insertBefore(one, at); continue; }
    known.delete(name);
    if (same === at) at = at.nextSibling; else old.insertBefore(same, at);
    if (same.nodeType !== Node.ELEMENT_NODE) { if (same.data !== one.data) same.data = one.data; continue; }
    const isNew = same.dataset.version !== one.dataset.version;
    if (!same.isEqualNode(one)) change(same, one);
    if (isNew) same.classList.add("changed");
  }
  while (at) { const rest = at.nextSibling; at.remove(); at = rest; }
}

// Only the console's own answer counts, and not that of what stands in front of it; nor is one waited for without an end.
function straight() {
  return { redirect: "error", signal: AbortSignal.timeout(60000) };
}

async function answered() {
  try {
    const answer = await fetch(location.href, { headers: { accept: "text/html" }, ...straight() });
    return { ok: answer.ok, status: answer.status, text: await answer.text() };
  } catch {
    // Ignored: the network alone can fail here, and the next look tries again.
    return undefined;
  }
}

let isLooking = false;
async function look() {
  if (isLooking || document.hidden || !everyMs || !live.checked || document.querySelector("dialog[open]")) return;
  isLooking = true;
  try {
    const answer = await answered();
    if (!answer) { state.textContent = "The console does not answer. What you see is what was read last."; return; }
    if (answer.status === 401) { state.textContent = "The session is over: open the address that the console has printed."; return; }
    const page = new DOMParser().parseFromString(answer.text, "text/html");
    const [next, foot] = [page.querySelector("#main"), page.querySelector("footer")];
    if (!answer.ok || !next || !foot) { state.textContent = "The console could not look: " + (page.querySelector(".problem") || page.body).textContent.trim().slice(0, 500) + ". What you see is what was read last."; return; }
    // A dialog may have been opened since the question: what is typed there is worth more than a new page.
    if (document.querySelector("dialog[open]")) return;
    showTimes(page);
    const focused = document.activeElement;
    change(main, next);
    change(footer, foot);
    if (focused !== document.activeElement && main.contains(focused)) focused.focus({ preventScroll: true });
    state.textContent = "";
  } finally {
    isLooking = false;
  }
}

document.addEventListener("click", ({ target }) => {
  const button = target instanceof Element ? target.closest("[data-opens], [data-closes]") : null;
  if (!button) return;
  if (button.dataset.opens) document.getElementById(button.dataset.opens).showModal();
  else button.closest("dialog").close();
});

// Forms whose write is under way, or done.
const sent = new WeakSet();

document.addEventListener("submit", async (event) => {
  const form = event.target;
  if (!(form instanceof HTMLFormElement)) return;
  const said = form.querySelector("[role=status]");
  if (form.dataset.opensSession !== undefined) {
    event.preventDefault();
    // Ignored: what kept the answer away is not known; the person tries again.
    const isOpen = await sendSecret(form.elements.secret.value).catch(() => undefined);
    if (isOpen) location.reload();
    else said.textContent = isOpen === false ? "This secret opens nothing." : "The console does not answer.";
    return;
  }
  if (!form.dataset.action) return;
  event.preventDefault();
  // A second click would ask for the same again, and its refusal would hide what was done.
  if (sent.has(form)) return;
  sent.add(form);
  said.textContent = "…";
  // Ignored: what kept the answer away is not known; the person is told to look.
  const answer = await fetch("/act/" + form.dataset.action, {
    method: "POST",
    headers: { "x-leasehold-write": "1", "content-type": "application/json" },
    body: JSON.stringify({ ...JSON.parse(form.dataset.fields), ...Object.fromEntries(new FormData(form)) }),
    ...straight(),
  }).catch(() => undefined);
  if (!answer) { sent.delete(form); said.textContent = "The console does not answer: look whether it was done before you try again."; return; }
  // Ignored: the answer is not the console's own, and its status is shown.
  const result = await answer.json().catch(() => undefined);
  said.textContent = result ? result.message : "answer " + answer.status + ": look whether it was done before you try again.";
  if (!answer.ok || !result) sent.delete(form);
  else setTimeout(() => { sent.delete(form); form.closest("dialog").close(); void look(); }, 1500);
});

function keepSwitches() {
  const clock = localStorage.getItem("leasehold-clock") || "utc";
  for (const one of document.querySelectorAll("[name=clock]")) {
    one.checked = one.value === clock;
    one.addEventListener("change", () => { localStorage.setItem("leasehold-clock", one.value); showTimes(document); });
  }
  live.checked = sessionStorage.getItem("leasehold-live") !== "no";
  live.addEventListener("change", () => { sessionStorage.setItem("leasehold-live", live.checked ? "yes" : "no"); void look(); });
}

// The address with the secret, in a tab that shows the locked page already.
addEventListener("hashchange", () => void openSession());

void openSession().then((isOpening) => {
  if (isOpening) return;
  keepSwitches();
  showTimes(document);
  setInterval(look, everyMs || 2000);
  document.addEventListener("visibilitychange", () => void look());
});
`;
