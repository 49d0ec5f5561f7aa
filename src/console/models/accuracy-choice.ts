/** Reads from the query which pod type or server the accuracy charts show, and how far back. */

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;

interface AccuracyWindow {
  readonly lengthMs: number;
  /** Long windows read long periods from the store. Periods of single servers are kept for a shorter time. */
  readonly stepMs: number;
  readonly serverStepMs: number;
}

export const WINDOWS = {
  '12h': { lengthMs: 12 * HOUR_MS, stepMs: 5 * MINUTE_MS, serverStepMs: HOUR_MS },
  '7d': { lengthMs: 7 * DAY_MS, stepMs: HOUR_MS, serverStepMs: 6 * HOUR_MS },
  '30d': { lengthMs: 30 * DAY_MS, stepMs: 6 * HOUR_MS, serverStepMs: 6 * HOUR_MS },
} as const satisfies Readonly<Record<string, AccuracyWindow>>;

export type WindowName = keyof typeof WINDOWS;

/** The pod type that a page shows for servers without one. */
export const AGGREGATE = 'aggregate';

export interface AccuracyChoice {
  readonly name: string;
  readonly window?: WindowName | undefined;
  /** `aggregate` for servers without a pod type. */
  readonly podType?: string | undefined;
  /** The server that was chosen instead of a pod type. */
  readonly server?: string | undefined;
}

export function isWindowName(text: string | undefined): text is WindowName {
  return text !== undefined && Object.hasOwn(WINDOWS, text);
}

export function pathOfAccuracy({ name, window, podType, server }: AccuracyChoice): string {
  return `/models/accuracy?${toQuery({ name, window, pod_type: podType, server })}`;
}

export interface ErrorChoice extends AccuracyChoice {
  readonly window: WindowName;
  readonly target: 'ttft' | 'tpot';
}

export function pathOfErrors({ name, window, target, podType, server }: ErrorChoice): string {
  return `/models/errors?${toQuery({ name, window, target, pod_type: podType, server })}`;
}

function toQuery(fields: Readonly<Record<string, string | undefined>>): string {
  const given = Object.entries(fields).filter((field): field is [string, string] => field[1] !== undefined);
  return new URLSearchParams(given).toString();
}

export interface Steps {
  readonly fromMs: number;
  readonly stepMs: number;
  /** The start of each step, oldest first; the last step has not ended. */
  readonly moments: readonly number[];
}

export function listSteps(window: WindowName, isServer: boolean, nowMs: number): Steps {
  const { lengthMs, stepMs: podTypeStepMs, serverStepMs } = WINDOWS[window];
  const stepMs = isServer ? serverStepMs : podTypeStepMs;
  const fromMs = nowMs - (nowMs % stepMs) - lengthMs + stepMs;
  return { fromMs, stepMs, moments: Array.from({ length: lengthMs / stepMs }, (_, at) => fromMs + at * stepMs) };
}
