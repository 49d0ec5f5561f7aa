/** Exposes metrics of deliveries: attempts, durations, delays, pending and paused ones, breakers. */
import { Counter, Gauge, Histogram } from 'prom-client';
import type { Metrics } from '../../../telemetry/metrics.ts';
import type { Breaker } from '../schedule/breaker.ts';
import { PAUSE_REASONS, type PauseReason } from '../schedule/pause-reason.ts';

export interface DeliveryMetrics {
  countAttempt(outcome: string, seconds: number): void;
  /** Observes the time from the commit of a delivery to its first attempt, except for tests, redeliveries and replays. */
  observeDelay(seconds: number): void;
}

interface Sources {
  readonly countPending: () => Promise<number>;
  readonly countUnderWay: () => number;
  readonly listOriginBreakers: () => Iterable<Breaker>;
  readonly countPaused: () => Promise<ReadonlyMap<PauseReason, number>>;
}

export function createDeliveryMetrics(metrics: Metrics, sources: Sources): DeliveryMetrics {
  const registers = [metrics];
  const attempts = new Counter({
    name: 'trivet_delivery_attempts_total',
    help: 'Attempts to deliver, by outcome.',
    labelNames: ['outcome'],
    registers,
  });
  const duration = new Histogram({
    name: 'trivet_delivery_attempt_duration_seconds',
    help: 'How long an attempt took, from name resolution to the end of the answer.',
    buckets: [0.005, 0.02, 0.1, 0.5, 1, 2, 5, 10, 15],
    registers,
  });
  const delay = new Histogram({
    name: 'trivet_delivery_send_delay_seconds',
    help: 'Time from the commit of a delivery to its first attempt, except for tests, redeliveries and replays.',
    buckets: [0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.5, 1, 5, 60, 300, 1800],
    registers,
  });
  addGauges(registers, sources);
  return {
    countAttempt: (outcome, seconds) => {
      attempts.inc({ outcome });
      duration.observe(seconds);
    },
    observeDelay: (seconds) => delay.observe(seconds),
  };
}

function addGauges(registers: Metrics[], sources: Sources): void {
  new Gauge({
    name: 'trivet_deliveries_pending',
    help: 'Deliveries that wait, held ones too; counted up to 100,000.',
    registers,
    async collect() {
      this.set(await sources.countPending());
    },
  });
  new Gauge({
    name: 'trivet_deliveries_under_way',
    help: 'Deliveries of this process that are sent or whose result is not yet stored.',
    registers,
    collect() {
      this.set(sources.countUnderWay());
    },
  });
  new Gauge({
    name: 'trivet_delivery_paused_webhooks',
    help: 'Webhooks to which nothing is sent for a while, by the reason.',
    labelNames: ['reason'],
    registers,
    async collect() {
      const counts = await sources.countPaused();
      for (const reason of PAUSE_REASONS) this.set({ reason }, counts.get(reason) ?? 0);
    },
  });
  new Gauge({
    name: 'trivet_delivery_breakers',
    help: 'Destinations of this process whose breaker is not closed, by its state.',
    labelNames: ['state'],
    registers,
    collect() {
      const counts = { open: 0, probing: 0, ramping: 0 };
      for (const breaker of sources.listOriginBreakers()) {
        if (breaker.state !== 'closed') counts[breaker.state] += 1;
      }
      for (const [state, count] of Object.entries(counts)) this.set({ state }, count);
    },
  });
}
