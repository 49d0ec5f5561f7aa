/** Opens the models of a running service or of the store on this machine, for a command. */
import type { CliStoreOptions } from '../../command-line/open-cli-store.ts';
import { openOperator, type ServiceOptions } from '../../command-line/open-operator.ts';
import type { AuditChange } from '../../operations/audit-change.ts';
import type { Operator } from '../../operations/call-on-store.ts';
import { HERE } from '../administration/file-reader.ts';
import { implementModels } from '../administration/implement-models.ts';

export interface OutputOptions extends ServiceOptions {
  readonly json?: boolean;
}

export type OpenModels = (options: ServiceOptions, store?: CliStoreOptions) => Promise<Operator>;

/** Writes the record in the audit log, which is in another area. */
export function createModelsOpener(loadAuditChange: () => Promise<AuditChange>): OpenModels {
  return (options, { ifAbsent } = {}) =>
    openOperator({
      options,
      implementOn: async ({ store, world }) =>
        implementModels({ store, world, reader: HERE, auditChange: await loadAuditChange() }),
      ...(ifAbsent === undefined ? {} : { ifAbsent }),
    });
}
