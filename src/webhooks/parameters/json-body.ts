/** Formats times, ids and numbers as GitCode writes them in bodies. */
import { createHash } from 'node:crypto';
import { clampSeconds } from '../events/event-limits.ts';

export function toBytes(body: object): Uint8Array {
  return Buffer.from(JSON.stringify(body));
}

/** 32 hex digits of a delivery that look random to a receiver, and are the same whenever the delivery is rendered. */
export function randomHexOf(deliveryUuid: string): string {
  return createHash('sha256').update(deliveryUuid).digest('hex').slice(0, 32);
}

export function asUuid(hex: string): string {
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-4${hex.slice(13, 16)}-a${hex.slice(17, 20)}-${hex.slice(20, 32)}`;
}

/** `2026-11-21T06:24:33Z`: UTC without fractions. */
export function toUtcSeconds(time: string): string {
  return `${new Date(clampSeconds(Date.parse(time) / 1000) * 1000).toISOString().slice(0, 19)}Z`;
}

/** `2026-11-21T06:24:33+00:00`: UTC as a numeric offset. */
export function toOffsetTime(timeMs: number): string {
  return `${new Date(timeMs).toISOString().slice(0, 19)}+00:00`;
}

/** Keeps the offset of a time; `Z` becomes `+00:00`. */
export function withOffset(time: string): string {
  return time.replace(/[zZ]$/, '+00:00');
}
