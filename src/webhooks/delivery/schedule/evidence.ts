/**
 * Maps the outcome of an attempt to an event of two breakers: that of the hook and that of its origin.
 *
 * An answer comes from one path, so it is evidence about that hook alone, whatever its status: many owners may have hooks
 * at one Jenkins or one gateway, and no answer to one of them may stop another. Only what happens before a request is
 * sent, the name, the connection and TLS, is the same for all hooks of an origin, and no path can bring it about.
 */

import type { BreakerEvent } from './breaker.ts';
import type { Outcome } from './delivery.ts';

export interface Evidence {
  /** Undefined: no evidence. */
  readonly ofHook: BreakerEvent | undefined;
  readonly ofOrigin: BreakerEvent | undefined;
}

const SUCCESS: BreakerEvent = { kind: 'success' };
const FAILURE: BreakerEvent = { kind: 'failure' };

type EvidenceOf = { readonly [K in Outcome['kind']]: (outcome: Extract<Outcome, { kind: K }>) => Evidence };

const EVIDENCE_OF: EvidenceOf = {
  accepted: () => ({ ofHook: SUCCESS, ofOrigin: SUCCESS }),
  refused: (outcome) => ({ ofHook: judgeRefusal(outcome), ofOrigin: SUCCESS }),
  gone: () => ({ ofHook: FAILURE, ofOrigin: SUCCESS }),
  unreachable: ({ stage }) => EVIDENCE_OF_STAGE[stage],
  // The receiver was not asked.
  blocked: () => ({ ofHook: FAILURE, ofOrigin: undefined }),
};

const EVIDENCE_OF_STAGE: Readonly<Record<Extract<Outcome, { kind: 'unreachable' }>['stage'], Evidence>> = {
  // The sender's own fault: the receiver was not asked.
  prepare: { ofHook: FAILURE, ofOrigin: undefined },
  connect: { ofHook: undefined, ofOrigin: FAILURE },
  // One path may stay silent while the others answer.
  answer: { ofHook: FAILURE, ofOrigin: SUCCESS },
};

export function evidenceOf(outcome: Outcome): Evidence {
  return (EVIDENCE_OF[outcome.kind] as (outcome: Outcome) => Evidence)(outcome);
}

/** RFC 6585 §4: 429 is about this sender's rate, so the wait counts at once. With any other status it counts once most fail. */
function judgeRefusal({ status, retryAfterMs = 0 }: Extract<Outcome, { kind: 'refused' }>): BreakerEvent {
  if (retryAfterMs === 0) return FAILURE;
  return { kind: status === 429 ? 'rate_limited' : 'failure', askedMs: retryAfterMs };
}
