/** Declares the operations on deliveries of all webhooks: list, show, test, redeliver, replay. */
import { z } from '@hono/zod-openapi';
import { describeOperation } from '../../operations/operation.ts';
import { DELIVERY_STATES } from '../delivery/schedule/delivery.ts';
import { attemptJson, deliveryDetailJson, listedDeliveryJson } from '../management/delivery-json.ts';
import { listParameters, replayParameters } from '../management/manage-delivery.ts';
import { testParameters } from '../management/test-hook.ts';
import { ofHook } from './hook-operations.ts';

const about = { tag: 'All webhooks', scope: 'admin:hooks' } as const;
const ofDelivery = ofHook.extend({
  delivery: z.string().max(40).openapi({ description: 'The id, or the UUID that the receiver saw' }),
});
const sentSchema = z
  .object({
    delivery: z.int().openapi({ description: 'Id of the delivery' }),
    state: z.enum(DELIVERY_STATES).openapi({ description: 'Its state after the attempt' }),
    accepted: z.boolean().openapi({ description: 'The receiver took it' }),
    attempt: attemptJson.nullable().openapi({ description: 'null: it is held, or waits for its turn' }),
  })
  .openapi('SentDelivery');

export const testAnyHook = describeOperation({
  ...about,
  name: 'testAnyHook',
  method: 'post',
  path: '/hooks/{id}/test',
  summary: 'Send a test delivery now, also during a pause, and return the outcome; if it is accepted, the pause ends',
  input: ofHook.extend(testParameters.shape),
  output: sentSchema,
});
export const listDeliveries = describeOperation({
  ...about,
  name: 'listAnyDeliveries',
  method: 'get',
  path: '/hooks/{id}/deliveries',
  summary: 'List the deliveries of a webhook, newest first',
  input: ofHook.extend(listParameters.omit({ id: true, page: true }).shape),
  output: z
    .object({
      deliveries: z.array(listedDeliveryJson),
      next: z.int().nullable().openapi({ description: '`before` of the following page' }),
    })
    .openapi('AnyDeliveriesPage'),
});
export const showDelivery = describeOperation({
  ...about,
  name: 'showAnyDelivery',
  method: 'get',
  path: '/hooks/{id}/deliveries/{delivery}',
  summary: 'Show a delivery with every attempt',
  input: ofDelivery,
  output: deliveryDetailJson,
});
export const redeliver = describeOperation({
  ...about,
  name: 'redeliverAny',
  method: 'post',
  path: '/hooks/{id}/deliveries/{delivery}/redeliver',
  summary: 'Send a delivery again now, and return the outcome; if it is refused, a new schedule of attempts begins',
  input: ofDelivery,
  output: sentSchema,
});
export const sendAllWaiting = describeOperation({
  ...about,
  name: 'sendWaitingOfAnyHook',
  method: 'post',
  path: '/hooks/{id}/send-waiting',
  summary: 'Send all deliveries now that wait for a retry or the end of a pause',
  input: ofHook,
  output: z.object({ id: z.int(), waiting: z.int() }).openapi('SentWaiting'),
  takesLong: true,
});
export const replayDeliveries = describeOperation({
  ...about,
  name: 'replayAnyHook',
  method: 'post',
  path: '/hooks/{id}/replay',
  summary: 'Send all deliveries again that failed permanently since a time',
  input: ofHook.extend(replayParameters.shape),
  output: z.object({ id: z.int(), replayed: z.int() }).openapi('ReplayedDeliveries'),
  takesLong: true,
});
