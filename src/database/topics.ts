/** Notifies a process within a second that another process changed what it caches (cache invalidation). */
import type { Log } from '../telemetry/log.ts';
import type { Engine } from './engine.ts';
import { type BoundStatement, type Row, type Statement, statement } from './store.ts';

/**
 * Notifies a process that another one changed something it keeps in memory: each topic has a version, which is increased in the
 * transaction of the change and read several times a second by watching processes.
 */

interface TopicVersion {
  readonly name: string;
  readonly version: number;
}

const markChangedSql: Statement<Row> = statement(
  'topic-touch',
  `INSERT INTO topics (name, version, changed_at_ms) VALUES ($1, 1, $2)
   ON CONFLICT (name) DO UPDATE SET version = topics.version + 1, changed_at_ms = excluded.changed_at_ms`,
);

const listVersionsSql: Statement<TopicVersion> = statement('topic-list', 'SELECT name, version FROM topics');

export function markChangedStatement(topic: string, nowMs: number): BoundStatement {
  return { statement: markChangedSql, parameters: [topic, nowMs] };
}

const POLL_MS = 400;

export interface TopicWatcher {
  watch(topic: string, listener: () => void): () => void;
  close(): void;
}

export function createTopicWatcher(engine: Engine, log: Log): TopicWatcher {
  const listenersByTopic = new Map<string, Set<() => void>>();
  let versions: ReadonlyMap<string, number> = new Map();
  // True until the first read of the versions too: changes between a listener's first read of its data and that read are unknown.
  let isUncertain = true;
  let isLooking = false;
  let timer: NodeJS.Timeout | undefined;

  const compare = (rows: readonly TopicVersion[]): void => {
    const before = versions;
    versions = new Map(rows.map((row) => [row.name, row.version]));
    for (const [topic, listeners] of listenersByTopic)
      if (isUncertain || before.get(topic) !== versions.get(topic))
        for (const listener of listeners) callListener(listener, topic, log);
    isUncertain = false;
  };

  const look = async (): Promise<void> => {
    if (isLooking || listenersByTopic.size === 0) return;
    isLooking = true;
    try {
      const mayHaveChanged = engine.mayHaveChanged();
      if (isUncertain || mayHaveChanged) compare((await engine.read(listVersionsSql, [])) as never);
    } catch (error) {
      // Logged once an outage: the watch reads several times a second.
      if (!isUncertain) log.warn({ err: error }, 'Cannot look for changes made by other processes');
      isUncertain = true;
    } finally {
      isLooking = false;
    }
  };

  return {
    watch: (topic, listener) => {
      const listeners = listenersByTopic.get(topic) ?? new Set();
      listenersByTopic.set(topic, listeners.add(listener));
      if (timer === undefined) void look();
      timer ??= setInterval(() => void look(), POLL_MS).unref();
      return () => {
        listeners.delete(listener);
        if (listeners.size === 0) listenersByTopic.delete(topic);
      };
    },
    close: () => clearInterval(timer),
  };
}

function callListener(listener: () => void, topic: string, log: Log): void {
  try {
    listener();
  } catch (error) {
    log.error({ err: error, topic }, 'A listener of a topic failed');
  }
}
