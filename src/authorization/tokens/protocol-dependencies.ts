/** Declares the dependencies of the OAuth endpoints: store, settings, keys, logs. */
import type { Config } from '../../config/config.ts';
import type { Store } from '../../database/store.ts';
import type { SecretCipher } from '../../encryption/secret-cipher.ts';
import type { FindUnknownRepositories } from '../../identity.ts';
import type { Log } from '../../telemetry/log.ts';
import type { World } from '../../world.ts';
import type { ClientLimits } from '../accounts/client-limits.ts';
import type { RefusalLog } from '../accounts/refusal-log.ts';
import type { IssueLog } from './issue-log.ts';
import type { SigningKeys } from './signing-keys.ts';
import type { CountToken } from './token-metrics.ts';

export interface ProtocolDependencies {
  readonly store: Store;
  readonly world: World;
  readonly log: Log;
  readonly cipher: SecretCipher;
  /** The address of the authorization server, which is also `iss`. */
  readonly issuer: string;
  /** The address of the resource API. */
  readonly baseUrl: string;
  readonly settings: Config['authorization'];
  readonly limits: ClientLimits;
  /** Records failed client authentications. */
  readonly refusals: RefusalLog;
  /** Records issued tokens. */
  readonly issueLog: IssueLog;
  readonly signingKeys: SigningKeys;
  readonly countToken: CountToken;
  /** Absent if the service has no repositories. */
  readonly findUnknownRepositories?: FindUnknownRepositories | undefined;
}
