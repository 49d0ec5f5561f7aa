/** Declares one result of `trivet doctor`: what was checked, whether it is good, and what to do. */

/** One check of `trivet doctor`. */
export interface Check {
  readonly state: 'ok' | 'warn' | 'fail';
  readonly name: string;
  readonly found: string;
  /** What to do; absent if the check passed. */
  readonly advice?: string | undefined;
}

export function ok(name: string, found: string): Check {
  return { state: 'ok', name, found };
}

export function warn(name: string, found: string, advice: string): Check {
  return { state: 'warn', name, found, advice };
}

export function fail(name: string, found: string, advice: string): Check {
  return { state: 'fail', name, found, advice };
}
