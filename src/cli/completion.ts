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

/** Words offered after a command. */
interface Words {
  /** The words before, such as `model list`; empty at the start. */
  readonly path: string;
  readonly commands: readonly string[];
  /** Long options, and the values that its arguments can have. */
  readonly optionsAndValues: readonly string[];
}

function listWords(path: string, commands: readonly Command[], optionsAndValues: readonly string[]): Words[] {
  const below = commands.flatMap((command) => {
    // An option may have two long names.
    const names = command.options
      .flatMap(({ short, long }) => [short, long])
      .filter((name) => name?.startsWith('--') === true) as string[];
    const values = command.registeredArguments.flatMap(({ argChoices }) => argChoices ?? []);
    return listWords(`${path} ${command.name()}`.trim(), command.commands, [...values, ...names, '--help']);
  });
  return [{ path, commands: commands.map((command) => command.name()), optionsAndValues }, ...below];
}

const SCRIPT_OF: Readonly<Record<Shell, (words: readonly Words[]) => string>> = {
  bash: writeBash,
  zsh: writeZsh,
  fish: writeFish,
};

function writeBash(words: readonly Words[]): string {
  return `_trivet() {
${writeSearch(words, 'COMP_WORDS[@]:1:COMP_CWORD-1')}
  COMPREPLY=($(compgen -W "$found" -- "\${COMP_WORDS[COMP_CWORD]}"))
}
complete -o default -F _trivet trivet`;
}

/** Without a match, file names are completed, as bash does by default. */
function writeZsh(words: readonly Words[]): string {
  return `(( $+functions[compdef] )) || { autoload -Uz compinit && compinit }
_trivet() {
${writeSearch(words, '(@)words[2,CURRENT-1]')}
  compadd -- \${=found} || _files
}
compdef _trivet trivet`;
}

/**
 * Sets `found` to the words that may follow, in the syntax that bash and zsh share. Words that are not commands, such as names and
 * values of options, do not change the command. In zsh, `path` and `words` are variables of the shell.
 */
function writeSearch(words: readonly Words[], wordsBefore: string): string {
  const commands = words.filter(({ path }) => path !== '').map(({ path }) => `"${path}"`);
  const cases = words.map(
    ({ path, commands: below, optionsAndValues }) =>
      `    "${path}") found="${[...below, ...optionsAndValues].join(' ')}" ;;`,
  );
  return `  local command="" next word found=""
  for word in "\${${wordsBefore}}"; do
    next="\${command:+$command }$word"
    case "$next" in
      ${commands.join('|')}) command="$next" ;;
    esac
  done
  case "$command" in
${cases.join('\n')}
  esac`;
}

function writeFish(words: readonly Words[]): string {
  const paths = words.filter(({ path }) => path !== '').map(({ path }) => `'${path}'`);
  const lines = words.map(({ path, commands, optionsAndValues }) => {
    const all = [...commands, ...optionsAndValues].join(' ');
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
