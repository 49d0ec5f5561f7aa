/** Declares the calls that may never end, which a drain ends early. */
import type { Linked } from '../../memory/linked-queue.ts';

/** Streams that may never end; a drain ends them early. */
export interface EndlessCall extends Linked<EndlessCall> {
  stop(): void;
}
