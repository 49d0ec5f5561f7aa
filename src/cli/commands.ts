/** Lists the commands, loads each when it is called, and passes it functions of other areas. Subcommands are in each command's file. */
import { type Command, Help, type Option } from 'commander';
import type { AuditChange } from '../operations/audit-change.ts';
import type { OpenWebhooks } from '../webhooks/commands/open-webhooks.ts';

/** Loaded with the commands about webhooks, not with every command. */
async function openWebhooks(): Promise<OpenWebhooks> {
  const { createWebhooksOpener } = await import('../webhooks/commands/open-webhooks.ts');
  return createWebhooksOpener(async () => {
    const { createOwners } = await import('../authorization/accounts/owners.ts');
    return { createOwners, auditChange: await loadAuditChange() };
  });
}

async function loadAuditChange(): Promise<AuditChange> {
  return (await import('../authorization/administration/administration.ts')).auditChange;
}

async function loadRepositoryCheck() {
  return (await import('../webhooks/repositories/repository-access.ts')).createRepositoryCheck;
}

/** All groups of commands in the order of the help; each is loaded when it is called. */
const loaders: Readonly<Record<string, () => Promise<Command>>> = {
  serve: async () => (await import('./serve.ts')).createServeCommand(),
  demo: async () => (await import('./demo.ts')).createDemoCommand(),
  login: async () => (await import('./login.ts')).createLoginCommand(),
  logout: async () => (await import('./login.ts')).createLogoutCommand(),
  model: async () => {
    const { createModelsOpener } = await import('../prediction/commands/open-models.ts');
    return (await import('../prediction/commands/model.ts')).createModelCommand(createModelsOpener(loadAuditChange));
  },
  predict: async () => (await import('../prediction/commands/predict.ts')).createPredictCommand(),
  observe: async () => (await import('../prediction/commands/observe.ts')).createObserveCommand(),
  simulate: async () => (await import('../prediction/commands/simulate.ts')).createSimulateCommand(),
  user: async () => (await import('../authorization/commands/user.ts')).createUserCommand(),
  org: async () => (await import('../authorization/commands/org.ts')).createOrgCommand(),
  app: async () => (await import('../authorization/commands/app.ts')).createAppCommand(),
  token: async () => (await import('../authorization/commands/token.ts')).createTokenCommand(loadRepositoryCheck),
  'signing-key': async () => (await import('../authorization/commands/signing-key.ts')).createSigningKeyCommand(),
  audit: async () => (await import('../authorization/commands/audit.ts')).createAuditCommand(),
  repo: async () => (await import('../webhooks/commands/repo.ts')).createRepoCommand(await openWebhooks()),
  hook: async () => (await import('../webhooks/commands/hook.ts')).createHookCommand(await openWebhooks()),
  event: async () => (await import('../webhooks/commands/event.ts')).createEventCommand(await openWebhooks()),
  listen: async () => (await import('../webhooks/commands/listen.ts')).createListenCommand(),
  'git-hook': async () => (await import('../webhooks/commands/git-hook.ts')).createGitHookCommand(),
  doctor: async () => (await import('./doctor.ts')).createDoctorCommand(),
  config: async () => (await import('./config.ts')).createConfigCommand(),
  completion: async () => (await import('./completion.ts')).createCompletionCommand(loadCommands),
  vault: async () => (await import('./vault.ts')).createVaultCommand(),
  backup: async () => (await import('./backup.ts')).createBackupCommand(),
  migrate: async () => (await import('./migrate.ts')).createMigrateCommand(),
};

/** Returns the group that the first word names; all groups if it names none, for the help and for suggestions. */
export async function loadCommands(first: string | undefined): Promise<Command[]> {
  const loader = first !== undefined && Object.hasOwn(loaders, first) ? loaders[first] : undefined;
  const loading = loader === undefined ? Object.values(loaders).map((load) => load()) : [loader()];
  return (await Promise.all(loading)).map(markRequired);
}

/** Marks required options in the help of a command and of all below it; subcommands that `new Command()` created do not inherit it. */
function markRequired(command: Command): Command {
  command.configureHelp({ ...command.configureHelp(), optionDescription: describeOption });
  for (const child of command.commands) markRequired(child);
  return command;
}

const plainHelp = new Help();

function describeOption(option: Option): string {
  const description = plainHelp.optionDescription(option);
  return option.mandatory ? `(required) ${description}` : description;
}
