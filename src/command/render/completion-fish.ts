import type { Command, Flag } from '../command.js';

/** The lines of a file for fish: completions/prompt-relay.fish. */
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
