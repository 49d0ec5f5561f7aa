/** Reads a request body part by part, and can hold it until there is memory. */
import type { IncomingMessage } from 'node:http';

/** A request that can be held: nothing more of it is read until it goes on. */
export interface HeldRequest extends IncomingMessage {
  /** Returns false when it is held already. */
  hold(): boolean;
  goOn(): void;
}

/** The parts of a body, one after the other. */
export interface BodyParts {
  /** Undefined after the last. Rejects when the connection ends before. */
  next(): Promise<Uint8Array | undefined>;
}

/**
 * Parts as Node hands them out. By way of a stream of the web each would be copied, and both streams would keep 64 KiB ahead that no
 * budget counts. Reads nothing before the first part is asked for, and no further read of the socket before the next one.
 */
export function readIncomingParts(incoming: HeldRequest): BodyParts {
  /** One read of the socket has many chunks. */
  const parts: Buffer[] = [];
  let isBegun = false;
  let isOver = false;
  let failure: unknown;
  /** The reader of a body that has given way may still wait when its rest is discarded. */
  const waiting: (() => void)[] = [];

  function wake(): void {
    for (const read of waiting.splice(0)) read();
  }

  function end(error?: unknown): void {
    if (isOver) return;
    isOver = true;
    failure = error;
    wake();
  }

  function begin(): void {
    isBegun = true;
    // Its events are past.
    if (incoming.destroyed) {
      end(incoming.errored ?? endedEarly());
      return;
    }
    incoming.on('data', (part: Buffer) => {
      parts.push(part);
      incoming.hold();
      wake();
    });
    incoming.once('end', () => end());
    incoming.once('error', end);
    incoming.once('close', () => end(incoming.errored ?? endedEarly()));
  }

  function goOn(): void {
    if (isBegun) incoming.goOn();
    else begin();
  }

  return {
    async next() {
      while (parts.length === 0 && !isOver) {
        const { promise, resolve } = Promise.withResolvers<void>();
        waiting.push(resolve);
        goOn();
        await promise;
      }
      const part = parts.shift();
      if (part === undefined && failure !== undefined) throw failure;
      return part;
    },
  };
}

function endedEarly(): Error {
  return Object.assign(new Error('The connection ended before the body'), { code: 'ECONNRESET' });
}

/** Reads the body of a request that did not come through a listener of ours. */
export function readWebParts(body: ReadableStream<Uint8Array>): BodyParts {
  const reader = body.getReader();
  return { next: async () => (await reader.read()).value };
}
