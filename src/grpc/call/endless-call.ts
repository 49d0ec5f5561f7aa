import type { Linked } from '../budget/linked-queue.ts';

/** What may go on for ever, so that a drain ends it early. */
export interface EndlessCall extends Linked<EndlessCall> {
  stop(): void;
}
