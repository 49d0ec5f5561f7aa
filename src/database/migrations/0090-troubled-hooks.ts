/** Adds the indexes by which troubled and deleted webhooks are found among many healthy ones. */
import type { Migration } from '../store.ts';

export const troubledHooks: Migration = {
  id: 90,
  name: 'troubled-hooks',
  isExpansion: true,
  statements: [
    'CREATE INDEX hooks_disabled ON hooks (id) WHERE disabled_at_ms IS NOT NULL',
    'CREATE INDEX endpoint_queue_failing ON endpoint_queue (hook_id) WHERE failing_since_ms IS NOT NULL',
    'CREATE INDEX endpoint_queue_canceled ON endpoint_queue (hook_id) WHERE canceled_at_ms IS NOT NULL',
  ],
};
