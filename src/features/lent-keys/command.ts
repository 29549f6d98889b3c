import { type CommandArguments, type CommandContext, clientFor } from '../../command/base/command.js';
import { exitCodes, usageError } from '../../command/base/errors.js';
import { escaped } from '../../shared/text/paint.js';
import { endedLentKey, lentKeyList, newLentKey, ownId } from './shared.js';

const route = '/lent-keys';
const secondsOf = { s: 1, m: 60, h: 3600, d: 86_400 };

/** Makes, ends or lists lent keys. Resolves with the exit code. */
export async function runLend(
  id: string | undefined,
  args: CommandArguments,
  context: CommandContext,
): Promise<number> {
  const time = args.value('for');
  const chosen = [time !== undefined, args.has('end'), args.has('list')];
  if (chosen.filter(Boolean).length !== 1) throw usageError('keys', 'lend: needs one of --for, --end and --list');
  if (args.has('end')) return endKey(id ?? ownId, args, context);
  if (id !== undefined) throw usageError('keys', `lend: unexpected argument ${id}`);
  return time === undefined ? listKeys(args, context) : lendKey(readSeconds(time), args, context);
}

function readSeconds(text: string): number {
  const [, count, unit = ''] = /^([1-9]\d{0,8})([smhd])$/.exec(text) ?? [];
  if (count === undefined) throw usageError('keys', 'lend: --for must be a time such as 90m or 4h');
  return Number(count) * secondsOf[unit as keyof typeof secondsOf];
}

async function lendKey(seconds: number, args: CommandArguments, context: CommandContext): Promise<number> {
  const { terminal } = context;
  const lent = await (await clientFor(args, context)).postBody(route, { seconds }, newLentKey);
  terminal.sentences(`The key ${lent.id} acts for ${lent.client} until ${lent.expires_at}.`);
  if (args.has('json')) await terminal.writeJson(lent);
  else await terminal.writeLine(lent.key);
  return exitCodes.ok;
}

async function endKey(id: string, args: CommandArguments, context: CommandContext): Promise<number> {
  const { terminal } = context;
  const ended = await (await clientFor(args, context)).delete(`${route}/${encodeURIComponent(id)}`, endedLentKey);
  if (args.has('json')) await terminal.writeJson(ended);
  terminal.sentences(`The lent key ${ended.id} has ended.`);
  return exitCodes.ok;
}

async function listKeys(args: CommandArguments, context: CommandContext): Promise<number> {
  const { terminal } = context;
  const body = await (await clientFor(args, context)).getState(route, lentKeyList);
  const lines = body.keys.map(({ id, client, expires_at: until }) => `${id}  until ${until}  ${client}`);
  if (args.has('json')) await terminal.writeJson(body);
  else await terminal.writeLines(lines.map(escaped));
  return exitCodes.ok;
}
