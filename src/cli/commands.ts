import type { Command } from 'commander';

/** Every group of commands there is, in the order of the help; each is loaded when it is asked for. */
const loaders: Readonly<Record<string, () => Promise<Command>>> = {
  serve: async () => (await import('./serve.ts')).createServeCommand(),
  demo: async () => (await import('./demo.ts')).createDemoCommand(),
  model: async () => (await import('./model.ts')).createModelCommand(),
  predict: async () => (await import('./predict.ts')).createPredictCommand(),
  observe: async () => (await import('./observe.ts')).createObserveCommand(),
  simulate: async () => (await import('./simulate.ts')).createSimulateCommand(),
  user: async () => (await import('./user.ts')).createUserCommand(),
  org: async () => (await import('./org.ts')).createOrgCommand(),
  app: async () => (await import('./app.ts')).createAppCommand(),
  token: async () => (await import('./token.ts')).createTokenCommand(),
  audit: async () => (await import('./audit.ts')).createAuditCommand(),
  repo: async () => (await import('./repo.ts')).createRepoCommand(),
  hook: async () => (await import('./hook.ts')).createHookCommand(),
  event: async () => (await import('./event.ts')).createEventCommand(),
  listen: async () => (await import('./listen.ts')).createListenCommand(),
  'git-hook': async () => (await import('./git-hook.ts')).createGitHookCommand(),
  vault: async () => (await import('./vault.ts')).createVaultCommand(),
  backup: async () => (await import('./backup.ts')).createBackupCommand(),
  migrate: async () => (await import('./migrate.ts')).createMigrateCommand(),
};

/** The group that the first word names; all of them when it names none, for the help and to suggest what was meant. */
export async function loadCommands(first: string | undefined): Promise<Command[]> {
  const loader = first !== undefined && Object.hasOwn(loaders, first) ? loaders[first] : undefined;
  return loader === undefined ? await Promise.all(Object.values(loaders).map((load) => load())) : [await loader()];
}
