/**
 * Publishes notices of the service as events of a repository, to its webhooks. An issue is opened when something needs
 * attention, and closed when it is over. So the webhooks of that repository receive them like any event: in the format of their
 * platform, signed, retried and logged.
 */
import { createHash } from 'node:crypto';
import { isFailure } from '../../errors.ts';
import type { PublishedNotice, PublishNotice } from '../../notices/notice.ts';
import { chooseNoticeTexts } from '../../notices/texts.ts';
import { type Event, eventSchema } from '../events/event.ts';
import { KEY_USED } from '../intake/prepare-event.ts';
import type { Management } from './management.ts';
import { publishEvent } from './publish-event.ts';

/** `fullName` is OWNER/NAME. Publishing throws `not_found` while there is no such repository. */
export function createNoticePublisher(management: Management, fullName: string): PublishNotice {
  const [owner = '', name = ''] = fullName.split('/');
  return async (notice) => {
    const repository = await management.access.find(owner, name);
    const event = toIssue(notice, new Date(management.world.nowMs()).toISOString());
    const incoming = { repository, event, source: 'notice', idempotencyKey: `notice-${digest(notice.key)}` };
    await publishEvent(management, incoming).catch((error: unknown) => {
      // Another process has published the same notice, with another time.
      if (!isFailure(error) || error.details.errorCodeName !== KEY_USED) throw error;
    });
  };
}

/** Creates a sample notice, to test a receiver with. */
export function createSampleNotice(nowMs: number): Event {
  const texts = chooseNoticeTexts('en');
  const text = texts.hook.failing('example/sample', 'https://receiver.example.com');
  const link = { label: texts.hook.open, url: 'https://trivet.example.com/webhooks/example/sample/1' };
  return toIssue({ cause: 'hook:sample', state: 'failing', text: { ...text, link } }, new Date(nowMs).toISOString());
}

function digest(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}

function toIssue({ cause, state, text }: Omit<PublishedNotice, 'key'>, time: string): Event {
  const actor = { name: 'Trivet', username: 'trivet' };
  const isOver = state === 'fine';
  return eventSchema.parse({
    kind: 'issue',
    action: isOver ? 'close' : 'open',
    actor,
    issue: {
      // Each cause has one issue, which is opened again when the cause returns.
      number: 1 + (Number.parseInt(digest(cause).slice(0, 8), 16) % 2_000_000_000),
      title: text.subject,
      description: [...text.paragraphs, ...(text.link === undefined ? [] : [text.link.url])].join('\n\n'),
      state: isOver ? 'closed' : 'opened',
      author: actor,
      labels: [cause.split(':')[0] ?? '', state].map((title) => ({ title })),
      created_at: time,
      ...(isOver ? { closed_at: time } : {}),
      ...(text.link === undefined ? {} : { url: text.link.url }),
    },
  });
}
