/** Creates the managers of repositories, hooks and events, which the routes and pages of the area, or a command, share. */
import type { Store } from '../../database/store.ts';
import type { SecretCipher } from '../../encryption/secret-cipher.ts';
import type { RequireScope } from '../../http/scope-middleware.ts';
import type { Owners } from '../../identity.ts';
import type { AuditChange } from '../../operations/audit-change.ts';
import type { Log } from '../../telemetry/log.ts';
import type { World } from '../../world.ts';
import type { AddressGuard } from '../addresses/address-guard.ts';
import { createLimitedPlaces, type LimitedPlaces } from '../delivery/worker/limited-places.ts';
import type { ManualAttempts } from '../delivery/worker/manual-attempts.ts';
import { createIntake, type Intake } from '../intake/intake.ts';
import type { IntakeDependencies } from '../intake/pending-event.ts';
import { createRepositoryAccess, type RepositoryAccess } from '../repositories/repository-access.ts';

/** Limits of tests at once, of one person and of this process. Limits of scheduled deliveries do not apply, so a test is sent at once. */
const TEST_LIMITS = { ofOwner: 4, ofAll: 32 };

export interface Management {
  readonly store: Store;
  readonly world: World;
  readonly cipher: SecretCipher;
  readonly owners: Owners;
  /** Creates the statement that records a change of a repository or a hook in the audit log. */
  readonly auditChange: AuditChange;
  /** Address of the resource API as clients see it. */
  readonly baseUrl: string;
  readonly guard: Pick<AddressGuard, 'checkUrl'>;
  /** How many repositories a person or an organization may have. */
  readonly repositoriesPerOwner: number;
  /** Wakes the workers of this process, since there is something to send. */
  readonly wakeDeliveries: () => void;
  readonly intake: Intake;
  readonly access: RepositoryAccess;
  readonly testPlaces: LimitedPlaces<string>;
  /** OWNER/NAME whose webhooks get the notices of the service. */
  readonly noticeRepository?: string | undefined;
}

interface Given
  extends Pick<
    Management,
    | 'store'
    | 'world'
    | 'cipher'
    | 'owners'
    | 'auditChange'
    | 'baseUrl'
    | 'guard'
    | 'repositoriesPerOwner'
    | 'wakeDeliveries'
    | 'noticeRepository'
  > {
  readonly log: Log;
  /** Gives deliveries that this process has just committed to its workers. */
  readonly takeCommitted: IntakeDependencies['onCommitted'];
}

export function createManagement(given: Given): Management {
  const { store, world, log, owners, takeCommitted } = given;
  const intake = createIntake({ store, world, log, onCommitted: takeCommitted });
  return {
    ...given,
    intake,
    access: createRepositoryAccess(store, owners),
    testPlaces: createLimitedPlaces(TEST_LIMITS),
  };
}

/** For operations that send an attempt themselves, such as a test. */
export interface SendingDependencies extends Management {
  readonly manual: Pick<ManualAttempts, 'test' | 'redeliver'>;
}

export interface ManagementDependencies extends Management {
  readonly requireScope: RequireScope;
}
