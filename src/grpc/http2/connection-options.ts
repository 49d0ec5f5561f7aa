/** Declares what a connection shares with all others of the server, and what it reports to it. */
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
  /** A request whose head is complete; its data follows through `stream.onData`. It must be refused without headers: they are too large. */
  readonly onRequest: (stream: Http2Stream, headers: Headers | undefined) => void;
  /** Something threw that should not have: the connection ends, the program goes on. */
  readonly onFault: (error: unknown) => void;
  /** Another client got the place of the connection. */
  readonly onEvicted: () => void;
  readonly onClosed: () => void;
}
