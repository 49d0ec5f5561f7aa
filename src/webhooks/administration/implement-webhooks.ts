/** Collects all operations on repositories, webhooks, deliveries and events. */
import type { Implementation } from '../../operations/operation.ts';
import type { SendingDependencies } from '../management/management.ts';
import { implementDeliveries } from './implement-deliveries.ts';
import { type HookDependencies, implementHooks } from './implement-hooks.ts';
import { implementRepositories } from './implement-repositories.ts';

export function implementWebhooks(
  management: SendingDependencies,
  { passwords }: Pick<HookDependencies, 'passwords'>,
): Implementation[] {
  return [
    ...implementRepositories(management),
    ...implementHooks({ management, passwords }),
    ...implementDeliveries(management),
  ];
}
