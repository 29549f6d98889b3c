import { bufferedPrograms } from './buffered-programs.js';
import type { Values } from './variables.js';

/** What a shell would do something about, outside of quotes. */
const shellSigns = /\|\|?|&&?|;|\d?>>?(?:&\d)?|<<?|`|\$\w+|\$[({]|(?<=^|\s)~|\*|\{[^{}\s]*,[^{}\s]*\}/g;
/** In capitals, as variables are: names of model CLIs stand before an equals sign too. */
const assignment = /^\s*([A-Z_][A-Z0-9_]*)=/;

type CommandVariables = Readonly<Record<string, string | undefined>>;

/** What is probably meant otherwise in the command line of the model CLI. Shows no word of it: there may be a key among them. */
export function commandWarnings(env: CommandVariables, values: Values): string[] {
  const { MODEL_API_CLI_COMMAND: command, MODEL_API_CLIS: clis, MODEL_API_CLI_ARGS: extraArgs } = values;
  const given = Object.fromEntries(values.MODEL_API_CLI_ENV.map((name) => [name, env[name]]));
  const commands = [command, ...clis.map((cli) => cli.command)].filter((each) => each !== null);
  if (commands.length === 0) return [];
  const name = clis.length > 0 ? 'MODEL_API_CLIS' : 'MODEL_API_CLI_COMMAND';
  const buffered = commands.flatMap((each) => bufferedPrograms([...each, ...extraArgs], given));
  return [
    ...unshelled(name, env[name] ?? ''),
    ...unshelled('MODEL_API_CLI_ARGS', env.MODEL_API_CLI_ARGS ?? ''),
    ...[...new Set(buffered)].map((warning) => `${name}: ${warning}`),
  ];
}

/** What means something to a shell only, in the line of the variable with this name. */
export function unshelled(name: string, line: string): string[] {
  const bare = withoutQuoted(line);
  const [, variable] = assignment.exec(bare) ?? [];
  const signs = [...new Set(bare.match(shellSigns) ?? [])];
  return [
    ...(variable === undefined ? [] : [`${name}: ${variable}=… in front names a program: put env before it`]),
    ...(signs.length === 0 ? [] : [`${name}: ${signs.join(' ')} ${meansNothing(signs.length)}`]),
  ];
}

function meansNothing(count: number): string {
  const verb = count === 1 ? 'means' : 'mean';
  return `${verb} nothing without a shell: quote what the program is to see, or name a shell, as in sh -c '…'`;
}

/** What is quoted stands for nothing, but for the signs that mean something between double quotes too. */
function withoutQuoted(line: string): string {
  return line.replace(/'[^']*'|"(?:[^"\\]|\\[\s\S])*"|\\[\s\S]/g, (quoted) => {
    const open = quoted.startsWith('"') ? quoted.replace(/\\[\s\S]/g, 'qq') : '';
    return `q${(open.match(/\$\w+|\$[({]|`/g) ?? []).join('')}-`;
  });
}
