/** Declares the type of a grant of the token endpoint: a function in a file of this folder, listed in `GRANTS` of ../token.ts. */
import type { TokenAnswer } from '../../tokens/issue-tokens.ts';
import type { ProtocolDependencies } from '../../tokens/protocol-dependencies.ts';
import type { AuthenticatedClient } from '../protocol/client-authentication.ts';
import type { ParameterValues } from '../protocol/parameters.ts';

/** A request to the token endpoint after client authentication. */
export interface Exchange {
  readonly values: ParameterValues;
  /** Undefined if the request names no client, which is allowed only in a refresh (GitCode's clients do so). */
  readonly client: AuthenticatedClient | undefined;
  readonly address: string;
  readonly nowMs: number;
}

/** Returns the tokens, or throws an error of RFC 6749 §5.2. */
export type Grant = (dependencies: ProtocolDependencies, exchange: Exchange) => Promise<TokenAnswer>;
