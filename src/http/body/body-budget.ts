/**
 * A budget of memory for the bodies of all requests. Bytes are counted as they arrive, not as a client announces them. When the
 * budget is used up, the unfinished body that began first is dropped: a client that sends without a pause has finished long before.
 * Those whose senders are not known yet come first, or strangers would keep out callers whose bodies take long to arrive.
 *
 * Bytes are copied into blocks of a pool, and those of a dropped body are used again: under attack hundreds of megabytes a
 * second arrive, and as garbage they would take as much memory again as the budget.
 */
import { Failure } from '../../errors.ts';
import { BlockPool } from '../../memory/block-pool.ts';
import { ByteQueue } from '../../memory/byte-queue.ts';
import type { NoteGarbage } from '../../memory/garbage.ts';

export interface BodyBudget {
  /** Counts one body from now on. `giveWay` is called at most once: then its bytes are dropped. */
  open(giveWay: (refusal: Failure) => void): CountedBody;
}

export interface CountedBody {
  /** Copies bytes that have arrived, unless the body was dropped. This body or others may have to give way. */
  add(bytes: Uint8Array): void;
  /** Its sender is not known before it is complete: it gives way before bodies of callers who were checked. */
  giveWayFirst(): void;
  /** The body has arrived completely, and is not dropped any more. Its bytes, which stay as they are. */
  complete(): Buffer;
  /** It is no longer in memory. */
  close(): void;
}

/** As much as 8 bodies of 10,000 rows of llm-d. */
const MAX_BYTES = 67_108_864;
/** Smaller bodies are not counted: one on each possible connection takes as much as 16 large ones together. */
const SMALL_BYTES = 16 * 1024;

/** Undefined as length: the body comes in chunks. */
export function isCounted(contentLength: string | undefined): boolean {
  return contentLength === undefined || Number(contentLength) > SMALL_BYTES;
}

export interface BodyBudgetOptions {
  /** 64 MiB unless given. */
  readonly maxBytes?: number | undefined;
  readonly noteGarbage?: NoteGarbage | undefined;
}

/** A body larger than the whole budget is accepted while no other body arrives. */
export function createBodyBudget({ maxBytes = MAX_BYTES, noteGarbage }: BodyBudgetOptions = {}): BodyBudget {
  const pool = new BlockPool();
  let usedBytes = 0;
  /** The oldest first. */
  const arriving = new Set<OpenBody>();

  function drop(body: OpenBody): void {
    arriving.delete(body);
    usedBytes -= body.heldBytes;
    body.heldBytes = 0;
    body.isOpen = false;
    body.bytes.clear();
  }

  function makeRoom(): void {
    if (usedBytes <= maxBytes) return;
    const strangers = [...arriving].filter((body) => body.givesWayFirst);
    for (const body of [...strangers, ...arriving]) {
      if (usedBytes <= maxBytes || usedBytes === body.heldBytes) return;
      // One that has not begun would make no room.
      if (body.heldBytes === 0) continue;
      drop(body);
      body.giveWay(refuseFull());
    }
  }

  function keep(body: OpenBody, bytes: Uint8Array): void {
    body.bytes.push(bytes);
    usedBytes += body.bytes.heldBytes - body.heldBytes;
    body.heldBytes = body.bytes.heldBytes;
    makeRoom();
  }

  return {
    open(giveWay) {
      const body: OpenBody = { bytes: new ByteQueue(pool), heldBytes: 0, isOpen: true, givesWayFirst: false, giveWay };
      arriving.add(body);
      return {
        add(bytes) {
          noteGarbage?.(bytes.length);
          if (body.isOpen) keep(body, bytes);
        },
        giveWayFirst() {
          body.givesWayFirst = true;
        },
        complete() {
          arriving.delete(body);
          return body.bytes.take(body.bytes.length);
        },
        close: () => drop(body),
      };
    },
  };
}

interface OpenBody {
  readonly bytes: ByteQueue;
  /** What it takes of the budget: the memory of its block, which is larger than what has arrived. */
  heldBytes: number;
  isOpen: boolean;
  givesWayFirst: boolean;
  readonly giveWay: (refusal: Failure) => void;
}

function refuseFull(): Failure {
  return new Failure('unavailable', 'Cannot read the request: too many large bodies arrive at once', {
    retryAfterSeconds: 1,
  });
}
