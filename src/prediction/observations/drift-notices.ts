/** Raises a notice to administrators when a model drifts, and when an hour passed without another alarm. */
import type { Store } from '../../database/store.ts';
import type { Notice, NoticeSource } from '../../notices/notice.ts';
import { listDriftAlarmHours, listDriftAlarms } from './drift-alarm-store.ts';

const PREFIX = 'model:';
const RECENT_MS = 3_600_000;

/** `pagesUrl`: the address of the pages of the service. */
export function createDriftNotices(store: Store, pagesUrl: string): NoticeSource {
  const toNotice = (model: string, state: 'drift' | 'fine'): Notice => ({
    cause: PREFIX + model,
    state,
    audience: { kind: 'administrators' },
    write: (texts) => ({
      ...texts.model[state](model),
      link: { label: texts.model.open, url: `${pagesUrl}/models/model?name=${encodeURIComponent(model)}` },
    }),
  });
  return {
    prefix: PREFIX,
    async listTroubles(nowMs) {
      const alarms = await listDriftAlarms(store, nowMs - RECENT_MS);
      const models = new Set(alarms.map(({ targetModel }) => targetModel));
      return [...models].map((model) => toNotice(model, 'drift'));
    },
    async findRecovery(cause, nowMs) {
      const model = cause.slice(PREFIX.length);
      // The list of troubles is limited, so a model that is not in it may still drift.
      const hours = await listDriftAlarmHours(store, model, nowMs - RECENT_MS);
      return hours.length > 0 ? 'not yet' : toNotice(model, 'fine');
    },
  };
}
