/**
 * Creates the UUID of a delivery, the same at every attempt, by which a receiver finds duplicates. It contains the time, so that the
 * log finds a delivery by its UUID without an index, which would cost one more written page for every delivery.
 */
import type { Period } from '../log/log-windows-store.ts';

export function createDeliveryUuid(nowMs: number, random: Uint8Array): string {
  const bytes = Buffer.alloc(16);
  bytes.writeUIntBE(nowMs, 0, 6);
  bytes.set(random.subarray(0, 10), 6);
  bytes[6] = 0x70 | ((bytes[6] ?? 0) & 0x0f);
  bytes[8] = 0x80 | ((bytes[8] ?? 0) & 0x3f);
  const hex = bytes.toString('hex');
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join('-');
}

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-([0-9a-f])[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}$/;

export function isUuid(text: string): boolean {
  return UUID.test(text);
}

/** A delivery is stored soon after its UUID is created; the rest of this time allows for clocks that were set. */
const TOLERANCE_MS = 60_000;

/** The period in which a delivery of this UUID was created; unlimited for another UUID version, which old deliveries have. */
export function periodOfUuid(uuid: string): Period {
  if (UUID.exec(uuid)?.[1] !== '7') return { sinceMs: 0, untilMs: Number.MAX_SAFE_INTEGER };
  const ms = Number.parseInt(uuid.slice(0, 8) + uuid.slice(9, 13), 16);
  return { sinceMs: ms - TOLERANCE_MS, untilMs: ms + TOLERANCE_MS };
}
