/** Implements the operations on deliveries of all repositories. */
import { Failure } from '../../errors.ts';
import { type Implementation, implement } from '../../operations/operation.ts';
import {
  describeSent,
  listDeliveryPage,
  readDelivery,
  replayFrom,
  sendAgainNow,
  sendWaiting,
} from '../management/manage-delivery.ts';
import type { SendingDependencies } from '../management/management.ts';
import { testHook } from '../management/test-hook.ts';
import {
  listDeliveries,
  redeliver,
  replayDeliveries,
  sendAllWaiting,
  showDelivery,
  testAnyHook,
} from './delivery-operations.ts';
import { findAnyHook } from './find-hook.ts';

export function implementDeliveries(management: SendingDependencies): Implementation[] {
  return [
    implement(testAnyHook, async ({ event, ...reference }, { actor }) => {
      const { repository, stored } = await findAnyHook(management, reference);
      const deliveryId = await testHook(management, { caller: actor, repository, stored, event });
      const sent = await describeSent(management, stored.hook, { deliveryId, isAttempted: true });
      if (sent.attempt !== null) return sent;
      throw new Failure(
        'unavailable',
        `Cannot send to the webhook: nothing was sent yet, delivery ${deliveryId} waits`,
      );
    }),
    implement(listDeliveries, async ({ id, repository, ...filter }) => {
      const { stored } = await findAnyHook(management, { id, repository });
      const page = await listDeliveryPage(management, stored.hook.id, { ...filter, page: 1 });
      return { deliveries: [...page.deliveries], next: page.nextBefore ?? null };
    }),
    implement(showDelivery, async ({ delivery, ...reference }) => {
      const { stored } = await findAnyHook(management, reference);
      return await readDelivery(management, stored.hook.id, delivery);
    }),
    implement(redeliver, async ({ delivery, ...reference }) => {
      const { stored } = await findAnyHook(management, reference);
      return await sendAgainNow(management, stored.hook, delivery);
    }),
    implement(sendAllWaiting, async (reference) => {
      const { stored } = await findAnyHook(management, reference);
      return { id: stored.hook.id, waiting: await sendWaiting(management, stored.hook) };
    }),
    implement(replayDeliveries, async ({ since, ...reference }) => {
      const { stored } = await findAnyHook(management, reference);
      return { id: stored.hook.id, replayed: await replayFrom(management, stored.hook, since) };
    }),
  ];
}
