/** Creates once what manages repositories, hooks and events, for the area or a command. */
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

/** Of one person and of this process. Tests ignore the limits of scheduled deliveries, so that a person sees at once whether the receiver works. */
const TEST_LIMITS = { ofOwner: 4, ofAll: 32 };

export interface Management {
  readonly store: Store;
  readonly world: World;
  readonly cipher: SecretCipher;
  readonly owners: Owners;
  /** Every change of a repository or a hook is recorded by a step of this. */
  readonly auditChange: AuditChange;
  /** Address of the resource API as clients see it. */
  readonly baseUrl: string;
  readonly guard: Pick<AddressGuard, 'checkUrl'>;
  /** How many repositories a person or an organization may have. */
  readonly repositoriesPerOwner: number;
  /** Tells the workers of this process that there is something to send. */
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
  /** Gives the workers of this process what it has just committed. */
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

/** Operations that send an attempt themselves, such as a test, need these. */
export interface SendingDependencies extends Management {
  readonly manual: Pick<ManualAttempts, 'test' | 'redeliver'>;
}

export interface ManagementDependencies extends Management {
  readonly requireScope: RequireScope;
}
