import type { Command, Flag } from '../command.js';

/** The lines of a script for bash 4 or newer. */
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

/** What stands after a flag that takes a value is that value, and no other word. */
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
