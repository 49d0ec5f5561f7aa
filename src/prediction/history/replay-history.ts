/**
 * Replays a log to give each request the history of its server as known when it was sent. Events that were reported later do not
 * count. This takes O(n log n).
 */
import { createServerHistory, HISTORY_SIZE, type ServerHistory } from './server-history.ts';

export interface ReplayedRequest {
  readonly server: string;
  readonly atMs: number;
  /** NaN when it was not observed. */
  readonly firstTokenMs: number;
  readonly tokens: number;
}

/** Returns when an event of a request was reported; infinity for never. */
export type ReportedAt = (eventMs: number, request: number) => number;

/**
 * Returns the history of each request's server as it was known then, in the order of the requests: values in the order of
 * `HISTORY_COLUMNS`.
 */
export function replayHistory(
  requests: readonly ReplayedRequest[],
  reportedAt: ReportedAt = (eventMs) => eventMs,
): Float64Array[] {
  const histories: Float64Array[] = Array.from({ length: requests.length });
  const groups = Map.groupBy(requests.keys(), (i) => requests[i]!.server);
  for (const rows of groups.values()) replayServer({ requests, rows, reportedAt }, histories);
  return histories;
}

interface ServerRequests {
  readonly requests: readonly ReplayedRequest[];
  readonly rows: readonly number[];
  readonly reportedAt: ReportedAt;
}

interface HistoryEvent {
  readonly knownMs: number;
  readonly eventMs: number;
  readonly row: number;
  /** A request knows the first tokens of its own instant, but not the dispatches. */
  readonly isDispatch: boolean;
}

function replayServer(of: ServerRequests, histories: Float64Array[]): void {
  const { requests, rows } = of;
  const events = listEvents(of);
  const history = createServerHistory();
  let next = 0;
  for (const row of rows.toSorted((a, b) => requests[a]!.atMs - requests[b]!.atMs || a - b)) {
    const nowMs = requests[row]!.atMs;
    for (; next < events.length; next++) {
      const { knownMs, isDispatch } = events[next]!;
      if (isDispatch ? knownMs >= nowMs : knownMs > nowMs) break;
      apply(history, events[next]!, requests);
    }
    const known = new Float64Array(HISTORY_SIZE);
    history.read(nowMs, known);
    histories[row] = known;
  }
}

function listEvents({ requests, rows, reportedAt }: ServerRequests): HistoryEvent[] {
  const events: HistoryEvent[] = [];
  for (const row of rows) {
    const { atMs, firstTokenMs } = requests[row]!;
    events.push({ knownMs: reportedAt(atMs, row), eventMs: atMs, row, isDispatch: true });
    if (!Number.isNaN(firstTokenMs))
      events.push({ knownMs: reportedAt(firstTokenMs, row), eventMs: firstTokenMs, row, isDispatch: false });
  }
  const reported = events.filter(({ knownMs }) => knownMs < Number.POSITIVE_INFINITY);
  return reported.sort(compareEvents);
}

/** Events that are reported together are applied in the order in which they happened: a first token after its dispatch. */
function compareEvents(a: HistoryEvent, b: HistoryEvent): number {
  return a.knownMs - b.knownMs || a.eventMs - b.eventMs || Number(a.isDispatch) - Number(b.isDispatch) || a.row - b.row;
}

function apply(history: ServerHistory, { row, isDispatch }: HistoryEvent, requests: readonly ReplayedRequest[]): void {
  const { atMs, firstTokenMs, tokens } = requests[row]!;
  if (isDispatch) history.dispatch(String(row), { atMs, tokens });
  else history.firstToken(String(row), firstTokenMs);
}
