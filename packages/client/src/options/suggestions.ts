/** What callers of other libraries, or of another call, write for an option of ours: in small letters. */
const otherNames: Readonly<Record<string, readonly string[]>> = {
  ttl: ["leaseDurationMs"],
  ttlms: ["leaseDurationMs"],
  duration: ["leaseDurationMs"],
  durationms: ["leaseDurationMs"],
  leasems: ["leaseDurationMs"],
  lease: ["leaseDurationMs"],
  leaseduration: ["leaseDurationMs"],
  expiresin: ["leaseDurationMs"],
  expiryms: ["leaseDurationMs"],
  lockatmostfor: ["leaseDurationMs", "lockAtMostForMs"],
  lockatmostforms: ["leaseDurationMs"],
  timeout: ["waitMs"],
  timeoutms: ["waitMs"],
  waittimeout: ["waitMs"],
  waittimeoutms: ["waitMs"],
  acquiretimeoutms: ["waitMs"],
  wait: ["waitMs"],
  maxwaitms: ["waitMs"],
  retrydelay: ["retry"],
  retries: ["retry"],
  keepalive: ["heartbeat"],
  autorenew: ["heartbeat"],
  autoextend: ["heartbeat"],
  renewms: ["heartbeat"],
  heartbeatms: ["heartbeat"],
  heartbeatintervalms: ["heartbeat"],
  holder: ["owner"],
  ownerid: ["owner"],
  payload: ["data"],
  metadata: ["data"],
  abortsignal: ["signal"],
  table: ["tableName"],
  client: ["dynamodb"],
  dynamodbclient: ["dynamodb"],
  documentclient: ["dynamodb"],
  skewms: ["clockSkewMs"],
  limit: ["permits"],
  max: ["permits"],
};

/** The most letters that may be wrong in a name that is taken for a misspelt one; less in a short one. */
const mostMistakes = 2;

/** Says what to write in place of an option that is not known; undefined where nothing comes to mind. */
export function adviceFor(option: string, known: readonly string[]): string | undefined {
  const waits = option === "waitMs" || option === "retry";
  if (waits && known.includes("leaseDurationMs") && known.includes("owner") && !known.includes("waitMs")) {
    return "a call whose name begins with try never waits: to wait, use the call without it, such as acquire";
  }
  const meant =
    otherNames[option.toLowerCase()]?.find((name) => known.includes(name)) ?? nearest(option, known);
  return meant === undefined ? undefined : `did you mean ${meant}?`;
}

function nearest(option: string, known: readonly string[]): string | undefined {
  let best: string | undefined;
  let fewest = Math.min(mostMistakes, Math.floor(option.length / 3)) + 1;
  for (const name of known) {
    const mistakes = distance(option.toLowerCase(), name.toLowerCase(), fewest);
    if (mistakes < fewest) [best, fewest] = [name, mistakes];
  }
  return best;
}

/** How many letters have to be added, left out or changed to make one word of the other; `most` for so many or more. */
function distance(one: string, other: string, most: number): number {
  if (Math.abs(one.length - other.length) >= most) return most;
  let row = Array.from({ length: other.length + 1 }, (_, index) => index);
  for (const [index, letter] of [...one].entries()) {
    const next = [index + 1];
    for (const [column, otherLetter] of [...other].entries()) {
      const changed = (row[column] ?? 0) + (letter === otherLetter ? 0 : 1);
      next.push(Math.min(changed, (row[column + 1] ?? 0) + 1, (next[column] ?? 0) + 1));
    }
    row = next;
  }
  return Math.min(row.at(-1) ?? most, most);
}
