/**
 * The minimum that a service can do with an event, in a separate process: it stores the event in one row, answers once that is
 * committed, and then posts the event to a receiver. Nothing is authorized, signed, retried or logged. Its figures include the cost
 * of the machine, the database and the receiver, so they are a lower bound of those of the program.
 */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { Pool } from 'undici';
import { migrations } from '../../src/database/migrations/list.ts';
import { openStore } from '../../src/database/startup/open-store.ts';
import type { Migration, Store } from '../../src/database/store.ts';
import { bindRowsExactly, multiRowInsert } from '../../src/database/value-rows.ts';
import { createLog } from '../../src/telemetry/log.ts';
import { realWorld } from '../../src/world.ts';

export interface FloorCommand {
  readonly dataDir: string;
  readonly databaseUrl?: string | undefined;
}

/** `/hooked/PORT` has a receiver on this port of the loopback address; any other path has none. */
const HOOKED = /^\/hooked\/(\d+)$/;
const CONNECTIONS_OF_RECEIVER = 8;

const floorTable: Migration = {
  id: 9000,
  name: 'floor',
  statements: ['CREATE TABLE floor_events (id {INT} NOT NULL PRIMARY KEY, content {TEXT} NOT NULL)'],
};
const insertSql = multiRowInsert('floor-insert', 'floor_events', { id: 'int', content: 'text' });

interface FloorEvent {
  readonly id: number;
  readonly content: string;
}

interface Commit {
  add(event: FloorEvent): Promise<void>;
}

/** Events that arrive while a commit is under way share the next one, as in the program. */
function createCommit(store: Store): Commit {
  let waiting: { readonly event: FloorEvent; readonly end: PromiseWithResolvers<void> }[] = [];
  let isRunning = false;
  const run = async (): Promise<void> => {
    while (waiting.length > 0) {
      const some = waiting;
      waiting = [];
      const rows = some.map(({ event: { id, content } }) => ({ id, content }));
      const stored = store.writeAll(bindRowsExactly(insertSql, rows), { inOneTrip: true });
      await stored.then(
        () => {
          for (const { end } of some) end.resolve();
        },
        (error: unknown) => {
          for (const { end } of some) end.reject(error);
        },
      );
    }
    isRunning = false;
  };
  return {
    add: (event) => {
      const end = Promise.withResolvers<void>();
      waiting.push({ event, end });
      if (!isRunning) setImmediate(() => void run());
      isRunning = true;
      return end.promise;
    },
  };
}

async function serve({ dataDir, databaseUrl }: FloorCommand): Promise<void> {
  const all = [...migrations, floorTable];
  const store = await openStore({ dataDir, databaseUrl, migrations: all, world: realWorld, log: createLog('warn') });
  const commit = createCommit(store);
  const receivers = new Map<string, Pool>();
  const findReceiver = (port: string): Pool => {
    const found = receivers.get(port) ?? new Pool(`http://127.0.0.1:${port}`, { connections: CONNECTIONS_OF_RECEIVER });
    receivers.set(port, found);
    return found;
  };
  const handle = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const content = await text(request);
    JSON.parse(content);
    const [id = 0] = await store.makeIds(1);
    await commit.add({ id, content });
    const port = HOOKED.exec(request.url ?? '')?.[1];
    const uuid = realWorld.uuid();
    response.writeHead(202, { 'content-type': 'application/json' });
    response.end(JSON.stringify({ id, deliveries: port === undefined ? [] : [{ uuid }] }));
    if (port === undefined) return;
    const headers = { 'content-type': 'application/json', 'x-gitcode-delivery': uuid };
    const answer = await findReceiver(port).request({ method: 'POST', path: '/', headers, body: content });
    await answer.body.dump();
  };
  const server = createServer((request, response) => void handle(request, response));
  server.listen(0, '127.0.0.1', () => process.send?.({ port: (server.address() as AddressInfo).port }));
}

process.on('message', (command: FloorCommand) => void serve(command));
process.on('disconnect', () => process.exit(0));
