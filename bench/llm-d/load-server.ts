/** Opens connections that each send the next call when the last one is answered, as a router under load does. */
import { readFileSync } from 'node:fs';
import { Agent, request } from 'node:http';
import { createRows } from './rows.ts';
import type { FieldServers } from './servers.ts';

export interface Load {
  readonly rows: number;
  readonly durationMs: number;
  readonly connections: number;
}

export interface Reading {
  readonly rowsPerSecond: number;
  /** By the processor time of the server, all its threads. */
  readonly rowsPerCpuSecond: number;
  readonly cpuMillisPerCall: number;
}

export async function loadServer(
  { url, pid }: FieldServers,
  { rows, durationMs, connections }: Load,
): Promise<Reading> {
  const agent = new Agent({ keepAlive: true, maxSockets: connections });
  const bodies = Array.from({ length: 16 }, (_, i) => Buffer.from(JSON.stringify({ requests: createRows(rows, i) })));
  const endsAt = performance.now() + durationMs;
  const cpuBefore = readCpuSeconds(pid);
  const startedMs = performance.now();
  let calls = 0;
  async function keepCalling(first: number): Promise<void> {
    for (let i = first; performance.now() < endsAt; i++) {
      await post(`${url}/predict/bulk/strict`, { body: bodies[i % bodies.length]!, agent, rows });
      calls += 1;
    }
  }
  await Promise.all(Array.from({ length: connections }, (_, i) => keepCalling(i)));
  const seconds = (performance.now() - startedMs) / 1000;
  const cpuSeconds = readCpuSeconds(pid) - cpuBefore;
  agent.destroy();
  return {
    rowsPerSecond: (calls * rows) / seconds,
    rowsPerCpuSecond: (calls * rows) / cpuSeconds,
    cpuMillisPerCall: (1000 * cpuSeconds) / calls,
  };
}

interface Post {
  readonly body: Buffer;
  readonly agent: Agent;
  readonly rows: number;
}

/** Counts the answer without parsing it, so that the callers' core is not the bottleneck. */
function post(url: string, { body, agent, rows }: Post): Promise<void> {
  return new Promise((resolve, reject) => {
    const isFull = new RegExp(`"successful_predictions": ?${rows},`);
    const headers = { 'Content-Type': 'application/json', 'Content-Length': body.length };
    const call = request(url, { method: 'POST', agent, headers }, (response) => {
      let end = '';
      response.on('data', (chunk: Buffer) => {
        end = (end + chunk.subarray(-200).toString('latin1')).slice(-200);
      });
      response.on('end', () => {
        if (response.statusCode === 200 && isFull.test(end)) resolve();
        else reject(new Error(`Answered ${response.statusCode}: ${end}`));
      });
    });
    call.on('error', reject);
    call.end(body);
  });
}

const TICKS_A_SECOND = 100;

function readCpuSeconds(pid: number): number {
  const [user, system] = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]!.split(' ').slice(11, 13).map(Number);
  return (user! + system!) / TICKS_A_SECOND;
}
