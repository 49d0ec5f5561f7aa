/** The configuration of each server of the fleet, as an operator writes it. */

export interface NodePlace {
  readonly name: string;
  readonly folder: string;
  readonly port: number;
  /** Where Patroni answers what role the node has. */
  readonly restPort: number;
}

interface PatroniOptions {
  readonly node: NodePlace;
  readonly etcdPort: number;
  /** The folder with `postgres`. */
  readonly binaries: string;
  /** PostgreSQL's `wal_retrieve_retry_interval`: how soon a standby tries again to connect to a new primary. */
  readonly standbyRetry: string;
}

/** YAML takes JSON. A shorter time to live than Patroni's default of 30 s: a run waits less, and finds the same. */
export function describePatroni({ node, etcdPort, binaries, standbyRetry }: PatroniOptions): string {
  const address = `127.0.0.1:${node.port}`;
  return JSON.stringify({
    scope: 'trivet',
    name: node.name,
    restapi: { listen: `127.0.0.1:${node.restPort}`, connect_address: `127.0.0.1:${node.restPort}` },
    etcd3: { host: `127.0.0.1:${etcdPort}` },
    bootstrap: {
      dcs: {
        ttl: 8,
        loop_wait: 2,
        retry_timeout: 3,
        synchronous_mode: true,
        synchronous_mode_strict: true,
        postgresql: { use_pg_rewind: true, parameters: { max_connections: 100, wal_keep_size: '512MB' } },
      },
      initdb: [{ encoding: 'UTF8' }, { locale: 'C.UTF-8' }, 'data-checksums'],
    },
    postgresql: {
      listen: address,
      connect_address: address,
      data_dir: `${node.folder}/data`,
      bin_dir: binaries,
      pgpass: `${node.folder}/pgpass`,
      authentication: {
        superuser: { username: 'postgres' },
        replication: { username: 'replicator' },
        rewind: { username: 'rewinder' },
      },
      pg_hba: ['local all all trust', 'host all all 127.0.0.1/32 trust', 'host replication all 127.0.0.1/32 trust'],
      parameters: {
        unix_socket_directories: node.folder,
        shared_buffers: '64MB',
        wal_retrieve_retry_interval: standbyRetry,
      },
    },
  });
}

/** It sends connections to the node whose Patroni names itself primary, and ends those of one that is no longer. */
export function describeHaproxy(port: number, nodes: readonly NodePlace[]): string {
  const servers = nodes.map(
    ({ name, port: nodePort, restPort }) =>
      `  server ${name} 127.0.0.1:${nodePort} check port ${restPort} inter 1s fall 2 rise 1`,
  );
  return `defaults
  mode tcp
  timeout connect 2s
  timeout client 30m
  timeout server 30m
  timeout check 2s
listen primary
  bind 127.0.0.1:${port}
  option httpchk OPTIONS /primary
  http-check expect status 200
  default-server on-marked-down shutdown-sessions
${servers.join('\n')}
`;
}

export function describePgbouncer(port: number, haproxyPort: number): string {
  return `[databases]
trivet = host=127.0.0.1 port=${haproxyPort} dbname=trivet user=trivet
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${port}
unix_socket_dir =
auth_type = any
auth_file =
pool_mode = transaction
default_pool_size = 20
max_client_conn = 200
server_login_retry = 1
ignore_startup_parameters = statement_timeout, idle_in_transaction_session_timeout
`;
}
