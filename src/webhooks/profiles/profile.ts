/** Declares a profile: the format of the headers and the body of a delivery for one code host. */
import type { Event } from '../events/event.ts';
import type { EventKind } from '../events/event-kind.ts';
import type { EncryptionType, HookSecrets } from '../hooks/hook.ts';
import type { Repository } from '../repositories/repository.ts';

/** The input of a body besides its event. */
export interface RenderContext {
  readonly repository: Repository;
  readonly hookId: number;
  /** Identifies the delivery to its receiver, the same at every retry and redelivery. */
  readonly deliveryUuid: string;
  readonly nowMs: number;
}

/** One attempt to deliver a stored body. */
export interface Attempt {
  readonly hookId: number;
  readonly encryptionType: EncryptionType;
  readonly secrets: HookSecrets;
  readonly eventKind: EventKind;
  readonly deliveryUuid: string;
  readonly body: Uint8Array;
  /** The time of this attempt. */
  readonly timestampMs: number;
}

/** The headers and bodies of one code host. */
export interface Profile {
  /** Whether a header has the password in plain text with `encryption_type` 0. */
  readonly sendsPassword: boolean;
  /** Renders the body once, to be stored. Every attempt sends these bytes, to which only `complete` may add. Contains no secret. */
  render(event: Event, context: RenderContext): Uint8Array;
  headers(attempt: Attempt): Record<string, string>;
  /** Returns the bytes of this attempt, for a code host that also has a password or a time in the body. */
  complete?(attempt: Attempt): Uint8Array;
}

export interface PreparedRequest {
  readonly headers: Record<string, string>;
  readonly body: Uint8Array;
}
