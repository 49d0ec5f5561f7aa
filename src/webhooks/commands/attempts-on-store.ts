/** Makes the attempts of a command (test, redelivery) in its own process, with a worker that stops after them. */
import type { CliStore } from '../../command-line/open-cli-store.ts';
import { createMetrics } from '../../telemetry/metrics.ts';
import type { AddressGuard } from '../addresses/address-guard.ts';
import { readAuthorities } from '../delivery/send/delivery-authorities.ts';
import { createDeliveryMinutes } from '../delivery/statistics/delivery-minutes-worker.ts';
import { createDeliveryWorker, type DeliveryWorker } from '../delivery/worker/delivery-worker.ts';

export function createAttemptsOnStore(cli: CliStore, guard: AddressGuard): DeliveryWorker['manual'] {
  const withWorker = async <T>(work: (worker: DeliveryWorker) => Promise<T>): Promise<T> => {
    const ca = readAuthorities(cli.config.webhooks.caFile);
    const minutes = createDeliveryMinutes(cli);
    const worker = createDeliveryWorker({ ...cli, metrics: createMetrics(), guard, ca, onAttempt: minutes.count });
    try {
      return await work(worker);
    } finally {
      await worker.stop();
      await minutes.stop();
    }
  };
  return {
    test: (deliveryId, deadlineMs) => withWorker(({ manual }) => manual.test(deliveryId, deadlineMs)),
    redeliver: (hookId, deliveryId) =>
      withWorker(async ({ manual }) => {
        const redelivery = await manual.redeliver(hookId, deliveryId);
        const report = await redelivery?.attempt;
        return redelivery && { attempt: Promise.resolve(report) };
      }),
  };
}
