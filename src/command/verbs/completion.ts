import { shellQuoted } from '../../shared/text/format.js';
import type { Command, Flag } from '../base/command.js';
import { CommandError, exitCodes } from '../base/errors.js';

/** Generates the script for bash 4 or newer, as lines. */
export function bashCompletion(commands: readonly Command[]): string[] {
  const names = commands.map(({ name }) => name).join(' ');
  const [first] = commands;
  return [
    '# Completion of prompt-relay for bash, made by "prompt-relay completion bash".',
    '_prompt_relay() {',
    `  local current=${wordAt('COMP_CWORD')} previous=${wordAt('COMP_CWORD-1')} name=${wordAt('1')}`,
    `  local flags='' words=''`,
    '  COMPREPLY=()',
    '  if ((COMP_CWORD == 1)); then',
    `    flags='--help --version ${flagWords(first?.flags ?? {})}' words='${names} help'`,
    '  else',
    '    case "$name $previous" in',
    ...commands.flatMap(valueCases).map((line) => `      ${line}`),
    '    esac',
    '    case $name in',
    ...commands.map((command) => `      ${command.name}) flags='--help ${flagWords(command.flags)}' ;;`),
    '    esac',
    '    if ((COMP_CWORD == 2)); then',
    '      case $name in',
    `        help) words='${names}' ;;`,
    ...commands.flatMap(({ name, words }) =>
      words === undefined ? [] : [`        ${name}) words='${words.join(' ')}' ;;`],
    ),
    '      esac',
    '    fi',
    '  fi',
    '  if [[ $current == -* ]]; then words=$flags; fi',
    '  mapfile -t COMPREPLY < <(compgen -W "$words" -- "$current")',
    '}',
    'complete -o bashdefault -F _prompt_relay prompt-relay',
  ];
}

function wordAt(index: string): string {
  return `\${COMP_WORDS[${index}]}`;
}

function flagWords(flags: Readonly<Record<string, Flag>>): string {
  return Object.keys(flags)
    .map((name) => `--${name}`)
    .join(' ');
}

/** Generates the cases for the word after a flag that takes a value: only values of the flag are offered. */
function valueCases({ name, flags }: Command): string[] {
  return Object.entries(flags).flatMap(([flag, { type, short, values }]) => {
    if (type === 'boolean') return [];
    const spellings = [`--${flag}`, ...(short === undefined ? [] : [`-${short}`])];
    const pattern = spellings.map((spelling) => `'${name} ${spelling}'`).join(' | ');
    if (values === undefined) return [`${pattern}) compopt +o bashdefault; return ;;`];
    if (values === 'file') {
      const files = `compopt -o filenames; mapfile -t COMPREPLY < <(compgen -f -- "$current")`;
      return [`${pattern}) ${files}; return ;;`];
    }
    return [`${pattern}) mapfile -t COMPREPLY < <(compgen -W '${values.join(' ')}' -- "$current"); return ;;`];
  });
}

/**
 * Generates the function for zsh, as lines of a file `_prompt-relay` in a folder of fpath, which can also be sourced.
 */
export function zshCompletion(commands: readonly Command[]): string[] {
  return [
    '#compdef prompt-relay',
    '# Completion of prompt-relay for zsh, made by "prompt-relay completion zsh".',
    '_prompt_relay() {',
    '  local -a commands=(',
    ...commands.map(({ name, summary }) => `    ${shellQuoted(`${name}:${summary}`)}`),
    '  )',
    '  if ((CURRENT == 2)); then',
    `    _describe -t commands command commands`,
    '    return',
    '  fi',
    '  local name=$words[2]',
    '  shift words',
    '  ((CURRENT--))',
    '  case $name in',
    ...commands.flatMap(caseOf).map((line) => `    ${line}`),
    '  esac',
    '}',
    'if [[ $funcstack[1] == _prompt-relay ]]; then _prompt_relay "$@"; else compdef _prompt_relay prompt-relay; fi',
  ];
}

function caseOf({ name, flags, words }: Command): string[] {
  const specs = [
    `'(-h --help)'{-h,--help}'[show the help of this command]'`,
    ...Object.entries(flags).map(([flag, about]) => specOf(flag, about)),
    ...(words === undefined ? [] : [`'1:what:(${words.join(' ')})' '*:file:_files'`]),
  ];
  return [
    `${name})`,
    '  _arguments \\',
    ...specs.map((spec, index) => `    ${spec}${index < specs.length - 1 ? ' \\' : ''}`),
    '  ;;',
  ];
}

function specOf(name: string, { type, short, multiple = false, values, description }: Flag): string {
  const text = `[${description.replace(/[[\]]/g, '\\$&')}]`;
  const action = values === undefined ? ' ' : values === 'file' ? '_files' : `(${values.join(' ')})`;
  const value = type === 'boolean' ? '' : `:value:${action}`;
  if (short === undefined) return shellQuoted(`${multiple ? '*' : ''}--${name}${text}${value}`);
  const names = multiple ? `'*'{-${short},--${name}}` : `'(-${short} --${name})'{-${short},--${name}}`;
  return names + shellQuoted(text + value);
}

/** Generates the file completions/prompt-relay.fish for fish, as lines. */
export function fishCompletion(commands: readonly Command[]): string[] {
  const names = commands.map(({ name }) => name).join(' ');
  return [
    '# Completion of prompt-relay for fish, made by "prompt-relay completion fish".',
    'complete -c prompt-relay -f',
    `set -l commands ${names}`,
    ...commands.map(({ name, summary }) => {
      const isFirst = `-n "not __fish_seen_subcommand_from $commands"`;
      return `complete -c prompt-relay ${isFirst} -a ${name} -d ${quoted(summary)}`;
    }),
    'complete -c prompt-relay -s h -l help -d "show the help"',
    'complete -c prompt-relay -s v -l version -d "show the version"',
    ...commands.flatMap(ofCommand),
  ];
}

function ofCommand({ name, flags, words }: Command): string[] {
  const start = `complete -c prompt-relay -n "__fish_seen_subcommand_from ${name}"`;
  return [
    ...(words === undefined ? [] : [`${start} -F -a ${quoted(words.join(' '))}`]),
    ...Object.entries(flags).map(([flag, about]) => `${start} ${optionsOf(flag, about)}`),
  ];
}

function optionsOf(name: string, { type, short, values, description }: Flag): string {
  const value = values === undefined ? '-x' : values === 'file' ? '-r -F' : `-x -a ${quoted(values.join(' '))}`;
  return [
    ...(short === undefined ? [] : [`-s ${short}`]),
    `-l ${name}`,
    ...(type === 'boolean' ? [] : [value]),
    `-d ${quoted(description)}`,
  ].join(' ');
}

function quoted(text: string): string {
  return `'${text.replace(/[\\']/g, '\\$&')}'`;
}

const scripts = { bash: bashCompletion, zsh: zshCompletion, fish: fishCompletion } as const;

export const completion: Command = {
  name: 'completion',
  synopsis: 'bash | zsh | fish',
  summary: 'print the script that completes this command in a shell',
  flags: {},
  maxPositionals: 1,
  words: Object.keys(scripts),
  examples: [
    'source <(prompt-relay completion bash)',
    'prompt-relay completion zsh > ~/.zfunc/_prompt-relay',
    'prompt-relay completion fish > ~/.config/fish/completions/prompt-relay.fish',
  ],
  run: async ({ positionals: [shell = ''] }, { terminal, commands }) => {
    const script = Object.entries(scripts).find(([name]) => name === shell)?.[1];
    if (script === undefined)
      throw new CommandError(exitCodes.usage, 'completion: the argument must be bash, zsh or fish');
    await terminal.writeLines(script(commands));
    return exitCodes.ok;
  },
};
