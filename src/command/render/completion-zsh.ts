import type { Command, Flag } from '../command.js';
import { shellQuoted } from './shell.js';

/** The lines of a function for zsh: a file named _prompt-relay in a folder of fpath, or sourced. */
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
