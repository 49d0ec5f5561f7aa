/** Adds the profile in which the body of a delivery is written. */
import type { Migration } from '../store.ts';

/** The code host whose format a body has. Earlier deliveries have no value: they count as written in the profile of their webhook. */
export const deliveryProfiles: Migration = {
  id: 68,
  name: 'delivery-profiles',
  isExpansion: true,
  statements: ['ALTER TABLE delivery_contents ADD COLUMN profile {TEXT}'],
};
