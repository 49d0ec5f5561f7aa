/** Declares a notice: its cause, its state, its readers and its text. */
import type { Mail } from '../mail/mail.ts';
import type { NoticeTexts } from './texts.ts';

export type Audience = { readonly kind: 'owner'; readonly ownerId: string } | { readonly kind: 'administrators' };

export interface Notice {
  /** The thing that the notice is about, such as `hook:12`. */
  readonly cause: string;
  /** The state of the cause. Another state is another notice, and each state is sent at most once an hour. */
  readonly state: string;
  /** When the state began, if known. A state that began after its last notice is another trouble, with a separate notice. */
  readonly sinceMs?: number | undefined;
  readonly audience: Audience;
  /** The text in the language of a reader. */
  readonly write: (texts: NoticeTexts) => NoticeText;
}

export type NoticeText = Pick<Mail, 'subject' | 'paragraphs' | 'link'>;

/** A notice for programs, in English. */
export interface PublishedNotice extends Pick<Notice, 'cause' | 'state'> {
  readonly text: NoticeText;
  /** The idempotency key among the notices of its cause: published twice, it counts once. */
  readonly key: string;
}

/** Throws `not_found` if there is no repository to publish to. */
export type PublishNotice = (notice: PublishedNotice) => Promise<void>;

export interface Recipient {
  readonly name: string;
  readonly email: string;
  /** The language that the person chose; null without a choice. */
  readonly language: string | null;
}

/** Finds the troubles of one kind, such as failing webhooks or a full disk. */
export interface NoticeSource {
  /** The prefix of all its causes. */
  readonly prefix: string;
  /** All troubles now. */
  readonly listTroubles: (nowMs: number) => Promise<readonly Notice[]>;
  /**
   * Returns the notice that a trouble is over; `not yet` if it may still last; undefined for no notice, for example if its subject
   * was deleted.
   */
  readonly findRecovery: (cause: string, nowMs: number) => Promise<Notice | 'not yet' | undefined>;
}
