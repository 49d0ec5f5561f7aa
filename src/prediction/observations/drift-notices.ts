/** Notices to administrators: a model drifts. */
import type { Store } from '../../database/store.ts';
import type { NoticeSource } from '../../notices/notice.ts';
import { listDriftAlarms } from './drift-alarm-store.ts';

const PREFIX = 'model:';
const RECENT_MS = 3_600_000;

/** `pagesUrl`: where the pages of the service are. */
export function createDriftNotices(store: Store, pagesUrl: string): NoticeSource {
  return {
    prefix: PREFIX,
    async listTroubles(nowMs) {
      const alarms = await listDriftAlarms(store, nowMs - RECENT_MS);
      const models = new Set(alarms.map(({ targetModel }) => targetModel));
      return [...models].map((model) => ({
        cause: PREFIX + model,
        state: 'drift',
        audience: { kind: 'administrators' },
        write: (texts) => ({
          ...texts.model.drift(model),
          link: { label: texts.model.open, url: `${pagesUrl}/models/model?name=${encodeURIComponent(model)}` },
        }),
      }));
    },
    // Without alarms for an hour: that it fits again is no reason to write.
    findRecovery: () => Promise.resolve(undefined),
  };
}
