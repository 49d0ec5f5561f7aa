/** Lists the keys that sign identity tokens, and replaces them when one has leaked (`trivet signing-key`). */
import { Command } from 'commander';
import { print, printJson, printTable, remark } from '../../command-line/output.ts';
import { listKeys, replaceKeys } from '../administration/signing-key-operations.ts';
import { type AnswerOptions, addAnswerOptions, openAdministration } from './open-administration.ts';

export function createSigningKeyCommand(): Command {
  const command = new Command('signing-key').description('List the keys that sign identity tokens, and replace them');
  const add = (words: string, description: string, json?: string) =>
    addAnswerOptions(command.command(words).description(description), json);
  add('list', 'List the keys, oldest first', 'one JSON object a line').action(list);
  add('replace', 'Replace all keys at once after a leak; identity tokens that they signed become invalid').action(
    replace,
  );
  return command;
}

async function list(options: AnswerOptions): Promise<void> {
  await using operator = await openAdministration(options);
  const { keys } = await operator.call(listKeys, {});
  if (options.json) {
    for (const key of keys) printJson(key);
    return;
  }
  const rows = keys.map(({ kid, isSigning, createdAtMs, publishedUntilMs }) => [
    kid,
    isSigning ? 'signs' : 'published',
    new Date(createdAtMs).toISOString(),
    new Date(publishedUntilMs).toISOString(),
  ]);
  printTable(['key', 'state', 'created', 'published until'], rows, 'No key yet: the first identity token creates one');
}

async function replace(options: AnswerOptions): Promise<void> {
  await using operator = await openAdministration(options);
  const changed = await operator.call(replaceKeys, {});
  if (options.json) printJson(changed);
  else print(`The key ${changed.kid} signs now; keys replaced: ${changed.replaced.length}`);
  remark(
    'Sessions and access tokens stay valid. An application that caches the published keys accepts tokens of the old ones until it reads /oauth/jwks again: restart it, or clear its cache.',
  );
}
