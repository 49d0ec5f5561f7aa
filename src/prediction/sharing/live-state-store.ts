/** Writes the live state of models to the database, and reads it again after a restart. */
import { setImmediate as yieldToCalls } from 'node:timers/promises';
import { type BoundStatement, type Store, statement } from '../../database/store.ts';
import { SHARED_NAME } from '../online/predictor.ts';
import type { SavedLiveModel, SavedServer } from '../online/saved-live-model.ts';

const saveStateSql = statement(
  'live-state-save',
  `INSERT INTO live_states (target_model, saved_at_ms, sequence, content) VALUES ($1, $2, $3, $4)
   ON CONFLICT (target_model) DO UPDATE
   SET saved_at_ms = excluded.saved_at_ms, sequence = excluded.sequence, content = excluded.content
   WHERE live_states.sequence <= excluded.sequence`,
);
const IS_TRAINED = 'EXISTS (SELECT 1 FROM models m WHERE m.name = s.target_model)';
// Lists the states of all trained models, of as many untrained ones as can have a live model of their own (MOST_UNTRAINED), and
// the state that the rest share.
const listStatesSql = statement<{ target_model: string; sequence: number; content: string }>(
  'live-state-list',
  `SELECT target_model, sequence, content FROM live_states s WHERE s.target_model = $1 OR ${IS_TRAINED}
   UNION ALL
   SELECT target_model, sequence, content FROM (
     SELECT target_model, sequence, content FROM live_states s WHERE s.target_model <> $1 AND NOT ${IS_TRAINED}
     ORDER BY saved_at_ms DESC LIMIT 256) untrained`,
);

const deleteStateSql = statement(
  'live-state-delete',
  'DELETE FROM live_states WHERE target_model = $1 AND saved_at_ms = $2',
);

const listSavedSql = statement<{ target_model: string; saved_at_ms: number; sequence: number; is_trained: number }>(
  'live-state-times',
  `SELECT target_model, saved_at_ms, sequence, CASE WHEN ${IS_TRAINED} THEN 1 ELSE 0 END AS is_trained FROM live_states s`,
);

export interface NamedLiveState {
  readonly targetModel: string;
  /** The last row of the log that is part of it. */
  readonly sequence: number;
  readonly saved: SavedLiveModel;
}

/** Saves all states in one transaction. */
export async function saveLiveStates(store: Store, states: readonly NamedLiveState[], nowMs: number): Promise<void> {
  const statements: BoundStatement[] = [];
  for (const { targetModel, sequence, saved } of states)
    statements.push({
      statement: saveStateSql,
      parameters: [targetModel, nowMs, sequence, await writeLiveState(saved)],
    });
  await store.writeAll(statements);
}

export async function listLiveStates(store: Store): Promise<NamedLiveState[]> {
  const states: NamedLiveState[] = [];
  for (const { target_model: targetModel, sequence, content } of await store.read(listStatesSql, [SHARED_NAME]))
    states.push({ targetModel, sequence, saved: await readLiveState(content) });
  return states;
}

export interface SavedAt {
  readonly savedAtMs: number;
  readonly sequence: number;
  /** The model has a trained version. */
  readonly isTrained: boolean;
}

/** Lists when each state was saved last, and the last row of the log that is part of it. */
export async function listSavedStates(store: Store): Promise<ReadonlyMap<string, SavedAt>> {
  const rows = await store.read(listSavedSql);
  return new Map(
    rows.map(({ target_model: name, saved_at_ms: savedAtMs, sequence, is_trained }) => [
      name,
      { savedAtMs, sequence, isTrained: is_trained === 1 },
    ]),
  );
}

/** A restart reads at most this many states of names without a trained version, since callers may send any name. */
const MOST_UNTRAINED = 256;

/** Deletes states that a restart would not read, unless they were saved again since they were listed. */
export async function deleteUnreadStates(store: Store, saved: ReadonlyMap<string, SavedAt>): Promise<void> {
  const untrained = [...saved].filter(([name, { isTrained }]) => name !== SHARED_NAME && !isTrained);
  const unread = untrained.sort(([, one], [, other]) => other.savedAtMs - one.savedAtMs).slice(MOST_UNTRAINED);
  if (unread.length === 0) return;
  await store.writeAll(
    unread.map(([name, { savedAtMs }]) => ({ statement: deleteStateSql, parameters: [name, savedAtMs] })),
  );
}

/** Encoding or decoding this many servers takes about a millisecond; after them, waiting calls are answered. */
const SERVERS_AT_ONCE = 32;

/** Answers calls meanwhile; a server that is first reported during the encoding is stored at the next save. */
export async function writeLiveState({ servers, ...rest }: SavedLiveModel): Promise<string> {
  const lines = [JSON.stringify(rest)];
  for (const server of servers) {
    lines.push(JSON.stringify(server));
    if (lines.length % SERVERS_AT_ONCE === 0) await yieldToCalls();
  }
  return lines.join('\n');
}

export async function readLiveState(content: string): Promise<SavedLiveModel> {
  const [rest, ...lines] = content.split('\n');
  const servers: SavedServer[] = [];
  for (const line of lines) {
    servers.push(JSON.parse(line) as SavedServer);
    if (servers.length % SERVERS_AT_ONCE === 0) await yieldToCalls();
  }
  return { ...(JSON.parse(rest!) as Omit<SavedLiveModel, 'servers'>), servers };
}
