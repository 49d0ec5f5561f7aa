/** A notice: people receive it without asking, when something that is theirs needs attention. */
import type { Mail } from '../mail/mail.ts';
import type { NoticeTexts } from './texts.ts';

export type Audience = { readonly kind: 'owner'; readonly ownerId: string } | { readonly kind: 'administrators' };

export interface Notice {
  /** What it is about, as `hook:12`: of one cause there is at most one mail an hour. */
  readonly cause: string;
  /** A word; another one is another notice. */
  readonly state: string;
  readonly audience: Audience;
  /** In the language of each reader. */
  readonly write: (texts: NoticeTexts) => NoticeText;
}

export type NoticeText = Pick<Mail, 'subject' | 'paragraphs' | 'link'>;

/** A notice for machines, in English. */
export interface PublishedNotice extends Pick<Notice, 'cause' | 'state'> {
  readonly text: NoticeText;
  /** Names this notice among those of its cause: the same one may be published twice, and counts once. */
  readonly key: string;
}

/** Throws `not_found` while there is no place to publish to. */
export type PublishNotice = (notice: PublishedNotice) => Promise<void>;

export interface Recipient {
  readonly name: string;
  readonly email: string;
  /** As the person chose it; null without a choice. */
  readonly language: string | null;
}

/** Looks at one kind of thing. */
export interface NoticeSource {
  /** What every cause of it begins with. */
  readonly prefix: string;
  /** Everything that is wrong now. */
  readonly listTroubles: (nowMs: number) => Promise<readonly Notice[]>;
  /** The notice that a trouble is over; undefined: no notice, for example because the thing was deleted. */
  readonly findRecovery: (cause: string) => Promise<Notice | undefined>;
}
