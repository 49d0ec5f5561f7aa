/** Declares a grant of the token endpoint: a function from request to answer. */

/** A grant of the token endpoint is a function in a file of this folder, which `GRANTS` in ../token.ts lists. */
import type { TokenAnswer } from '../../tokens/issue-tokens.ts';
import type { ProtocolDependencies } from '../../tokens/protocol-dependencies.ts';
import type { AuthenticatedClient } from '../protocol/client-authentication.ts';
import type { ParameterValues } from '../protocol/parameters.ts';

/** A request to the token endpoint, its client authenticated. */
export interface Exchange {
  readonly values: ParameterValues;
  /** Undefined when the request names none, which only a refresh may (GitCode's clients do). */
  readonly client: AuthenticatedClient | undefined;
  readonly address: string;
  readonly nowMs: number;
}

/** One grant type: the tokens, or a refusal of RFC 6749 §5.2. */
export type Grant = (dependencies: ProtocolDependencies, exchange: Exchange) => Promise<TokenAnswer>;
