/** The calls of a service load: each is sent to one process after the other until one answers. */
import { setTimeout as sleep } from 'node:timers/promises';
import { type Answer, request } from '../authorization/authorization-server.ts';
import type { Program } from '../programs/start-program.ts';

export interface CallLoad {
  /** The processes that take calls now; the list may change. */
  readonly programs: readonly Program[];
  readonly underWay: Set<Promise<Answer>>;
  readonly counts: { readonly repeated: Map<string, number> };
  /** Counts the calls. */
  turn: number;
}

/** How long callers wait between two tries, and between two checks of the counts of the load. */
export const RETRY_MS = 100;
const CALL_TIMEOUT_MS = 30_000;

function nextUrl(state: CallLoad): string {
  state.turn += 1;
  return state.programs[state.turn % state.programs.length]!.httpUrl;
}

export type FinalAnswer = Pick<Answer, 'status' | 'text'> & { readonly tries: number };

/** Sends the call to one process after the other until the answer is not an outage. */
export async function callUntilAnswered(state: CallLoad, send: (url: string) => Promise<Answer>): Promise<FinalAnswer> {
  for (let tries = 1; ; tries += 1) {
    const call = send(nextUrl(state));
    state.underWay.add(call);
    const answer = await call
      .catch((error: unknown) => describeFault(error))
      .finally(() => state.underWay.delete(call));
    if (typeof answer !== 'string' && answer.status !== 503) return { status: answer.status, text: answer.text, tries };
    const what = typeof answer === 'string' ? answer : String(answer.status);
    state.counts.repeated.set(what, (state.counts.repeated.get(what) ?? 0) + 1);
    // Waits as clients do between two tries: no event says when the service is back.
    await sleep(RETRY_MS);
  }
}

function describeFault(error: unknown): string {
  const cause = (error as { cause?: { code?: string } }).cause;
  return cause?.code ?? (error as Error).name;
}

export function post(url: string, body: string, headers: Readonly<Record<string, string>>): Promise<Answer> {
  return request(url, { method: 'POST', body, headers, signal: AbortSignal.timeout(CALL_TIMEOUT_MS) });
}

/** Callers take the next number in turn, until there are no more. */
export function shareNumbers(
  count: number,
  callers: number,
  call: (number: number) => Promise<void>,
): Promise<unknown> {
  let next = 0;
  const work = async (): Promise<void> => {
    for (let number = next++; number < count; number = next++) await call(number);
  };
  return Promise.all(Array.from({ length: callers }, work));
}
