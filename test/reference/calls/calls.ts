import type { ApiClient } from '../../support/api/api-client.ts';
import type { FormClient } from '../../support/network/form-client.ts';

/** What every list of calls works on: the real program, an administrator named root, and the model `m` with two versions. */
export interface Calls extends Pick<ApiClient, 'api'> {
  /** A browser in which root has signed in. */
  readonly browser: FormClient;
  /** A file of observations. */
  readonly trace: Uint8Array;
  /** Takes every delivery. */
  readonly receiverUrl: string;
}
