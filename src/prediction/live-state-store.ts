import { type Store, statement } from '../database/store.ts';
import type { SavedLiveModel } from './live-model.ts';

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
  await store.write(saveState, [targetModel, nowMs, JSON.stringify(saved)]);
}

export async function listLiveStates(
  store: Store,
): Promise<{ readonly targetModel: string; readonly saved: SavedLiveModel }[]> {
  const rows = await store.read(listStates);
  return rows.map((row) => ({ targetModel: row.target_model, saved: JSON.parse(row.content) as SavedLiveModel }));
}
