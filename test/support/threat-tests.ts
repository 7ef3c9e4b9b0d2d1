/** The tests of each defence in docs/security.md: by the threat of its row, the file in `test` and the name of each test. */
export const threatTests: Readonly<Record<string, readonly (readonly [file: string, name: string])[]>> = {
  "a program uses another's locks, alone or in a group": [
    [
      "repository/grants.test.ts",
      "permits %s on its own keys alone: each read, write, entry of a transaction and statement of a batch",
    ],
    [
      "repository/grants.test.ts",
      "refuses a group that has one key of another program, for every entry of a transaction is judged",
    ],
  ],
  "`*`, `?` or `$` in a prefix permits more": [
    ["repository/grants.test.ts", "takes the wildcards of a prefix as themselves"],
  ],
  "a request that names no key, as a Scan": [
    [
      "repository/grants.test.ts",
      "without its second condition a statement would permit a request that names no key, which is why it is there",
    ],
  ],
  "a program reads or forges the list of jobs (`leasehold/registry`)": [
    [
      "repository/grants.test.ts",
      "does not reach the registry of jobs, and a run does not fail because of it",
    ],
  ],
  "a reader writes": [
    ["repository/grants.test.ts", "reading never writes, and no single look needs more than its own grant"],
  ],
  "a function of the app uses another system's locks": [
    ["infra/leasehold-stack-permissions.test.ts", "uses the locks of its own keys"],
  ],
  "a leaked handle": [
    [
      "repository/threats.test.ts",
      "renews and releases its own lease, and is worth nothing once that lease has been released or taken over",
    ],
    [
      "functions/leases.test.ts",
      "an old handle renews as long as nobody took the lock, and is refused by name once somebody did",
    ],
  ],
  "a handle with a larger fencing token": [
    [
      "repository/threats.test.ts",
      "with a larger fencing token renews, releases and proves nothing: token and fencing token have to fit",
    ],
  ],
  "a forged handle of a permit, a reader or a writer": [
    [
      "client/fuzz-findings.test.ts",
      "a handle that says another seat than the table has leaves the item's counters as they are",
    ],
  ],
  "a guessed token": [["repository/threats.test.ts", "with a guessed token changes nothing"]],
  "a late copy of an old request": [
    ["client/service-clock.test.ts", "makes no write of the old holder succeed, and no handle of it renew"],
  ],
  "another user reads a handle's file": [
    ["cli/handles.test.ts", "leaves the lock held, by a handle that only its owner can read"],
  ],
  "a clone of a process draws the same token": [
    ["client/clones.test.ts", "one has a permit, and the other is refused"],
  ],
  "takes or breaks a lock": [
    [
      "repository/threats.test.ts",
      "takes the lock, and the holder learns of it at its next renewal and cannot write past the next holder",
    ],
  ],
  "sets the fencing token back": [
    [
      "repository/threats.test.ts",
      "who sets the fencing token back keeps later holders out of the resource, and lets no stale one in",
    ],
  ],
  "sets the fencing token too high to grow": [
    [
      "client/foreign-items.test.ts",
      "is no lock that stays held when its fencing token cannot be counted up any more",
    ],
  ],
  "prolongs a lease in the table": [
    [
      "repository/threats.test.ts",
      "who prolongs a lease in the table does not make its holder believe in it for longer",
    ],
  ],
  "writes what is no lease": [
    ["client/foreign-items.test.ts", "a reader gives what it reads, or a LeaseItemError that names the item"],
  ],
  "starts a keeper, also a later one, with a made-up lease, to stop an execution": [
    [
      "cdk/keeper-start.test.ts",
      "with a lease of its caller's own, and the execution of somebody else, it says whose the lease is",
    ],
    ["cdk/keeper-start.test.ts", "also as one that claims to be a later execution of a keeper"],
  ],
  "aborts such a keeper, so that its end stops an execution": [
    ["cdk/keeper-replaced.test.ts", "and whose input proves nothing stops nothing, whatever its event says"],
  ],
  "keeps another's lease alive, `until` a time": [
    ["cdk/leased-workflow.test.ts", "may use its own lock only, and may start its keeper only"],
  ],
  "forges the event that a workflow has ended": [
    [
      "cdk/leased-workflow.test.ts",
      "tells of its failed ends with its key, and what hears of them may look at it and keep its lock, and no more",
    ],
  ],
  "a keeper's role stops other workflows": [
    [
      "cdk/leased-workflow.test.ts",
      "has a keeper that may look at, stop and answer leased workflows of the stack, and keep locks of the table",
    ],
  ],
  "wakes parked workflows early": [
    [
      "cdk/leased-workflow.test.ts",
      "hears of releases only, and may wake the workflows that it serves, and no others",
    ],
  ],
  "redrives an aborted workflow": [
    [
      "cdk/leased-workflow.test.ts",
      "has itself stopped when it is redriven, by one machine for the whole stack",
    ],
  ],
  "calls a lease function with others' keys": [
    ["functions/leases.test.ts", "refuses to %s a key outside its prefix, and sends nothing"],
    ["infra/leasehold-stack-permissions.test.ts", "%s uses locks of shared keys, and no others"],
  ],
  "a caller's clock is wrong, or set by an attacker": [
    [
      "client/service-clock.test.ts",
      "a step of the wall clock between sending and answer does not take a lock",
    ],
    ["repository/threats.test.ts", "moves no deadline of a holder beyond what its own monotonic clock shows"],
  ],
  "a man in the middle lies about the Date": [
    [
      "repository/threats.test.ts",
      "of somebody between a client and the service opens a lock early, and the fence refuses the earlier holder",
    ],
  ],
  "such a proxy that cannot be avoided": [
    [
      "repository/threats.test.ts",
      "does not matter where the allowance is infinite: takers watch for a whole lease by their own clock",
    ],
  ],
  "a certificate that is not DynamoDB's": [
    [
      "integration/light-store.test.ts",
      "a certificate that is not trusted ends the call at once, with a named error, and nothing is held",
    ],
  ],
  "credentials go where an attacker names": [
    ["client/light-credentials.test.ts", "with an agent elsewhere, without TLS"],
  ],
  "fills a line": [
    [
      "client/fair-lock.test.ts",
      "refuses a waiter beyond maxWaiters with the length of the queue, and lets it in when somebody has left",
    ],
  ],
  "dead waiters stay in a line": [
    [
      "client/fair-lock.test.ts",
      "lets a newcomer pass over %i dead, with nobody alive among them, at once, in %i requests",
    ],
  ],
  "thousands of tries a second on one key": [
    ["fault/throttling.test.ts", "a heartbeat survives a burst that is shorter than the lease"],
  ],
  "large payloads make writes dear": [
    ["client/bad-input.test.ts", "with a payload over the item's limit, by one byte"],
  ],
  "a slot far in the future blocks a job": [
    [
      "contract/job-runs-contract.ts",
      "is not run, however its trigger came to be dated so: refused by name, and its time is left free",
    ],
  ],
  "stops every holder, breaks or pauses": [
    ["client/operator-faults.test.ts", "an operator's break is done once, with one trace"],
  ],
  "a key, an owner, a slot or a name that is an expression, or that every object has (`__proto__`)": [
    ["repository/threats.test.ts", "is a key, an owner, a slot's job and a task like any other"],
  ],
  "a payload that nests without end": [
    [
      "client/bad-input.test.ts",
      "a payload nests a hundred levels, and one that nests deeper is refused without a stack's overflow",
    ],
  ],
  "an item whose payload is no JSON": [
    ["client/foreign-items.test.ts", "nested deeper than a stack is, is read and taken over too"],
  ],
  "a token or a payload in an event, a log line, a metric, a span or an error": [
    ["repository/no-secrets.test.ts", "are in no event, log line, metric and span of %s"],
    ["repository/no-secrets.test.ts", "are in no error of any method, and in no event on the way to it: %s"],
    [
      "repository/no-secrets.test.ts",
      "are in no log of an error about an option that has been given in the wrong place",
    ],
  ],
  "credentials or variables in an item, a request's body, an error or `--verbose`": [
    [
      "repository/no-secrets.test.ts",
      "are in no request of any method: the owner is the host's name and the process's number",
    ],
    [
      "repository/no-secrets.test.ts",
      "are in no body of a request and in no error after %s, with the SDK and without",
    ],
    ["repository/no-secrets.test.ts", "are not printed by leasehold %s, though it says all that it does"],
  ],
  "an execution's data in a workflow's log": [
    ["cdk/observability.test.ts", "by default logs all but data, for a month, and is traced"],
  ],
  "a secret in the template": [["infra/leasehold-stack.test.ts", "no value looks like a secret"]],
  "another person on the network": [["cli/console.test.ts", "does not start with %j"]],
  "a page of another origin reads, writes or frames it": [
    ["cli/console.test.ts", "refuses %s, whatever the session"],
    ["e2e/console.test.ts", "gives a page of another origin nothing: no frame, no read, no write"],
  ],
  "a name that is rebound to 127.0.0.1": [
    ["cli/console.test.ts", "refuses %s, whatever the session"],
    ["cli/console.test.ts", "that listens on %s takes requests to %j with %i"],
  ],
  "a filter that takes for ever": [
    ["cli/console.test.ts", "answers a filter at once, whatever pattern a link brings"],
  ],
  "another program on this machine": [
    ["cli/console.test.ts", "shows nothing without a session, and opens one by the secret alone"],
    ["cli/console.test.ts", "gives a cookie that scripts and other sites do not get"],
  ],
  "hostile keys, owners, payloads and remarks": [
    ["cli/console.test.ts", "shows what is hostile as text, and no token: %s"],
    ["e2e/console.test.ts", "shows hostile keys, owners, payloads and remarks, and runs none of them"],
  ],
  "a click by mistake, or on what has changed": [
    [
      "cli/console.test.ts",
      "breaks the lease that the page has shown, never a later one, and only when the key is typed",
    ],
  ],
  "a body without end": [["cli/console.test.ts", "refuses a body with %s"]],
  "its secret on a page, the terminal or the table": [
    [
      "repository/no-secrets.test.ts",
      "has neither the console's secret nor a session's on a page, on the terminal, in the table, and after an error",
    ],
  ],
  "a secret among the arguments, which `ps` shows": [
    [
      "repository/threats.test.ts",
      "takes no secret as a flag, which everybody on the machine could read: a file at most",
    ],
  ],
  "a value that a terminal would act on": [
    ["cli/command-line.test.ts", "shows what is hostile in a key, and never sends it to the terminal"],
    ["cli/ls.test.ts", "escapes in JSON what a terminal would act on, and it means the same"],
  ],
  "a key that a shell would run in a line to copy": [
    ["cli/get.test.ts", "shows hostile keys, owners and payloads as text, and quotes them for a shell"],
  ],
  "a completion that runs what is in the table": [
    [
      "repository/threats.test.ts",
      "writes a completion for %s that runs nothing of the table: it has the words of the program alone",
    ],
    ["cli/help.test.ts", "completes %j in bash with words that run nothing"],
  ],
  "a changed dependency": [
    [
      "repository/supply-chain.test.ts",
      "installs packages of the public registry alone, each with its hash and one version, and brings none with a script or another licence",
    ],
  ],
  "a script that runs at the install": [
    ["repository/supply-chain.test.ts", "with %s in what users get is found"],
  ],
  "a known weakness": [
    ["repository/supply-chain.test.ts", "are never taken for none where the registry did not answer: %j"],
  ],
  "nobody knows what is inside": [
    [
      "repository/supply-chain.test.ts",
      "of each package names the package, all that users get with it, and a hash of each archive",
    ],
  ],
  "an archive from elsewhere": [
    ["repository/publishing.test.ts", "is public, with its provenance, its source and its issues"],
  ],
  "an install script or a test wants to publish": [
    [
      "repository/publishing.test.ts",
      "runs neither the repository's code nor install scripts where it may write or sign",
    ],
  ],
  "a changed action in a workflow": [
    ["repository/publishing.test.ts", "uses actions at one commit each, with the version beside it"],
  ],
};
