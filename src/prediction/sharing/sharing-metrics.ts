/** Exposes the progress of sharing as metrics: rows, bytes, delay, pending groups. */
import { Counter, Gauge, Histogram } from 'prom-client';
import type { Metrics } from '../../telemetry/metrics.ts';
import type { AppliedRow, SharedLearning } from './shared-learning.ts';

type Counted = Pick<SharedLearning, 'sequence' | 'countPending'>;

/** Returns the function that counts a row. */
export function createSharingMetrics(metrics: Metrics, learning: Counted): (row: AppliedRow) => void {
  const registers = [metrics];
  new Gauge({
    name: 'trivet_prediction_shared_sequence',
    help: 'The last row of the shared log (what processes have learned) that this process has applied. Processes with the same number and nothing pending give the same answers.',
    registers,
    collect() {
      this.set(learning.sequence);
    },
  });
  new Gauge({
    name: 'trivet_prediction_shared_pending_groups',
    help: 'Groups of sums with reports that this process received and other processes do not know yet.',
    registers,
    collect() {
      this.set(learning.countPending());
    },
  });
  const rows = new Counter({
    name: 'trivet_prediction_shared_rows_total',
    help: 'Rows of the shared log, by whether this process wrote or only read them.',
    labelNames: ['writer'],
    registers,
  });
  const bytes = new Counter({
    name: 'trivet_prediction_shared_bytes_total',
    help: 'Bytes of these rows.',
    labelNames: ['writer'],
    registers,
  });
  const delays = new Histogram({
    name: 'trivet_prediction_shared_delay_seconds',
    help: 'Time from the first report of a row until this process applied the row, by the clocks of both processes.',
    labelNames: ['writer'],
    buckets: [0.25, 0.5, 0.75, 1, 1.25, 1.5, 2, 3, 5, 10, 30],
    registers,
  });
  return ({ isOwn, bytes: size, delayMs }) => {
    const labels = { writer: isOwn ? 'self' : 'other' };
    rows.inc(labels);
    bytes.inc(labels, size);
    delays.observe(labels, delayMs / 1000);
  };
}
