/**
 * Queues the prompts that a server has still to compute, one after the other. Each is computed from its arrival, or from the
 * latest first token of the prompts before it, until its own first token, at a constant pace. A prompt whose first token is no
 * later than that of an earlier prompt was computed together with that, and takes no time of its own.
 */
export interface PromptQueue {
  /** Adds a prompt that arrives now. Returns its tokens if it takes no time of its own, else 0. */
  add(nowMs: number, prompt: QueuedPrompt): number;
  /** Returns when all prompts that arrived so far are computed. */
  busyUntilMs(): number;
  /** Returns how many tokens are computed in a millisecond, from now until a prompt arrives or has its first token. */
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

/** Returns when the computation of a prompt starts that arrives now at a server which computes others until `busyUntilMs`. */
export function computePrompt(nowMs: number, busyUntilMs: number, prompt: QueuedPrompt): ComputedPrompt {
  return { ...prompt, startMs: Math.max(nowMs, busyUntilMs) };
}

/** `nowMs` must not decrease from call to call, nor `firstTokenMs`: a server computes prompts in the order of arrival. */
export function createPromptQueue(): PromptQueue {
  let waiting: ComputedPrompt[] = [];
  /** The position of the first prompt in `waiting` that is not computed yet. */
  let head = 0;
  let busyUntilMs = Number.NEGATIVE_INFINITY;

  function dropComputed(nowMs: number): void {
    while (head < waiting.length && waiting[head]!.firstTokenMs <= nowMs) head++;
    if (2 * head <= waiting.length) return;
    waiting = waiting.slice(head);
    head = 0;
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
      const first = waiting[head];
      if (first === undefined || first.startMs > nowMs || first.startMs >= first.firstTokenMs) return 0;
      return first.tokens / (first.firstTokenMs - first.startMs);
    },
  };
}
