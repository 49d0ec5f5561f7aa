/** Declares the parts that all connections of a server share, and the events that a connection reports. */
import type { NetworkUse } from '../../connections/network-use.ts';
import type { CountGarbage } from '../../memory/garbage.ts';
import type { BufferPool } from '../budget/buffer-pool.ts';
import type { LargeMessages } from '../budget/large-messages.ts';
import type { MemoryBudget } from '../budget/memory-budget.ts';
import type { Turns } from '../budget/turns.ts';
import type { Headers } from './request-head.ts';
import type { Http2Stream } from './stream.ts';

export interface ConnectionOptions {
  readonly monotonicMs: () => number;
  readonly bufferPool: BufferPool;
  readonly turns: Turns;
  readonly memory: MemoryBudget;
  readonly network: NetworkUse;
  readonly largeMessages: LargeMessages;
  readonly countGarbage: CountGarbage;
  /** Called when the head of a request is complete; data follows in `stream.onData`. Without `headers` (too large) it must be refused. */
  readonly onRequest: (stream: Http2Stream, headers: Headers | undefined) => void;
  /** Called with an unexpected error: the connection ends, the program continues. */
  readonly onFault: (error: unknown) => void;
  /** Called when another client got the place of the connection. */
  readonly onEvicted: () => void;
  readonly onClosed: () => void;
}
