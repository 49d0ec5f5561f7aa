/** What models have learned from reports, as it is kept for a restart: a line of JSON, and one more for each server. */
import { setImmediate as yieldToCalls } from 'node:timers/promises';
import { type Store, statement } from '../database/store.ts';
import type { SavedLiveModel, SavedServer } from './saved-live-model.ts';

const saveState = statement(
  'live-state-save',
  `INSERT INTO live_states (target_model, saved_at_ms, content) VALUES ($1, $2, $3)
   ON CONFLICT (target_model) DO UPDATE SET saved_at_ms = excluded.saved_at_ms, content = excluded.content`,
);
const listStates = statement<{ target_model: string; content: string }>(
  'live-state-list',
  'SELECT target_model, content FROM live_states ORDER BY saved_at_ms DESC LIMIT 256',
);

export async function saveLiveState(store: Store, targetModel: string, saved: SavedLiveModel, nowMs: number) {
  await store.write(saveState, [targetModel, nowMs, await writeLiveState(saved)]);
}

export async function listLiveStates(
  store: Store,
): Promise<{ readonly targetModel: string; readonly saved: SavedLiveModel }[]> {
  const rows = await store.read(listStates);
  return rows.map((row) => ({ targetModel: row.target_model, saved: readLiveState(row.content) }));
}

/** A millisecond of a processor, about. */
const SERVERS_AT_ONCE = 32;

/** Calls are answered meanwhile: of a server that is told of while it is written, the next time tells. */
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
