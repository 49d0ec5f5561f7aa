/** Runs `trivet serve`: starts the service. */
import { Command } from 'commander';

export function createServeCommand(): Command {
  return new Command('serve')
    .description(
      'Start the service: HTTP, gRPC and the background work. Settings come from the environment and trivet.toml',
    )
    .action(async () => (await import('../main.ts')).serve());
}
