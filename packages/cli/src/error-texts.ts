// Written by `npm run generate -- error-texts` from docs/errors.md.

/** What each error code means, when it comes and what to do. */
export const texts: Readonly<Record<string, string>> = {
  LEASE_UNAVAILABLE:
    "`LeaseUnavailableError`, and `GroupUnavailableError` of `@leasehold/client/group`\n\n- Means: another caller holds the lock, or it is in its cooldown. Nothing is held.\n- Comes when: `acquire` finds a held lock and `waitMs` is 0 or over. `tryAcquire` gives undefined in place of it.\n- Do: skip the work, wait with `waitMs`, or try again after `retryAfterMs`. An HTTP API can answer with the error's `statusCode` and\n  `headers`. If its owner is your own, `reentrant: true` shares the lease. Without a renewal, the lock is free at `expiresAt`.",
  LEASE_QUEUE_FULL:
    "`QueueFullError` of `@leasehold/client/fair`\n\n- Means: `maxWaiters` callers wait in line. The caller has no ticket, and nothing is held.\n- Comes when: a call with `order: fair()`, or a `FairLock`, meets a full line.\n- Do: refuse the work, try again later, or raise `maxWaiters`.",
  LEASE_ABORTED:
    "`LeaseAbortedError`\n\n- Means: the caller's own `signal` ended the call. Nothing is held. `cause` is the signal's reason.\n- Comes when: the signal aborts before or during the call. A reason that is a `LeaseError` itself is raised as it is.\n- Do: nothing, if you meant it. Else give the signal more time, or limit the wait with `waitMs`.",
  LEASE_UPGRADE:
    "`LeaseUpgradeError` of `@leasehold/client/read-write`\n\n- Means: an owner of a read lock has asked for the write lock, and would wait for itself. Nothing was sent.\n- Comes when: `write` is called with `reentrant` and the owner of a read lock that this client holds.\n- Do: release the read lock first, and read again under the write lock.",
  LEASE_CLIENT_CLOSED:
    "`ClientClosedError`\n\n- Means: the client is closed.\n- Comes when: a call to acquire comes after `client.close()`, or waits while it is called.\n- Do: acquire before you close, or make another client.",
  LEASE_LOST:
    "`LeaseLostError`\n\n- Means: the lease protects nothing any more. Another caller may do the work now. `reason` is `expired`, `taken`, `revoked`,\n  `released` or `failed`.\n- Comes when: a renewal is not confirmed in time, an operator breaks the lease, or a newer trigger revokes it. `lease.signal` aborts\n  with it; `renew`, `withLease` and a leased handler reject with it.\n- Do: stop the work. Let your writes check the lease (`lease.fence()`, `lease.conditionCheck()`). For `expired`: use `heartbeat`, or\n  lengthen `leaseDurationMs`. For `revoked`: release the lease. For `failed`, the heartbeat met a mistake in the program: fix the `cause`.",
  LEASE_CLOSE_INCOMPLETE:
    "`CloseIncompleteError`\n\n- Means: the client is closed, but the service did not confirm all releases. `left` names what may stay held, and until when.\n- Comes when: `client.close({ timeoutMs })` is over before the replies, or a release failed. Without `timeoutMs`, also when the\n  service confirms nothing for ten seconds.\n- Do: nothing: the leases end by themselves. Give `close` more time if they must be free at once.",
  LEASE_INVOCATION_ENDING:
    "`InvocationEndingError` of `@leasehold/middy`\n\n- Means: the Lambda invocation has no time left, or its environment shuts down. `reason` is `timeout` or `shutdown`.\n- Comes when: `lock.signal` aborts shortly before the function's timeout (`timeoutMarginMs`), or at SIGTERM.\n- Do: stop in order, and leave the rest to the next invocation. If it comes often, give the function more time.",
  LEASE_SLOT_DONE:
    "`SlotDoneError`\n\n- Means: the slot is done already, or a later one is. Nothing is held.\n- Comes when: a trigger is delivered twice, or late.\n- Do: treat it as a success. To run a slot that was recorded by mistake, use `LeaseAdmin.takeBackSlot`.",
  LEASE_SLOT_NOT_DUE:
    "`SlotNotDueError`\n\n- Means: the slot is a time more than a minute ahead of this machine's clock. Nothing was sent.\n- Comes when: a trigger has a wrong date, or the machine's clock is behind.\n- Do: correct the trigger's date or the clock. A done slot refuses every earlier one.",
  LEASE_SLOT_MISMATCH:
    "`SlotMismatchError`\n\n- Means: the same owner holds the lock for another slot, or for none. The held lease is not changed.\n- Comes when: a reentrant call asks for a slot while the owner's lease is for another one.\n- Do: end that lease first, or ask for the same slot or for none.",
  LEASE_COMPLETION_FAILED:
    "`CompletionFailedError` of `@leasehold/middy`\n\n- Means: the handler has succeeded, and the service did not confirm that its slot is done. A retry may do the work again.\n- Comes when: the service fails at the end of an invocation with `once`.\n- Do: let the trigger retry. Make the work safe to repeat, or record its result under the lease's fencing token.",
  LEASE_RUNS_EXHAUSTED:
    "`RunsExhaustedError` of `@leasehold/jobs`\n\n- Means: the run has had all of its attempts, and none succeeded. Nothing is held.\n- Comes when: `JobRuns` is asked for a slot that has failed `maxAttempts` times.\n- Do: fix the cause, which `remark` names, and raise `maxAttempts`; or skip the slot.",
  LEASE_TASK_LOST:
    "`TaskLostError` of `@leasehold/jobs`\n\n- Means: a worker has tried to end a task that it does not own any more. Nothing was changed. `reason` is `taken`, `returned`,\n  `ended` or `gone`.\n- Comes when: the worker's claim has expired, or an operator has changed the task.\n- Do: drop the result. Let the task's writes check its lease. Lengthen `leaseDurationMs` if claims expire under work.",
  INVALID_SCHEDULE:
    "`InvalidScheduleError` of `@leasehold/jobs`\n\n- Means: EventBridge Scheduler does not take this expression, time zone or time. `problem` says what is allowed.\n- Comes when: a schedule is parsed, or a construct is made with it.\n- Do: correct the expression. EventBridge's cron has six fields: it has a year, no seconds, and a `?` for one of the two days. The\n  message translates expressions of a crontab, of Quartz and of Spring.",
  LEASE_COMPUTATION_TIMEOUT:
    "`ComputationTimeoutError` of `@leasehold/client/single-flight`\n\n- Means: a computation took longer than `computeTimeoutMs`. Its result is dropped, and its lease is released.\n- Comes when: the computation is slow, or does not stop when its signal aborts.\n- Do: raise `computeTimeoutMs`, or pass the signal to what the computation calls.",
  LEASE_CACHED_FAILURE:
    "`CachedFailureError` of `@leasehold/client/single-flight`\n\n- Means: a computation failed a moment ago, here or in another process, and is not repeated yet.\n- Comes when: `failureForMs` is set and has not passed.\n- Do: show the old value or an error, until `retryAt`.",
  LEASE_CACHE_UNREADABLE:
    "`CacheUnreadableError` of `@leasehold/client/single-flight`\n\n- Means: it is not known whether the cache has the result, so nothing was computed.\n- Comes when: your `ResultCache`, or the table, fails at a read or does not answer.\n- Do: try again; look at the `cause`.",
  LEASE_CACHE_UNWRITABLE:
    "`CacheUnwritableError` of `@leasehold/client/single-flight`\n\n- Means: the cache did not forget a value. Callers may still get it.\n- Comes when: `invalidate` meets a cache that throws, refuses or does not answer.\n- Do: invalidate again.",
  LEASE_INVALID_OPTIONS:
    "`InvalidOptionsError`\n\n- Means: an option has a value that is not allowed, or is not known. Nothing was sent. `option`, `value` and `allowed` say which.\n- Comes when: a client, a primitive or a call is made with it; in a handler also when a key or a slot is missing in the event.\n- Do: what the message says. What other libraries call `ttl`, `duration`, `expiresIn` or `lockAtMostFor` is `leaseDurationMs`;\n  `timeout` is `waitMs`; `keepAlive`, `autoExtend` and `renew` are `heartbeat`; `payload` and `metadata` are `data`. A call whose name\n  begins with `try` takes no `waitMs` and no `retry`. An undefined `tableName` is often an environment variable that is not set. Pass a\n  controller's `signal`, and a Date in `data` as its `toISOString()`. Store a large payload elsewhere. A refused `handle.format` comes\n  from a later version: upgrade the processes that adopt leases before those that hand them over.",
  LEASE_TABLE_NOT_FOUND:
    "`LeaseTableError`\n\n- Means: there is no table of that name in the region and at the endpoint that the message names.\n- Comes when: the region or the account is another one, or the table is not deployed.\n- Do: check `AWS_REGION`, the credentials and `LEASEHOLD_TABLE_NAME`; deploy the table, or call `createLeaseTable()`.",
  LEASE_TABLE_MISMATCH:
    "`LeaseTableError`\n\n- Means: the table's key is not `pk` (S) and `sk` (S), or its time to live is on another attribute than `ttl`.\n- Comes when: a call reaches it, or `createLeaseTable` finds it.\n- Do: give another name. For the time to live, turn it off and call `createLeaseTable()` again.",
  LEASE_ITEM_UNREADABLE:
    "`LeaseItemError`\n\n- Means: an item is not of the form that these packages write. `key`, `sortKey` and `attribute` name it.\n- Comes when: another program or a person has written it. Lists leave it out, and publish the event `unreadable`.\n- Do: correct the attribute, or delete the item if it is no lease.",
  LEASE_REGION_MISSING:
    "`LeaseConfigurationError`\n\n- Means: the AWS region is not known.\n- Comes when: neither the environment, nor a profile, nor the client that you pass has one.\n- Do: set `AWS_REGION`, or pass `dynamodb` with a region.",
  LEASE_CREDENTIALS_MISSING:
    "`LeaseConfigurationError`\n\n- Means: there are no AWS credentials. The request was not sent.\n- Comes when: no provider finds any. The light store reads the environment and containers alone, and no profiles.\n- Do: sign in (`aws sso login`), set a profile or the environment, or pass `dynamodb` or `credentials`.",
  LEASE_ACCESS_DENIED:
    "`LeaseConfigurationError`\n\n- Means: a policy does not allow the request, or the credentials are invalid or have expired.\n- Comes when: the role lacks an action on the table, or its condition on keys does not fit.\n- Do: compare the role with the permissions (https://github.com/leasehold/leasehold/blob/main/docs/iam.md); the message names the action.",
  LEASE_THROTTLED:
    "`LeaseServiceError`\n\n- Means: DynamoDB has too many requests, or this client's own requests wait too long behind renewals.\n- Comes when: the table's capacity or an item's 1,000 writes a second are used up, also after retries.\n- Do: try again later; spread work over more keys; use on-demand capacity. A held lease stays held until its deadline.",
  LEASE_CONFLICT:
    "`LeaseServiceError`\n\n- Means: another write of the same item was under way, again and again.\n- Comes when: transactions meet on a lock's item, an operator and a worker meet on a task, or two processes renew one lease.\n- Do: try again.",
  LEASE_SERVICE_FAILED:
    "`LeaseServiceError`\n\n- Means: DynamoDB failed to serve the request, also after retries. A write may have landed (`mayHaveLanded`).\n- Comes when: the service answers with a status of 500 or above.\n- Do: try again later. A lock that was taken without an answer is released in the background, or frees itself.",
  LEASE_NO_ANSWER:
    "`LeaseServiceError`\n\n- Means: no complete answer came in time. A write may have landed (`mayHaveLanded`).\n- Comes when: the network or the endpoint does not answer, or a lease is shorter than an answer takes.\n- Do: check the endpoint, the network and the VPC's route to DynamoDB; lengthen `leaseDurationMs` if it is below a second.",
  LEASE_REQUEST_REJECTED:
    "`LeaseServiceError`\n\n- Means: DynamoDB refused the request for a reason that no other code names. It will refuse the same request again.\n- Comes when: an item grows beyond 400 KB, a key does not fit the table's indexes, or a proxy changes requests or answers them itself.\n- Do: read the reason in brackets; check the endpoint and proxies. If your own code did not cause it, report it with the message.",
};
