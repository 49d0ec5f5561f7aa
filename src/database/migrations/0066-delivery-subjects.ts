/** Adds the subject of an event to its deliveries: a branch, a tag, the number of an issue. */
import type { Migration } from '../store.ts';

/** The subject of an event by which people search: a branch, a tag, the number of an issue. Earlier deliveries have no subject. */
export const deliverySubjects: Migration = {
  id: 66,
  name: 'delivery-subjects',
  isExpansion: true,
  statements: ['ALTER TABLE delivery_contents ADD COLUMN subject {TEXT}'],
};
