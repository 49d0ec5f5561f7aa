import type { AuthenticatedClient } from '../client-authentication.ts';
import type { TokenAnswer } from '../issue-tokens.ts';
import type { ProtocolParts } from '../parts.ts';

/** A request to the token endpoint, its client authenticated. */
export interface Exchange {
  readonly values: ReadonlyMap<string, string>;
  /** Undefined when the request names none, which only a refresh may (the contract). */
  readonly client: AuthenticatedClient | undefined;
  readonly address: string;
  readonly nowMs: number;
}

/** One grant type: the tokens, or a refusal of RFC 6749 §5.2. */
export type Grant = (parts: ProtocolParts, exchange: Exchange) => Promise<TokenAnswer>;
