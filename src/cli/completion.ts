/** Runs `trivet completion`: prints the completion script of a shell. */
import { Argument, Command } from 'commander';
import { print } from '../command-line/output.ts';

type LoadCommands = (first: string | undefined) => Promise<Command[]>;
type Shell = 'bash' | 'zsh' | 'fish';

export function createCompletionCommand(loadCommands: LoadCommands): Command {
  return new Command('completion')
    .description('Print a script that completes commands and options: eval "$(trivet completion bash)"')
    .addArgument(new Argument('<shell>', 'the shell').choices(['bash', 'zsh', 'fish']))
    .action(async (shell: Shell) => {
      const words = listWords('', await loadCommands(undefined), ['--help', '--version']);
      print(SCRIPT_OF[shell](words));
    });
}

/** These may follow the words of a command. */
interface Words {
  /** The words before, as `model list`; empty at the start. */
  readonly path: string;
  readonly commands: readonly string[];
  readonly options: readonly string[];
}

function listWords(path: string, commands: readonly Command[], options: readonly string[]): Words[] {
  const below = commands.flatMap((command) => {
    // An option may have two long names.
    const names = command.options
      .flatMap(({ short, long }) => [short, long])
      .filter((name) => name?.startsWith('--') === true) as string[];
    return listWords(`${path} ${command.name()}`.trim(), command.commands, [...names, '--help']);
  });
  return [{ path, commands: commands.map((command) => command.name()), options }, ...below];
}

const SCRIPT_OF: Readonly<Record<Shell, (words: readonly Words[]) => string>> = {
  bash: writeBash,
  zsh: (words) => `autoload -U +X bashcompinit && bashcompinit\n${writeBash(words)}`,
  fish: writeFish,
};

/** Words that are no command, such as names and values of options, leave the path as it is. */
function writeBash(words: readonly Words[]): string {
  const cases = words.map(
    ({ path, commands, options }) => `    "${path}") words="${[...commands, ...options].join(' ')}" ;;`,
  );
  const paths = words.filter(({ path }) => path !== '').map(({ path }) => `"${path}"`);
  return `_trivet() {
  local path="" next word words=""
  for word in "\${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    next="\${path:+$path }$word"
    case "$next" in
      ${paths.join('|')}) path="$next" ;;
    esac
  done
  case "$path" in
${cases.join('\n')}
  esac
  COMPREPLY=($(compgen -W "$words" -- "\${COMP_WORDS[COMP_CWORD]}"))
}
complete -o default -F _trivet trivet`;
}

function writeFish(words: readonly Words[]): string {
  const paths = words.filter(({ path }) => path !== '').map(({ path }) => `'${path}'`);
  const lines = words.map(({ path, commands, options }) => {
    const all = [...commands, ...options].join(' ');
    return `complete -c trivet -n 'test "$(__trivet_path)" = "${path}"' -a '${all}'`;
  });
  return `function __trivet_path
  set -l path ''
  for word in (commandline -opc)[2..]
    set -l next (string trim "$path $word")
    contains -- "$next" ${paths.join(' ')}; and set path "$next"
  end
  echo "$path"
end
${lines.join('\n')}`;
}
