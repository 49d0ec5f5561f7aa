import { migrations } from '../../src/database/migrations/list.ts';
import type { Store } from '../../src/database/store.ts';
import { openTestStore, type StorePlace } from '../support/store/engines.ts';
import { noteMigration } from '../support/store/note-store.ts';

export function openNoteStore(place: StorePlace): Promise<Store> {
  return openTestStore(place, { migrations: [...migrations, noteMigration], poolSize: 8 });
}
