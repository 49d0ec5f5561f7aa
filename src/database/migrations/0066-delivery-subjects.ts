/** Adds the subject of an event to its deliveries: a branch, a tag, the number of an issue. */
import type { Migration } from '../store.ts';

/** What an event is about, as people look for it: a branch, a tag, the number of an issue. Deliveries of before have none. */
export const deliverySubjects: Migration = {
  id: 66,
  name: 'delivery-subjects',
  isExpansion: true,
  statements: ['ALTER TABLE delivery_contents ADD COLUMN subject {TEXT}'],
};
