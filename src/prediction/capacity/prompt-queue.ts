/**
 * The prompts that a server has still to compute, as first tokens show them. Prompts are computed one after the other:
 * each from its arrival, or from the newest first token before it, until its own first token, at one pace meanwhile. A
 * prompt whose first token is no later than that of one before it was computed together with it, in no time of its own.
 */
export interface PromptQueue {
  /** Adds a prompt that arrives now. Returns the tokens of it that take no time of their own. */
  add(nowMs: number, prompt: QueuedPrompt): number;
  /** When all prompts that arrived so far are computed. */
  busyUntilMs(): number;
  /** Tokens a millisecond that are computed from now on, until a prompt arrives or has its first token. */
  readPace(nowMs: number): number;
}

export interface QueuedPrompt {
  readonly tokens: number;
  readonly firstTokenMs: number;
}

export interface ComputedPrompt extends QueuedPrompt {
  /** Not before `firstTokenMs` for a prompt that takes no time of its own. */
  readonly startMs: number;
}

/** When a prompt is computed that arrives now, at a server that computes others until `busyUntilMs`. */
export function computePrompt(nowMs: number, busyUntilMs: number, prompt: QueuedPrompt): ComputedPrompt {
  return { ...prompt, startMs: Math.max(nowMs, busyUntilMs) };
}

/** The moments must not go back. */
export function createPromptQueue(): PromptQueue {
  let waiting: ComputedPrompt[] = [];
  let busyUntilMs = Number.NEGATIVE_INFINITY;

  function dropComputed(nowMs: number): void {
    if (waiting.some(({ firstTokenMs }) => firstTokenMs <= nowMs))
      waiting = waiting.filter(({ firstTokenMs }) => firstTokenMs > nowMs);
  }

  return {
    add(nowMs, prompt) {
      const computed = computePrompt(nowMs, busyUntilMs, prompt);
      waiting.push(computed);
      busyUntilMs = Math.max(busyUntilMs, prompt.firstTokenMs);
      return computed.startMs < computed.firstTokenMs ? 0 : prompt.tokens;
    },
    busyUntilMs: () => busyUntilMs,
    readPace(nowMs) {
      dropComputed(nowMs);
      const head = waiting.find(({ startMs, firstTokenMs }) => startMs <= nowMs && startMs < firstTokenMs);
      return head === undefined ? 0 : head.tokens / (head.firstTokenMs - head.startMs);
    },
  };
}
