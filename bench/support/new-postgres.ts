/** Describes the PostgreSQL of a bench: durable, and with the settings of a new installation, where the server of the tests is smaller. */
import type { ClusterOptions } from '../../test/support/store/postgres-cluster.ts';

export const NEW_POSTGRES: ClusterOptions = {
  isDurable: true,
  settings: ['-cshared_buffers=128MB', '-cmax_wal_size=1GB'],
};
