/** Declares what the pages of webhooks read and may change for the signed-in person. */

/**
 * What the webhook pages may read and do for the signed-in person. `HookAdmin` opens a repository, the repository opens a hook, and
 * the hook reads its deliveries. `src/webhooks/management/console-hooks.ts` implements it with the functions of the API.
 */

import type { Caller } from '../frame/console.ts';

/** Parameters as the API takes them; an empty one counts as absent. */
export type Values = Readonly<Record<string, unknown>>;

export interface HookAdmin {
  /** Reads the overview: of all webhooks for an administrator of the service, of their own for other people. */
  readonly readOverview: (caller: Caller) => Promise<WebhookOverview>;
  readonly profiles: readonly string[];
  readonly eventKinds: readonly string[];
  readonly listOwners: (caller: Caller) => Promise<readonly OwnerView[]>;
  readonly openOwner: (caller: Caller, login: string, page: number) => Promise<OwnerView>;
  readonly createRepository: (caller: Caller, login: string, values: Values) => Promise<RepositoryView>;
  /** Throws `not_found` unless the caller administers it. */
  readonly openRepository: (caller: Caller, owner: string, path: string) => Promise<RepositoryAdmin>;
}

export interface RepositoryAdmin {
  readonly repository: RepositoryView;
  readonly listHooks: () => Promise<readonly HookView[]>;
  readonly createHook: (values: Values) => Promise<HookView>;
  readonly openHook: (id: string) => Promise<OpenHook>;
}

export interface OpenHook {
  readonly describe: () => Promise<HookView>;
  /** Absent values stay unchanged. */
  readonly change: (values: Values) => Promise<void>;
  readonly switch: (active: boolean) => Promise<void>;
  /** Creates a random key in place of an empty one. */
  readonly rotateKey: (key: string) => Promise<void>;
  readonly removeKey: () => Promise<void>;
  readonly remove: () => Promise<void>;
  /** The test events that can be sent: kinds of event, and `notice`. The first is the default. */
  readonly testEvents: readonly string[];
  /** Returns the id of the delivery. */
  readonly test: (values: Values) => Promise<number>;
  readonly listDeliveries: (values: Values) => Promise<DeliveryPage>;
  readonly readDelivery: (id: string) => Promise<DeliveryDetail>;
  readonly sendAgain: (id: string) => Promise<DeliveryView>;
  /** Returns the number of deliveries that waited. */
  readonly sendWaiting: () => Promise<number>;
  /** Returns the number of deliveries that will be sent again. */
  readonly replaySince: (values: Values) => Promise<number>;
}

export interface RepositoryView {
  readonly full_name: string;
  readonly path: string;
  readonly name: string;
  readonly description: string;
  readonly private: boolean;
  readonly owner: { readonly login: string };
}

export interface OwnerView {
  readonly kind: 'user' | 'organization';
  readonly login: string;
  readonly name: string;
  readonly total: number;
  readonly pages: number;
  readonly repositories: readonly (RepositoryView & {
    readonly counts: {
      readonly hooks: number;
      readonly disabled: number;
      readonly switchedOff: number;
      readonly failing: number;
    };
  })[];
}

export interface HookView {
  readonly id: number;
  readonly url: string;
  readonly password: string;
  readonly encryption_type: number;
  readonly profile: string;
  readonly push_events: boolean;
  readonly tag_push_events: boolean;
  readonly issues_events: boolean;
  readonly note_events: boolean;
  readonly merge_requests_events: boolean;
  readonly result: string | null;
  readonly result_code: number;
  readonly created_at: string;
  readonly disabled_at: string | null;
  readonly disabled_reason: string | null;
  /** Whether the owner disabled it, not the service because of failures. */
  readonly isSwitchedOff: boolean;
  readonly paused_since: string | null;
  readonly paused_until: string | null;
  readonly paused_reason: 'failures' | 'no_connection' | 'retry_after' | null;
  readonly hookQueue: {
    readonly fails: number;
    readonly failingSinceMs: number | null;
    readonly waiting: number;
  };
  readonly lastDay: readonly HourView[];
  readonly isChartCut: boolean;
  readonly formerKeys: number;
  readonly formerKeyUntilMs: number | null;
}

export interface HourView {
  readonly startMs: number;
  readonly succeeded: number;
  readonly failed: number;
  readonly waiting: number;
}

export interface DeliveryPage {
  readonly deliveries: readonly ListedDeliveryView[];
  readonly nextBefore: number | undefined;
}

export interface DeliveryView {
  readonly id: number;
  readonly uuid: string;
  readonly event: string;
  /** The subject of the event; null in deliveries that an older version of Trivet created. */
  readonly subject: string | null;
  readonly state: string;
  readonly attempts: number;
  readonly status_code: number;
  readonly created_at: string;
  readonly attempted_at: string | null;
  readonly next_attempt_at: string | null;
  readonly waits_for: 'turn' | 'schedule' | 'pause' | null;
}

/** A delivery with its last attempt. */
export interface ListedDeliveryView extends DeliveryView {
  readonly duration_ms: number | null;
  readonly reason: string | null;
}

export interface DeliveryDetail extends ListedDeliveryView {
  readonly request_body: string;
  readonly attempt_log: readonly AttemptView[];
}

export type Headers = Readonly<Record<string, string | string[]>>;

export interface AttemptView {
  readonly attempt: number;
  readonly started_at: string;
  readonly outcome: string;
  readonly status_code: number;
  readonly reason: string | null;
  readonly remote_address: string | null;
  readonly request_headers: Headers;
  readonly response_headers: Headers;
  readonly response_body: string;
  readonly timings_ms: Timings;
}

/** Milliseconds: the first three are durations, the others count from the start of the attempt. */
export interface Timings {
  readonly dns: number | null;
  readonly connect: number | null;
  readonly tls: number | null;
  readonly firstByte: number | null;
  readonly total: number;
}

export interface RepositoryName {
  readonly ownerLogin: string;
  readonly path: string;
}

export interface WebhookOverview {
  readonly nowMs: number;
  /** Whether the overview covers the whole service, not only the person's webhooks. */
  readonly ofAll: boolean;
  readonly totals: {
    readonly repositories: number;
    readonly hooks: number;
    /** Webhooks that the service disabled because of failures. */
    readonly disabled: number;
    /** Webhooks that their owners switched off. */
    readonly switchedOff: number;
    readonly failing: number;
    readonly paused: number;
  };
  readonly troubled: readonly TroubledHookView[];
  readonly backlog: {
    readonly count: number;
    /** Whether the count stopped at its limit, so that there may be more. */
    readonly isCut: boolean;
    readonly oldest:
      | { readonly hookId: number; readonly repository: RepositoryName; readonly createdAtMs: number }
      | undefined;
  };
  /** The totals of the last hour. */
  readonly hour: MinuteView;
  /** The last hour, oldest first. */
  readonly minutes: readonly MinuteView[];
}

export interface TroubledHookView {
  readonly id: number;
  readonly url: string;
  readonly repository: RepositoryName;
  readonly disabledAtMs: number | null;
  readonly disabledReason: string | null;
  readonly failingSinceMs: number | null;
  readonly fails: number;
  readonly pausedUntilMs: number | null;
  readonly pauseReason: NonNullable<HookView['paused_reason']> | null;
  readonly result: string | null;
  readonly resultCode: number;
}

export interface MinuteView {
  readonly startMs: number;
  readonly accepted: number;
  readonly failed: number;
  /** Null without attempts. */
  readonly medianMs: number | null;
  readonly p95Ms: number | null;
}
