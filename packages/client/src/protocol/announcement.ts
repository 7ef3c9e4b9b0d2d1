import type { LeaseRecord } from "../record.ts";
import type { ProtocolContext } from "./context.ts";
import type { Takeover } from "./lease-form.ts";

/** Publishes that a lock was acquired, and for a takeover its last holder. */
export function announceGrant(
  { publish }: ProtocolContext,
  { key, sortKey, owner, fencingToken, expiresAt }: LeaseRecord,
  takeovers: readonly Takeover[],
  waitedMs: number,
): void {
  const subject = { key, sortKey, owner, fencingToken };
  for (const { reason, from: before } of takeovers) {
    const from = { owner: before.owner, fencingToken: before.fencingToken, expiresAt: before.expiresAt };
    publish({ type: "takeover", ...subject, reason, from });
  }
  publish({ type: "acquired", ...subject, waitedMs: Math.round(waitedMs), expiresAt });
}

/** Returns a function that publishes `contended` once for each lease that blocks one call. */
export function contentionOf(
  { publish }: ProtocolContext,
  owner: string,
): (record: LeaseRecord | undefined) => void {
  const told = new Set<string>();
  return (record) => {
    if (record === undefined) return;
    const { key, sortKey, owner: holder, expiresAt, inCooldown } = record;
    const id = JSON.stringify([key, sortKey]);
    if (!told.has(id)) publish({ type: "contended", key, sortKey, owner, holder, expiresAt, inCooldown });
    told.add(id);
  };
}
