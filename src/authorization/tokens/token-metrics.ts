/** Counts issued, refused and ended tokens by grant and reason. */
import { Counter } from 'prom-client';
import type { VerifyToken } from '../../identity.ts';
import type { Metrics } from '../../telemetry/metrics.ts';
import { isSecretOf } from '../accounts/secret-text.ts';

/** Grants and tokens; `other` is a text that is no token, or an unsupported grant type. */
export type TokenKind =
  | 'authorization_code'
  | 'device_code'
  | 'client_credentials'
  | 'refresh_token'
  | 'access'
  | 'personal'
  | 'other';

/** The kinds that each event can have; all series start at 0, before their first event. */
const KINDS_OF = {
  issued: ['authorization_code', 'device_code', 'client_credentials', 'personal'],
  refreshed: ['refresh_token'],
  revoked: ['access', 'refresh_token', 'personal'],
  ended: ['refresh_token', 'personal'],
  refused: ['authorization_code', 'device_code', 'client_credentials', 'refresh_token', 'access', 'personal', 'other'],
} as const satisfies Readonly<Record<string, readonly TokenKind[]>>;

export type TokenEvent = keyof typeof KINDS_OF;

const END_REASONS = ['password', 'second_step', 'consent', 'promotion'] as const;
/** The events that end tokens. */
export type EndReason = (typeof END_REASONS)[number];

export interface EndedTokens {
  readonly reason: EndReason;
  readonly count: number;
}

export type CountToken = (event: TokenEvent, kind: TokenKind, ended?: EndedTokens) => void;

export function createTokenCount(metrics: Metrics): CountToken {
  const tokens = new Counter({
    name: 'trivet_tokens_total',
    help: 'Tokens and grants of this process: issued, refreshed, revoked, ended (by reason) and refused, by kind.',
    labelNames: ['event', 'kind', 'reason'],
    registers: [metrics],
  });
  for (const [event, kinds] of Object.entries(KINDS_OF))
    for (const kind of kinds) for (const labels of listReasons(event)) tokens.inc({ event, kind, ...labels }, 0);
  return (event, kind, ended) => {
    if (ended === undefined) tokens.inc({ event, kind });
    else tokens.inc({ event, kind, reason: ended.reason }, ended.count);
  };
}

/** The label `reason` is set only for tokens that ended. */
function listReasons(event: string): readonly { readonly reason?: EndReason }[] {
  return event === 'ended' ? END_REASONS.map((reason) => ({ reason })) : [{}];
}

/** Wraps `verifyToken` to count the tokens that it refuses: unknown, expired or revoked. */
export function countRefusals(countToken: CountToken, verifyToken: VerifyToken): VerifyToken {
  return async (token) => {
    const identity = await verifyToken(token);
    if (identity === undefined) countToken('refused', nameKind(token));
    return identity;
  };
}

function nameKind(token: string): TokenKind {
  if (isSecretOf('access', token)) return 'access';
  return isSecretOf('personal', token) ? 'personal' : 'other';
}
