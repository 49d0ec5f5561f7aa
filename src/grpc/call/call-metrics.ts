/** Counts the calls of one method by status code. */
import { Counter } from 'prom-client';
import type { Metrics } from '../../telemetry/metrics.ts';
import { statusNameOf } from '../protocol/status.ts';

/** Counts the calls of one method by status code. */
export type CountCall = (code: number) => void;

/**
 * `trivet_grpc_calls_total`. Calls are counted in plain arrays and handed to the registry on each scrape:
 * a labelled counter hashes its labels on every call.
 */
export function createCallCounter(metrics: Metrics): (service: string, method: string) => CountCall {
  const rows: { readonly service: string; readonly method: string; readonly counts: number[] }[] = [];
  new Counter({
    name: 'trivet_grpc_calls_total',
    help: 'gRPC calls that ended, by status code.',
    labelNames: ['service', 'method', 'code'],
    registers: [metrics],
    collect() {
      this.reset();
      for (const { service, method, counts } of rows)
        for (const [code, count] of counts.entries())
          if (count > 0) this.inc({ service, method, code: statusNameOf(code) }, count);
    },
  });
  return (service, method) => {
    const counts = Array.from({ length: 17 }, () => 0);
    rows.push({ service, method, counts });
    return (code) => {
      counts[code]! += 1;
    };
  };
}
