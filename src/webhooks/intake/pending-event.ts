/** Declares an event between its arrival and its commit, and the outcomes of storing it. */
import type { Store } from '../../database/store.ts';
import type { Log } from '../../telemetry/log.ts';
import type { World } from '../../world.ts';
import type { CommittedDelivery } from '../delivery/queue/committed-delivery.ts';
import type { EnqueueVersions } from '../delivery/queue/delivery-store.ts';
import type { EarlierEvent } from './event-batch-store.ts';
import type { EventReceipt } from './event-receipt.ts';
import type { IncomingEvent, PreparedEvent, TargetHooks } from './prepare-event.ts';

export interface IntakeDependencies {
  readonly store: Store;
  readonly world: World;
  readonly log: Log;
  /** Called with the deliveries of each commit, except those that are due later. */
  readonly onCommitted: (committed: readonly CommittedDelivery[], versions: EnqueueVersions) => void;
}

/** An event that waits for its commit. */
export interface PendingEvent {
  readonly incoming: IncomingEvent;
  /** Undefined until the hooks that subscribe to it are read. */
  readonly targetHooks: TargetHooks | undefined;
  /** The event as JSON. */
  readonly content: string;
  /** Set only for a large event, whose bodies are stored already. */
  readonly prepared?: PreparedEvent;
}

export type StoreOutcome =
  | { readonly receipt: EventReceipt }
  /** An earlier event has its idempotency key; nothing of this one is stored. */
  | { readonly earlier: EarlierEvent }
  /** The bodies for these webhooks exceed one commit. Nothing is stored yet; the bodies have to be stored in parts. */
  | { readonly needsPartsFor: TargetHooks };
