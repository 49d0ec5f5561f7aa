/** Reads a request body part by part, and can hold it until there is memory. */
import type { IncomingMessage } from 'node:http';

/** A request that can be held: its body is read no further until `goOn`. */
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
 * Parts as Node emits them. A web stream would copy each part, and both streams would buffer 64 KiB ahead that no budget counts.
 * Reads nothing before the first part is requested, and reads the socket again only when the next part is requested.
 */
export function readIncomingParts(incoming: HeldRequest): BodyParts {
  /** One read of the socket has many chunks. */
  const parts: Buffer[] = [];
  let isBegun = false;
  let isOver = false;
  let failure: unknown;
  /** The reader of a dropped body may still wait when the rest of the body is discarded. */
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
    // Its events were emitted already.
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

/** Reads the body of a request that did not come through one of our listeners. */
export function readWebParts(body: ReadableStream<Uint8Array>): BodyParts {
  const reader = body.getReader();
  return { next: async () => (await reader.read()).value };
}
