/** Runs a statement that a stop cancels in the server: without that, it would go on after its process has ended. */
import pg from 'pg';

export interface Cancellation {
  readonly pool: pg.Pool;
  readonly stopping: AbortSignal | undefined;
  /** The process id that the server gives its end of the connection, which a pooler hides from the driver. */
  readonly pid: number;
}

/** Rejects if the stop comes before the statement or during it. */
export async function runUnlessStopped(
  client: pg.PoolClient,
  text: string,
  { pool, stopping, pid }: Cancellation,
): Promise<void> {
  stopping?.throwIfAborted();
  let canceled: Promise<void> | undefined;
  const cancel = () => {
    canceled = cancelStatement(pool, client, pid);
  };
  stopping?.addEventListener('abort', cancel, { once: true });
  try {
    await client.query(text);
  } finally {
    stopping?.removeEventListener('abort', cancel);
    // Otherwise it could reach the next statement of the connection.
    await canceled;
  }
  stopping?.throwIfAborted();
}

/** Over a connection of its own, to the same server: the pool may have one connection only. */
async function cancelStatement({ options }: pg.Pool, given: pg.PoolClient, pid: number): Promise<void> {
  const { host, port } = given as pg.ClientBase as pg.Client;
  const client = Object.assign(new pg.Client(options), { host, port });
  client.on('error', () => {});
  try {
    await client.connect();
    await client.query('SELECT pg_cancel_backend($1)', [pid]);
  } catch {
    // The process ends all the same, and the server later ends the statement at the loss of the connection.
  } finally {
    void client.end().catch(() => {});
  }
}
