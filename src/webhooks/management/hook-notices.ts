/** Decides when the owner of a webhook receives a notice: it fails, is disabled, works again. */
import type { Store } from '../../database/store.ts';
import type { Notice, NoticeSource, NoticeText } from '../../notices/notice.ts';
import type { NoticeTexts } from '../../notices/texts.ts';
import { findWatched, listTroubledSince, type WatchedHook } from '../hooks/troubled-hooks-store.ts';
import { isFullNameOf } from '../repositories/repository.ts';

/** A receiver that fails for less than this, such as during a restart, causes no notice. */
const FAILING_MS = 5 * 60_000;
const PREFIX = 'hook:';

export interface HookNoticesOptions {
  /** The address of the pages of the service. */
  readonly pagesUrl: string;
  /** OWNER/NAME whose webhooks get the notices. These webhooks cause none: it would be one more delivery that fails. */
  readonly noticeRepository?: string | undefined;
}

export function createHookNotices(store: Store, { pagesUrl, noticeRepository }: HookNoticesOptions): NoticeSource {
  const isWatched = (hook: WatchedHook) => !isFullNameOf(hook, noticeRepository);
  const toNotice = (hook: WatchedHook, state: 'failing' | 'disabled' | 'fine'): Notice => ({
    cause: PREFIX + hook.id,
    state,
    sinceMs: state === 'fine' ? undefined : hook.troubledSinceMs,
    audience: { kind: 'owner', ownerId: hook.ownerId },
    write: (texts) => ({
      ...describeState(texts, hook, state),
      link: { label: texts.hook.open, url: pagesUrl + pathOf(hook) },
    }),
  });
  return {
    prefix: PREFIX,
    async listTroubles(nowMs) {
      const hooks = await listTroubledSince(store, nowMs - FAILING_MS);
      return hooks.filter(isWatched).map((hook) => toNotice(hook, hook.isDisabled ? 'disabled' : 'failing'));
    },
    async findRecovery(cause) {
      const hook = await findWatched(store, Number(cause.slice(PREFIX.length)));
      // The webhook was deleted or switched off by its owner, who needs no notice, or belongs to the repository for notices.
      if (hook === undefined || hook.isDisabled || !isWatched(hook)) return undefined;
      // A webhook that was enabled again or has another URL counts as recovered with the first accepted delivery.
      return hook.isLastAccepted ? toNotice(hook, 'fine') : 'not yet';
    },
  };
}

/** Writes the notice without path and query of the URL: at chat services they are secret, and several people read notices. */
function describeState(texts: NoticeTexts, hook: WatchedHook, state: 'failing' | 'disabled' | 'fine'): NoticeText {
  const place = `${hook.ownerLogin}/${hook.path}`;
  const { origin } = new URL(hook.url);
  if (state === 'disabled') return texts.hook.disabled(place, origin, hook.disabledReason ?? '');
  return texts.hook[state](place, origin);
}

function pathOf({ ownerLogin, path, id }: WatchedHook): string {
  return `/webhooks/${encodeURIComponent(ownerLogin)}/${encodeURIComponent(path)}/${id}`;
}
