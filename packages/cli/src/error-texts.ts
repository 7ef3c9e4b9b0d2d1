// Written by `npm run generate -- error-texts` from docs/errors.md.

/** What each error code means, when it comes and what to do. */
export const texts: Readonly<Record<string, string>> = {
  LEASE_UNAVAILABLE:
    "`LeaseUnavailableError`, and `GroupUnavailableError` of `@leasehold/client/group`\n\n- Means: another caller holds the lock, or it is in its cooldown. Nothing is held.\n- When: `waitMs` is 0 or over. `tryAcquire` gives undefined instead.\n- Do: skip the work, wait with `waitMs`, or try again after `retryAfterMs`. An HTTP API can answer with the error's `statusCode` and\n  `headers`. If the owner is your own, `reentrant: true` shares the lease.",
  LEASE_QUEUE_FULL:
    "`QueueFullError` of `@leasehold/client/fair`\n\n- Means: the line is full. Nothing is held.\n- When: `maxWaiters` callers wait.\n- Do: refuse the work, try later, or raise `maxWaiters`.",
  LEASE_ABORTED:
    "`LeaseAbortedError`\n\n- Means: the caller's own `signal` ended the call. Nothing is held. `cause` is the signal's reason.\n- When: it aborts. A reason that is a `LeaseError` is raised as it is.\n- Do: give the signal more time, if you did not mean it.",
  LEASE_UPGRADE:
    "`LeaseUpgradeError` of `@leasehold/client/read-write`\n\n- Means: an owner of a read lock would wait for itself. Nothing was sent.\n- When: it calls `write` with `reentrant`.\n- Do: release the read lock first, and read again under the write lock.",
  LEASE_CLIENT_CLOSED:
    "`ClientClosedError`\n\n- Means: the client is closed.\n- When: a caller acquires after `client.close()`, or waits meanwhile.\n- Do: acquire before you close, or make another client.",
  LEASE_LOST:
    "`LeaseLostError`\n\n- Means: the lease protects nothing any more. `reason` is `expired`, `taken`, `revoked`, `released` or `failed`.\n- When: a renewal is not confirmed in time, or an operator or a newer trigger ends the lease. `lease.signal` aborts with it;\n  `renew`, `withLease` and a leased handler reject with it.\n- Do: stop the work. Let your writes check the lease (`lease.fence()`, `lease.conditionCheck()`). For `expired`: use `heartbeat`, or\n  lengthen `leaseDurationMs`. For `revoked`: release the lease. For `failed`: fix the `cause`.",
  LEASE_CLOSE_INCOMPLETE:
    "`CloseIncompleteError`\n\n- Means: the client is closed, but not all releases are confirmed. `left` names what may stay held, and until when.\n- When: `timeoutMs` of `client.close` (without it: ten seconds without a confirmation) ends before the replies, or a release failed.\n- Do: nothing: the leases end by themselves. Give `close` more time if they must be free at once.",
  LEASE_INVOCATION_ENDING:
    "`InvocationEndingError` of `@leasehold/middy`\n\n- Means: the Lambda invocation has no time left, or its environment shuts down (`reason`: `timeout`, `shutdown`).\n- When: `lock.signal` aborts, `timeoutMarginMs` before the function's timeout, or at SIGTERM.\n- Do: leave the rest to the next invocation, or give the function more time.",
  LEASE_SLOT_DONE:
    "`SlotDoneError`\n\n- Means: the slot is done already, or a later one is. Nothing is held.\n- When: a trigger is delivered twice, or late.\n- Do: treat it as a success. `LeaseAdmin.takeBackSlot` opens a slot again.",
  LEASE_SLOT_NOT_DUE:
    "`SlotNotDueError`\n\n- Means: the slot is a time more than a minute ahead of this machine's clock. Nothing was sent.\n- When: a trigger's date or the clock is wrong.\n- Do: correct it.",
  LEASE_SLOT_MISMATCH:
    "`SlotMismatchError`\n\n- Means: the same owner holds the lock for another slot, or for none.\n- When: a reentrant call asks for a slot.\n- Do: end the held lease first, or ask for its slot or for none.",
  LEASE_COMPLETION_FAILED:
    "`CompletionFailedError` of `@leasehold/middy`\n\n- Means: the handler has succeeded, but its slot is not confirmed as done. A retry may do the work again.\n- When: the service fails at the end of an invocation with `once`.\n- Do: let the trigger retry. Make the work safe to repeat.",
  LEASE_RUNS_EXHAUSTED:
    "`RunsExhaustedError` of `@leasehold/jobs`\n\n- Means: no attempt of the run succeeded. Nothing is held.\n- When: it has failed `maxAttempts` times.\n- Do: fix the cause, which `remark` names, and raise `maxAttempts`; or skip the slot.",
  LEASE_TASK_LOST:
    "`TaskLostError` of `@leasehold/jobs`\n\n- Means: a worker does not own the task any more. `reason` is `taken`, `returned`, `ended` or `gone`.\n- When: its claim has expired, or an operator has changed the task.\n- Do: drop the result. Let the task's writes check its lease. Lengthen `leaseDurationMs` if claims expire under work.",
  INVALID_SCHEDULE:
    "`InvalidScheduleError` of `@leasehold/jobs`\n\n- Means: EventBridge Scheduler does not take this expression, time zone or time. `problem` says what is allowed.\n- When: a schedule is parsed, or a construct is made with it.\n- Do: correct it. EventBridge's cron has six fields: a year, no seconds, and a `?` for one of the two days. The message translates\n  expressions of crontab, Quartz and Spring.",
  LEASE_COMPUTATION_TIMEOUT:
    "`ComputationTimeoutError` of `@leasehold/client/single-flight`\n\n- Means: a computation's result is dropped.\n- When: it took longer than `computeTimeoutMs`.\n- Do: raise that, or pass the computation's signal to what it calls.",
  LEASE_CACHED_FAILURE:
    "`CachedFailureError` of `@leasehold/client/single-flight`\n\n- Means: a computation failed, here or in another process.\n- When: `failureForMs` has not passed: it is not repeated yet.\n- Do: show the old value or an error, until `retryAt`.",
  LEASE_CACHE_UNREADABLE:
    "`CacheUnreadableError` of `@leasehold/client/single-flight`\n\n- Means: the cache could not be read, so nothing was computed.\n- When: your `ResultCache`, or the table, fails or does not answer.\n- Do: fix the `cause`; try again.",
  LEASE_CACHE_UNWRITABLE:
    "`CacheUnwritableError` of `@leasehold/client/single-flight`\n\n- Means: the cache did not forget a value. Callers may still get it.\n- When: `invalidate` meets a cache that fails or does not answer.\n- Do: invalidate again.",
  LEASE_INVALID_OPTIONS:
    "`InvalidOptionsError`\n\n- Means: an option is unknown, or has a wrong value. Nothing was sent. `option`, `value` and `allowed` say which.\n- When: a call gets it; in a handler also when a key or a slot is missing in the event.\n- Do: what the message says. `ttl`, `duration`, `expiresIn` or `lockAtMostFor` of other libraries is `leaseDurationMs`; `timeout` is\n  `waitMs`; `keepAlive`, `autoExtend` and `renew` are `heartbeat`; `payload` and `metadata` are `data`. A call whose name begins with `try`\n  takes no `waitMs` and no `retry`. An undefined `tableName` is often an environment variable that is not set. Pass a controller's `signal`,\n  and a Date in `data` as its `toISOString()`. A refused `handle.format` is of a later version: upgrade the processes that adopt leases\n  first.",
  LEASE_TABLE_NOT_FOUND:
    "`LeaseTableError`\n\n- Means: the region and endpoint that the message names have no such table.\n- When: the region or the account is another one, or the table is not deployed.\n- Do: compare `AWS_REGION`, `LEASEHOLD_TABLE_NAME` and `aws sts get-caller-identity`; deploy the table, or call `createLeaseTable()`. A\n  local engine keeps tables by region and access key.",
  LEASE_TABLE_MISMATCH:
    "`LeaseTableError`\n\n- Means: the table's key is not `pk` (S) and `sk` (S), or its time to live is on another attribute than `ttl`.\n- When: a call reaches it.\n- Do: give another name. For the time to live, turn it off and call `createLeaseTable()` again.",
  LEASE_ITEM_UNREADABLE:
    "`LeaseItemError`\n\n- Means: an item is not what these packages write. `key`, `sortKey` and `attribute` name it.\n- When: another program or a person has written it. Lists leave it out, and publish the event `unreadable`.\n- Do: correct the attribute, or delete the item if it is no lease.",
  LEASE_REGION_MISSING:
    "`LeaseConfigurationError`\n\n- Means: the AWS region is not known.\n- When: neither the environment, a profile nor your client has one.\n- Do: set `AWS_REGION`, or pass `dynamodb` with a region.",
  LEASE_CREDENTIALS_MISSING:
    "`LeaseConfigurationError`\n\n- Means: there are no AWS credentials. Nothing was sent.\n- When: no provider finds any. The light store reads no profiles, only the environment and containers.\n- Do: sign in (`aws sso login`), set a profile or the environment, or pass `dynamodb` or `credentials`.",
  LEASE_ACCESS_DENIED:
    "`LeaseConfigurationError`\n\n- Means: a policy does not allow the request, or the credentials are invalid or have expired.\n- When: the role lacks an action on the table, or its condition on keys does not fit: one with prefixes also refuses `Scan`.\n- Do: compare the role with the permissions (https://github.com/leasehold/leasehold/blob/main/docs/iam.md); the message names the action.",
  LEASE_THROTTLED:
    "`LeaseServiceError`\n\n- Means: DynamoDB has too many requests, or this client's own requests wait too long behind renewals.\n- When: the table's capacity or an item's 1,000 writes a second are used up.\n- Do: try again later; use more keys, or on-demand capacity. A held lease stays held until its deadline.",
  LEASE_CONFLICT:
    "`LeaseServiceError`\n\n- Means: another write of the same item was under way, again and again.\n- When: transactions meet on a lock's item, an operator and a worker on a task, or two processes renew one lease.\n- Do: try again.",
  LEASE_SERVICE_FAILED:
    "`LeaseServiceError`\n\n- Means: DynamoDB failed to serve the request, also after retries. A write may have landed (`mayHaveLanded`).\n- When: it answers with a status of 500 or above.\n- Do: try again later. A lock that was taken without an answer frees itself.",
  LEASE_NO_ANSWER:
    "`LeaseServiceError`\n\n- Means: no complete answer came in time. A write may have landed (`mayHaveLanded`).\n- When: the network fails, or a lease is shorter than an answer takes.\n- Do: check the endpoint, the network and the VPC's route to DynamoDB; lengthen `leaseDurationMs` if it is below a second.",
  LEASE_REQUEST_REJECTED:
    "`LeaseServiceError`\n\n- Means: DynamoDB refused the request, and will refuse it again.\n- When: an item grows beyond 400 KB, a key does not fit the table's indexes, or a proxy changes requests or answers them itself.\n- Do: read the reason in brackets; check the endpoint and proxies. Else report it.",
};
