/** Counts attempts to send a mail by their result, and the waiting mails. */
import { Counter, Gauge } from 'prom-client';
import type { Store } from '../database/store.ts';
import type { Metrics } from '../telemetry/metrics.ts';
import { countWaitingMails } from './mail-store.ts';

/** sent: the mail server accepted it. deferred: it is retried. refused: the server rejected it for good. expired: its lifetime is over. */
export type MailOutcome = 'sent' | 'deferred' | 'refused' | 'expired';

/** Returns the function that counts an attempt. */
export function createMailMetrics(metrics: Metrics, store: Store): (outcome: MailOutcome) => void {
  const registers = [metrics];
  const mails = new Counter({
    name: 'trivet_mails_total',
    help: 'Attempts to send a mail, by what came of them.',
    labelNames: ['outcome'],
    registers,
  });
  new Gauge({
    name: 'trivet_mails_waiting',
    help: 'Mails that wait to be sent, of all processes on the database; counted up to 10,000.',
    registers,
    async collect() {
      this.set(await countWaitingMails(store));
    },
  });
  return (outcome) => mails.inc({ outcome });
}
