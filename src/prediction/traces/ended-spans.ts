/**
 * Keeps requests that ended recently, from which the pace of their server is estimated. A few of each server are enough, and they
 * are counted for each server: a busy server has thousands for each one of a server that is hardly used.
 */
import type { Store } from '../../database/store.ts';
import { readEndedPages, type WaitingSpan } from './span-store.ts';

export interface EndedSpans {
  /** Returns the last learned requests of each server that ended before `toMs`. Reads only those that ended since the last call. */
  listBefore(toMs: number): Promise<readonly WaitingSpan[]>;
  /** Adds requests that were just learned and that `listBefore` would not read, because they ended before its last `toMs`. */
  addLearned(spans: readonly WaitingSpan[]): void;
}

/** A request counts for the pace of its server for this long after its end. */
export const KEPT_AFTER_END_MS = 60_000;
const ENDED_PER_SERVER = 20;

export function createEndedSpans(store: Store): EndedSpans {
  let kept: readonly WaitingSpan[] = [];
  let readToMs = Number.NEGATIVE_INFINITY;
  return {
    async listBefore(toMs) {
      const fromMs = toMs - KEPT_AFTER_END_MS;
      const selection = createSelection();
      for await (const page of readEndedPages(store, { fromMs: Math.max(readToMs, fromMs), toMs })) selection.add(page);
      selection.add(kept.filter(({ endMs }) => endMs >= fromMs));
      kept = selection.list();
      readToMs = Math.max(readToMs, toMs);
      // A late span may start before spans that were learned, so `toMs` may be smaller than in an earlier call.
      return kept.filter(({ endMs }) => endMs < toMs);
    },
    addLearned(spans) {
      const late = spans.filter(({ endMs }) => endMs < readToMs);
      if (late.length === 0) return;
      const selection = createSelection();
      selection.add([...kept, ...late].sort((a, b) => b.endMs - a.endMs));
      kept = selection.list();
    },
  };
}

function createSelection() {
  const byServer = new Map<string, WaitingSpan[]>();
  return {
    /** Takes the spans of each server in the order of their ends, the last first. */
    add(spans: readonly WaitingSpan[]): void {
      for (const span of spans) {
        const own = byServer.get(span.server) ?? [];
        if (own.length < ENDED_PER_SERVER) byServer.set(span.server, [...own, span]);
      }
    },
    list: () => [...byServer.values()].flat(),
  };
}
