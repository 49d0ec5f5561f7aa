/** What models have learned from reports, as it is kept for a restart: a line of JSON, and one more for each server. */
import { setImmediate as yieldToCalls } from 'node:timers/promises';
import { type Step, type Store, statement } from '../../database/store.ts';
import { SHARED_NAME } from '../online/predictor.ts';
import type { SavedLiveModel, SavedServer } from '../online/saved-live-model.ts';

const saveState = statement(
  'live-state-save',
  `INSERT INTO live_states (target_model, saved_at_ms, content) VALUES ($1, $2, $3)
   ON CONFLICT (target_model) DO UPDATE SET saved_at_ms = excluded.saved_at_ms, content = excluded.content`,
);
// As many as have a live part of their own, and the one that the others share.
const listStates = statement<{ target_model: string; content: string }>(
  'live-state-list',
  `SELECT target_model, content FROM live_states
   ORDER BY CASE WHEN target_model = $1 THEN 0 ELSE 1 END, saved_at_ms DESC LIMIT 257`,
);

export interface NamedLiveState {
  readonly targetModel: string;
  readonly saved: SavedLiveModel;
}

/** In one transaction. */
export async function saveLiveStates(store: Store, states: readonly NamedLiveState[], nowMs: number): Promise<void> {
  const steps: Step[] = [];
  for (const { targetModel, saved } of states)
    steps.push({ statement: saveState, parameters: [targetModel, nowMs, await writeLiveState(saved)] });
  await store.writeAll(steps);
}

export async function listLiveStates(store: Store): Promise<NamedLiveState[]> {
  const rows = await store.read(listStates, [SHARED_NAME]);
  return rows.map((row) => ({ targetModel: row.target_model, saved: readLiveState(row.content) }));
}

/** A millisecond of a processor, about. */
const SERVERS_AT_ONCE = 32;

/** Calls are answered meanwhile: a server that is reported during the write is stored at the next one. */
export async function writeLiveState({ servers, ...rest }: SavedLiveModel): Promise<string> {
  const lines = [JSON.stringify(rest)];
  for (const server of servers) {
    lines.push(JSON.stringify(server));
    if (lines.length % SERVERS_AT_ONCE === 0) await yieldToCalls();
  }
  return lines.join('\n');
}

export function readLiveState(content: string): SavedLiveModel {
  const [rest, ...servers] = content.split('\n');
  return {
    ...(JSON.parse(rest!) as Omit<SavedLiveModel, 'servers'>),
    servers: servers.map((line) => JSON.parse(line) as SavedServer),
  };
}
