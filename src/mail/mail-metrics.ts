/** Counts attempts to send a mail by what came of them, and the mails that wait. */
import { Counter, Gauge } from 'prom-client';
import type { Store } from '../database/store.ts';
import type { Metrics } from '../telemetry/metrics.ts';
import { countWaitingMails } from './mail-store.ts';

/** sent: the mail server took it. deferred: it is tried again. refused: the server never takes it. expired: its time was over. */
export type MailOutcome = 'sent' | 'deferred' | 'refused' | 'expired';

/** Returns what counts an attempt. */
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
