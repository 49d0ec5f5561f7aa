/** Declares a profile: how headers and body of a delivery are written for one platform. */
import type { Event } from '../events/event.ts';
import type { EventKind } from '../events/event-kind.ts';
import type { EncryptionType, HookSecrets } from '../hooks/hook.ts';
import type { Repository } from '../repositories/repository.ts';

/** A body is rendered from this, beside its event. */
export interface RenderContext {
  readonly repository: Repository;
  readonly hookId: number;
  /** Names this delivery to its receiver, through every retry and redelivery. */
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
  /** This attempt is made at this time. */
  readonly timestampMs: number;
}

/** The headers and bodies of one code host. */
export interface Profile {
  /** Whether a header holds the password of `encryption_type` 0 as it is. */
  readonly sendsPassword: boolean;
  /** The body, made once and stored; every attempt sends these bytes. Holds no secret. */
  render(event: Event, context: RenderContext): Uint8Array;
  headers(attempt: Attempt): Record<string, string>;
  /** Returns the bytes as this attempt sends them, where a code host puts a password or a time into the body. */
  complete?(attempt: Attempt): Uint8Array;
}

export interface PreparedRequest {
  readonly headers: Record<string, string>;
  readonly body: Uint8Array;
}
