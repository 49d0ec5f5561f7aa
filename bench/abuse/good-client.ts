/** A well-behaved client: a call every few milliseconds, on a schedule, and an HTTP health check now and then. */
import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { connectRaw } from '../../test/support/grpc/grpc-client.ts';
import { createRequest } from '../predict/messages.ts';
import { PREDICT } from './attack.ts';

export interface Experience {
  readonly calls: number;
  readonly failures: number;
  /** A description of the first failure. */
  readonly failure: string | undefined;
  /** Calls during which the client itself waited for a core; percentiles leave them out. */
  readonly leftOut: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
}

export interface Service {
  readonly grpcAddress: string;
  readonly httpUrl: string;
}

export interface GoodClient extends Disposable {
  /** How long the client calls. */
  measure(durationMs: number): Promise<Experience>;
}

const EVERY_MS = 3;
const HTTP_EVERY = 33;
const DEADLINE_MS = 2000;
/** A call during which the client waited longer than this for a core says nothing about the service. */
const MAX_NO_CORE_MS = 0.2;

export function connectGoodClient(service: Service, token: string | undefined): GoodClient {
  const client = connectRaw(service.grpcAddress);
  const request = createRequest(16);
  const metadata: Record<string, string> = token === undefined ? {} : { authorization: `Bearer ${token}` };
  const ask = async (): Promise<void> =>
    void (await client.unary(PREDICT, request, { deadlineMs: DEADLINE_MS, metadata }));
  const look = async (): Promise<void> => {
    const response = await fetch(`${service.httpUrl}/healthz`, { signal: AbortSignal.timeout(DEADLINE_MS) });
    if (!response.ok) throw new Error(`HTTP ${response.status}`);
    await response.arrayBuffer();
  };
  return {
    measure: (durationMs) => measure(durationMs, ask, look),
    [Symbol.dispose]: () => client[Symbol.dispose](),
  };
}

async function measure(durationMs: number, ask: () => Promise<void>, look: () => Promise<void>): Promise<Experience> {
  const latencies: number[] = [];
  let leftOut = 0;
  const failures: unknown[] = [];
  const pending: Promise<void>[] = [];
  const startedMs = performance.now();
  for (let index = 0; index * EVERY_MS < durationMs; index++) {
    const dueMs = startedMs + index * EVERY_MS;
    const waitMs = dueMs - performance.now();
    if (waitMs > 0) await sleep(waitMs);
    // Counts from the actual send: a late timer of this process says nothing about the server.
    const sentMs = performance.now();
    const noCoreMs = readNoCoreMs();
    const call = ask().then(() => {
      if (readNoCoreMs() - noCoreMs > MAX_NO_CORE_MS) leftOut++;
      else latencies.push(performance.now() - sentMs);
    });
    pending.push(call.catch((error: unknown) => void failures.push(error)));
    if (index % HTTP_EVERY === 0) pending.push(look().catch((error: unknown) => void failures.push(error)));
  }
  await Promise.all(pending);
  latencies.sort((a, b) => a - b);
  const at = (share: number): number => latencies[Math.floor(share * latencies.length)] ?? Number.POSITIVE_INFINITY;
  return {
    calls: pending.length,
    failures: failures.length,
    failure: failures.length === 0 ? undefined : String(failures[0]),
    leftOut,
    p50Ms: at(0.5),
    p99Ms: at(0.99),
  };
}

/** How long the main thread of this process was ready to run but had no core, since its start. */
function readNoCoreMs(): number {
  const nanoseconds = readFileSync(`/proc/self/task/${process.pid}/schedstat`, 'utf8').split(' ')[1];
  return Number(nanoseconds) / 1e6;
}
