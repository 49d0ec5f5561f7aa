/**
 * A budget of memory for the bodies of all requests. Bytes are counted as they arrive, not as a client announces them. When the
 * budget is used up, the unfinished body that began first is dropped: a client that sends without a pause has finished long before.
 */
import { Failure } from '../../errors.ts';

export interface BodyBudget {
  /** Counts one body from now on. `giveWay` is called at most once: then its bytes are to be dropped, and no longer count. */
  open(giveWay: (refusal: Failure) => void): CountedBody;
}

export interface CountedBody {
  /** Counts bytes that have arrived. This body or others may have to give way. */
  add(bytes: number): void;
  /** The body has arrived completely, and is not dropped any more. */
  complete(): void;
  /** It is no longer in memory. */
  close(): void;
}

/** As much as 10 bodies of 10,000 rows of llm-d. With what garbage they leave, the process stays below 400 MB. */
const MAX_BYTES = 67_108_864;
/** Smaller bodies are not counted: one on each possible connection takes as much as 16 large ones together. */
const SMALL_BYTES = 16 * 1024;

/** Undefined as length: the body comes in chunks. */
export function isCounted(contentLength: string | undefined): boolean {
  return contentLength === undefined || Number(contentLength) > SMALL_BYTES;
}

/** A body larger than the whole budget is accepted while no other body arrives. */
export function createBodyBudget(maxBytes = MAX_BYTES): BodyBudget {
  let usedBytes = 0;
  /** The oldest first. */
  const arriving = new Set<OpenBody>();

  function drop(body: OpenBody): void {
    arriving.delete(body);
    usedBytes -= body.bytes;
    body.bytes = 0;
    body.isOpen = false;
  }

  function makeRoom(): void {
    for (const body of arriving) {
      if (usedBytes <= maxBytes || usedBytes === body.bytes) return;
      // One that has not begun would make no room.
      if (body.bytes === 0) continue;
      drop(body);
      body.giveWay(refuseFull());
    }
  }

  return {
    open(giveWay) {
      const body: OpenBody = { bytes: 0, isOpen: true, giveWay };
      arriving.add(body);
      return {
        add(bytes) {
          if (!body.isOpen) return;
          body.bytes += bytes;
          usedBytes += bytes;
          makeRoom();
        },
        complete: () => void arriving.delete(body),
        close: () => drop(body),
      };
    },
  };
}

interface OpenBody {
  bytes: number;
  isOpen: boolean;
  readonly giveWay: (refusal: Failure) => void;
}

function refuseFull(): Failure {
  return new Failure('unavailable', 'Cannot read the request: too many large bodies arrive at once', {
    retryAfterSeconds: 1,
  });
}
