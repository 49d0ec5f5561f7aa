/** Creates the registry of metrics that `/metrics` serves (Prometheus). */
import { collectDefaultMetrics, Registry } from 'prom-client';

/** One registry per program, handed to the parts that count something; served at `/metrics`. */
export type Metrics = Registry;

export function createMetrics(): Metrics {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  return registry;
}
