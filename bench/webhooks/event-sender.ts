/** Sends events at a fixed rate, independent of the answers, on open connections, as a code host that has been sending for a while. */
import { Pool } from 'undici';
import { numberedPush } from '../../test/support/webhooks/publishing-service.ts';
import { callAtRate } from '../support/call-at-rate.ts';

const CONNECTIONS = 64;

export interface Post {
  /** Of its delivery, if it has one. */
  readonly uuid: string | undefined;
  /** Milliseconds after the first post of the same call. */
  readonly sinceStartMs: number;
  /** When it was due, so that a delay of the sender counts too. */
  readonly postedAtMs: number;
  /** When the head of the answer arrived. */
  readonly answeredAtMs: number;
}

export interface EventSender {
  /** Returns the accepted posts once all are answered. */
  post(paths: readonly string[], perSecond: number, seconds: number): Promise<Post[]>;
  close(): Promise<void>;
}

/** Events of one repository go to each of the URLs in turn. */
export function createEventSender(urls: readonly string[], token: string): EventSender {
  const pools = urls.map((url) => new Pool(url, { connections: CONNECTIONS / urls.length }));
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
  const postOne = async (
    path: string,
    number: number,
    turn: number,
    dueMs: number,
  ): Promise<Omit<Post, 'sinceStartMs'> | undefined> => {
    const body = JSON.stringify(numberedPush(number));
    const response = await pools[turn % pools.length]!.request({ method: 'POST', path, headers, body });
    const answeredAtMs = readClock();
    const answer = (await response.body.json()) as { deliveries?: { uuid: string }[] };
    if (response.statusCode !== 202) return undefined;
    return { uuid: answer.deliveries?.[0]?.uuid, postedAtMs: performance.timeOrigin + dueMs, answeredAtMs };
  };
  return {
    post: async (paths, perSecond, seconds) => {
      const waiting: ReturnType<typeof postOne>[] = [];
      const startMs = readClock();
      await callAtRate({ perSecond, count: perSecond * seconds }, (dueMs, number) => {
        waiting.push(postOne(paths[number % paths.length]!, number, Math.floor(number / paths.length), dueMs));
      });
      const answered = (await Promise.all(waiting)).filter((one) => one !== undefined);
      return answered.map((one) => ({ ...one, sinceStartMs: one.postedAtMs - startMs }));
    },
    close: async () => void (await Promise.all(pools.map((pool) => pool.close()))),
  };
}

function readClock(): number {
  return performance.timeOrigin + performance.now();
}
