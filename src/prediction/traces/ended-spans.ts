/**
 * Keeps the requests that ended lately and still tell the pace of their servers. A few of each server are enough, and each
 * needs its own: a busy server has thousands for one of a rare server.
 */
import type { Store } from '../../database/store.ts';
import { readEndedPages, type WaitingSpan } from './span-store.ts';

export interface EndedSpans {
  /** Returns the last learned requests of each server that had ended by then. Reads those alone that ended since the last time. */
  listBefore(toMs: number): Promise<readonly WaitingSpan[]>;
  /** Adds requests that were learned now. Of those, the late ones had ended before what is read next. */
  addLearned(spans: readonly WaitingSpan[]): void;
}

/** Requests that have ended tell the pace of their server for this long. */
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
      // Spans that come late start before others that were learned.
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
    /** Of each server, the last to end come first. */
    add(spans: readonly WaitingSpan[]): void {
      for (const span of spans) {
        const own = byServer.get(span.server) ?? [];
        if (own.length < ENDED_PER_SERVER) byServer.set(span.server, [...own, span]);
      }
    },
    list: () => [...byServer.values()].flat(),
  };
}
