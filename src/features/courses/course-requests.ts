import { z } from 'zod';
import { type CommandArguments, type CommandContext, clientFor, show } from '../../command/base/command.js';
import { exitCodes, usageError } from '../../command/base/errors.js';
import { formatCount, formatNumber } from '../../shared/text/format.js';
import { escaped } from '../../shared/text/paint.js';
import { peopleIn } from './roster-file.js';
import { type Course, courseList200, enrolment201, member200 } from './shared.js';
import { createSheet, sheetText } from './sheet.js';

/** Actions that ask the service, as an administrator or as the teacher of the course. */

export async function listCourses(_: string, args: CommandArguments, context: CommandContext): Promise<number> {
  const body = await (await clientFor(args, context)).getState('/courses', courseList200);
  return show(args, context.terminal, body, (paint) => {
    if (body.courses.length === 0) return ['There are no courses.'];
    const head = ['course', 'members', 'until', 'tokens', 'cost', 'limits'];
    const [title = '', ...lines] = inColumns([head, ...body.courses.map(cellsOf)]);
    return [paint.dim(title), ...lines];
  });
}

function inColumns(rows: readonly (readonly string[])[]): string[] {
  const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)));
  return rows.map((row) =>
    row
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join('  ')
      .trimEnd(),
  );
}

function cellsOf({ name, members, until, tokens, cost_usd: cost, limits }: Course): string[] {
  const shown = limits.filter((limit) => !limit.startsWith('expires='));
  return [name, String(members), until ?? 'no end', formatNumber(tokens), `$${cost.toFixed(2)}`, shown.join(' ')].map(
    escaped,
  );
}

export async function reportCourse(course: string, args: CommandArguments, context: CommandContext): Promise<number> {
  const client = await clientFor(args, context);
  await context.terminal.writeUntrusted(await client.getText(`/courses/${encodeURIComponent(course)}/report`));
  return exitCodes.ok;
}

/** Adds the people of a roster. The sheet is created before the service makes keys, which nobody can read again. */
export async function enrol(course: string, args: CommandArguments, context: CommandContext): Promise<number> {
  const roster = args.value('roster');
  if (roster === undefined) throw usageError('course', 'enrol: name the --roster with the people');
  const people = await peopleIn(roster, false, context);
  const client = await clientFor(args, context);
  const path = args.value('sheet') ?? `${course}-keys.csv`;
  const sheet = await createSheet(path);
  const names = new Map(people.map(({ login, name }) => [login, name]));
  const body = { logins: people.map(({ login }) => login), ...limitsIn(args) };
  try {
    const { added, staying } = await client.send('POST', `${pathOf(course)}/members`, body, enrolment201);
    const lines = added.map(({ login, name, key }) => ({ login, name: names.get(login) ?? '', keyName: name, key }));
    await sheet.write(sheetText(lines, { course, url: client.url }));
    if (added.length === 0) await sheet.remove();
    if (args.has('json')) await context.terminal.writeJson({ course, added: added.map(({ name }) => name), staying });
    context.terminal.sentences(`Added: ${formatCount(added.length, 'member')}. Already there: ${staying.length}.`);
    if (added.length > 0)
      context.terminal.sentences(
        `The keys are in ${path}, and nowhere else: give each person the own line, and delete the sheet.`,
      );
  } catch (error) {
    await sheet.remove();
    throw error;
  }
  return exitCodes.ok;
}

export async function limitMember(course: string, args: CommandArguments, context: CommandContext): Promise<number> {
  const member = memberIn('limit', args);
  const limits = limitsIn(args);
  if (Object.keys(limits).length === 0)
    throw usageError('course', 'limit: set --tokens, --cost or --models; "off" removes a limit');
  const client = await clientFor(args, context);
  const changed = await client.send(
    'PATCH',
    `${pathOf(course)}/members/${encodeURIComponent(member)}`,
    limits,
    member200,
  );
  return show(args, context.terminal, changed, () => [
    escaped(`${changed.name}: ${changed.limits.join(' ') || 'only the limits of the course'}`),
  ]);
}

export async function removeMember(course: string, args: CommandArguments, context: CommandContext): Promise<number> {
  const member = memberIn('remove', args);
  const client = await clientFor(args, context);
  await client.delete(`${pathOf(course)}/members/${encodeURIComponent(member)}`, z.looseObject({}));
  context.terminal.sentences(`${member} was removed from ${course}: the key is refused. The usage and the jobs stay.`);
  return exitCodes.ok;
}

function memberIn(action: string, { positionals: [, , member] }: CommandArguments): string {
  if (member === undefined) throw usageError('course', `${action}: name the member as "course report" shows the name`);
  return member;
}

function pathOf(course: string): string {
  return `/courses/${encodeURIComponent(course)}`;
}

/** Returns the limits that the flags set or, with `off`, remove. */
function limitsIn(args: CommandArguments): Readonly<Record<string, string | readonly string[] | null>> {
  const texts = ['tokens', 'cost', 'models'].map((name) => [name, args.value(name)] as const);
  const wanted = texts.filter((entry): entry is [string, string] => entry[1] !== undefined);
  const readLimit = (name: string, text: string) => (name === 'models' ? text.split('+') : text);
  return Object.fromEntries(wanted.map(([name, text]) => [name, text === 'off' ? null : readLimit(name, text)]));
}
