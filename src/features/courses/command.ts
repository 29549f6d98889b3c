import { randomBytes } from 'node:crypto';
import type { CommandArguments, CommandContext } from '../../command/base/command.js';
import { CommandError, exitCodes, usageError } from '../../command/base/errors.js';
import { printUse } from '../../command/base/file-in-use.js';
import { readDay } from '../../shared/config/key-values.js';
import { readKeysFile } from '../../shared/config/keys-file.js';
import { formatCount } from '../../shared/text/format.js';
import { fileFault } from '../../shared/text/system-error.js';
import {
  type CourseEdit,
  CourseFault,
  type CourseMember,
  type CourseOrder,
  courseEnd,
  type GroupTexts,
  membersIn,
  usersOf,
  withCourse,
  withCourseEnd,
  withoutCourse,
} from './course-lines.js';
import { enrol, limitMember, listCourses, removeMember, reportCourse } from './course-requests.js';
import { courseName } from './roster.js';
import { peopleIn, refusedCourse } from './roster-file.js';
import { createSheet, sheetText } from './sheet.js';

type CourseAction = (course: string, args: CommandArguments, context: CommandContext) => Promise<number>;

const actions: Readonly<Record<string, CourseAction>> = {
  ...{ add, end, list: listCourses, report: reportCourse },
  ...{ enrol, limit: limitMember, remove: removeMember },
};

/** Flags of each action; `url`, `key` and `json` have a meaning for all of them. */
const flagsOf: Readonly<Record<string, readonly string[]>> = {
  add: ['until', 'roster', 'each', 'tokens', 'cost', 'models', 'sign-on', 'remove-absent', 'sheet', 'dry-run'],
  end: ['remove', 'dry-run'],
  enrol: ['roster', 'tokens', 'cost', 'models', 'sheet'],
  limit: ['tokens', 'cost', 'models'],
};

/** Resolves with the exit code. */
export function runCourse(args: CommandArguments, context: CommandContext): Promise<number> {
  const [action = '', course, third] = args.positionals;
  const act = Object.hasOwn(actions, action) ? actions[action] : undefined;
  const known = Object.keys(actions);
  if (act === undefined)
    throw usageError('course', `the action must be ${known.slice(0, -1).join(', ')} or ${known.at(-1)}`);
  const unexpected = action === 'list' ? course : action === 'report' || action === 'enrol' ? third : undefined;
  if (unexpected !== undefined) throw usageError('course', `${action}: unexpected argument ${unexpected}`);
  const unused = Object.values(flagsOf)
    .flat()
    .find((flag) => (args.has(flag) || args.value(flag) !== undefined) && !flagsOf[action]?.includes(flag));
  if (unused !== undefined) throw usageError('course', `${action}: --${unused} has no meaning here`);
  if (action !== 'list' && !courseName.test(course ?? ''))
    throw usageError('course', `${action}: name the course with 1 to 32 letters, digits and . _ -`);
  return act(course ?? '', args, context);
}

async function add(course: string, args: CommandArguments, context: CommandContext): Promise<number> {
  const path = context.keysFilePath(args.positionals[2]);
  const order = await orderOf(course, args, context);
  const keys = new Map<string, string>();
  const keyFor = (name: string) => {
    const key = keys.get(name) ?? `pr_${randomBytes(24).toString('base64url')}`;
    keys.set(name, key);
    return key;
  };
  const plan = planned(() => withCourse(order.text, order, context.keyOptions, keyFor));
  checkFaults(order.text, plan.text, context);
  const sheet = plan.added.some(({ isKey }) => isKey) ? (args.value('sheet') ?? `${course}-keys.csv`) : null;
  if (!args.has('dry-run')) await save(path, plan, sheet, { order, keyFor, url: args.value('url') ?? null }, context);
  await tellAdd(course, plan, { path, sheet }, args, context);
  return exitCodes.ok;
}

interface AddOrder extends CourseOrder {
  /** Keys file before the change. */
  readonly text: string;
}

async function orderOf(course: string, args: CommandArguments, context: CommandContext): Promise<AddOrder> {
  const path = context.keysFilePath(args.positionals[2]);
  const text = await context.files.readRegular(path).then(String, (error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return '';
    throw new CommandError(exitCodes.config, `course: ${fileFault(path, error)}`);
  });
  const roster = args.value('roster');
  const isSignOn = args.has('sign-on');
  const people = roster === undefined ? null : await peopleIn(roster, isSignOn, context);
  if (people === null && args.has('remove-absent'))
    throw usageError('course', 'add: --remove-absent needs the --roster with those who stay');
  return {
    ...{ course, text, isSignOn, people: people ?? [] },
    options: optionsOf(args, context.clock.now()),
    removesOthers: args.has('remove-absent'),
  };
}

/** Returns the options of the line of the group that the flags set. */
function optionsOf(args: CommandArguments, now: number): GroupTexts {
  const until = args.value('until');
  if (until !== undefined) checkDay(until, now);
  const limits = args.values('each').map((limit) => {
    const [, option, amount] = /^(?:each=)?([^=\s,]+)[=:]([^=\s,]+)$/.exec(limit) ?? [];
    if (option === undefined) throw usageError('course', 'add: --each must be a limit such as tokens=200000/week');
    return `${option}:${amount}`;
  });
  const single = ['tokens', 'cost', 'models'].map((name) => [name, args.value(name)] as const);
  const texts = [['expires', until] as const, ...single].filter(
    (entry): entry is [string, string] => entry[1] !== undefined,
  );
  const odd = texts.find(([, text]) => !/^[^\s,]+$/.test(text));
  if (odd !== undefined) throw usageError('course', `add: the value of ${odd[0]} must have no blanks and no commas`);
  const options = texts.map(([name, text]) => [name, [text]] as const);
  return Object.fromEntries([...options, ...(limits.length === 0 ? [] : [['each', limits] as const])]);
}

function checkDay(day: string, now: number): void {
  try {
    if (readDay(day) > now) return;
  } catch {
    throw usageError('course', 'add: --until must be a day such as 2027-07-15');
  }
  throw usageError('course', `add: --until ${day} is over`);
}

function planned<T>(plan: () => T): T {
  try {
    return plan();
  } catch (error) {
    throw error instanceof CourseFault ? refusedCourse(error.faults, 'The course cannot be changed so') : error;
  }
}

/** Throws if a changed keys file has a fault that it did not have before. */
function checkFaults(before: string, after: string, { keyOptions }: CommandContext): void {
  const plainly = (fault: string) => fault.replace(/\bline \d+/g, '');
  const known = new Set(readKeysFile(before, keyOptions).faults.map(plainly));
  const added = readKeysFile(after, keyOptions).faults.filter((fault) => !known.has(plainly(fault)));
  if (added.length > 0) throw refusedCourse(added, 'The keys file would have a new fault');
}

interface SaveOrder {
  readonly order: CourseOrder;
  readonly keyFor: (name: string) => string;
  readonly url: string | null;
}

/**
 * Writes the sheet, and then the keys file. A command that is killed in between leaves the old keys file, and a sheet
 * with keys that never work.
 */
async function save(
  path: string,
  { added }: CourseEdit,
  sheetPath: string | null,
  { order, keyFor, url }: SaveOrder,
  { editKeysFile, keyOptions }: CommandContext,
): Promise<void> {
  const lines = added.map(({ id, person }) => ({ ...person, keyName: id, key: keyFor(id) }));
  const sheet = sheetPath === null ? null : await createSheet(sheetPath);
  try {
    await sheet?.write(sheetText(lines, { course: order.course, url }));
    await editKeysFile(path, true, (text) => {
      const edit = planned(() => withCourse(text, order, keyOptions, keyFor));
      const isSame = edit.added.map(({ id }) => id).join() === added.map(({ id }) => id).join();
      if (!isSame) throw new CommandError(exitCodes.tryLater, `course: another program has changed ${path}: try again`);
      return edit.text;
    });
  } catch (error) {
    await sheet?.remove();
    throw error;
  }
}

interface Places {
  readonly path: string;
  readonly sheet: string | null;
}

async function tellAdd(
  course: string,
  { isNew, added, staying, absent }: CourseEdit,
  { path, sheet }: Places,
  args: CommandArguments,
  context: CommandContext,
): Promise<void> {
  const { terminal } = context;
  const isTrial = args.has('dry-run');
  const names = (members: readonly CourseMember[]) => members.map(({ id }) => id);
  const isRemoved = args.has('remove-absent');
  const report = { course, is_new: isNew, added: names(added), staying: names(staying), absent: names(absent) };
  if (args.has('json')) await terminal.writeJson({ ...report, removed: isRemoved, sheet, dry_run: isTrial });
  const [is, was] = isTrial ? ['would be', 'would be'] : ['is', 'was'];
  terminal.sentences(`The course ${course} ${isNew ? `${is} new in` : `${was} changed in`} ${path}.`);
  terminal.sentences(`Added: ${formatCount(added.length, 'member')}. Already there: ${staying.length}.`);
  if (absent.length > 0 && (isRemoved || args.value('roster') !== undefined))
    terminal.sentences(
      `Not on the roster${isRemoved ? `, and ${was} removed` : ''}: ${names(absent).join(', ')}.${isRemoved ? '' : ' Their keys still work: --remove-absent removes them.'}`,
    );
  if (sheet !== null && !isTrial)
    terminal.sentences(
      `The keys are in ${sheet}, and nowhere else: give each person the own line, and delete the sheet.`,
    );
  if (isTrial) terminal.sentences('This was a trial: nothing was changed.');
  else await printUse(keysFile, path, args, context);
}

const keysFile = { name: 'keys_file', variable: 'MODEL_API_KEYS_FILE', event: 'keys_rejected' } as const;

async function end(course: string, args: CommandArguments, context: CommandContext): Promise<number> {
  const path = context.keysFilePath(args.positionals[2]);
  const text = await context.readKeysFile(path);
  const until = courseEnd(text, course);
  if (until === null) throw new CommandError(exitCodes.usage, `course: ${path} has no course with the name ${course}`);
  const { keyOptions } = context;
  const members = membersIn(readKeysFile(text, keyOptions), course);
  const today = new Date(context.clock.now()).toISOString().slice(0, 10);
  const removes = args.has('remove');
  const isOver = until <= today;
  const edit = (old: string) => {
    const ended = isOver ? old : withCourseEnd(old, course, today);
    return removes ? withoutCourse(ended, course, keyOptions) : ended;
  };
  checkFaults(text, edit(text), context);
  if (args.has('json'))
    await context.terminal.writeJson({
      course,
      members: members.map(({ id }) => id),
      removed: removes,
      dry_run: args.has('dry-run'),
    });
  if (args.has('dry-run')) {
    context.terminal.sentences(
      `${course} would end for ${formatCount(members.length, 'member')}. Nothing was changed.`,
    );
    return exitCodes.ok;
  }
  await context.editKeysFile(path, false, edit);
  const others = removes ? usersOf(readKeysFile(edit(text), keyOptions), course) : [];
  tellEnd(course, members, removes, context);
  if (others.length > 0)
    context.terminal.sentences(
      `The line @${course} stays, with its end, because it ends others: ${others.join(', ')}.`,
    );
  await printUse(keysFile, path, args, context);
  return exitCodes.ok;
}

/** Says what stays of an ended course, and how to delete it. */
function tellEnd(
  course: string,
  members: readonly CourseMember[],
  removes: boolean,
  { terminal }: CommandContext,
): void {
  const [first] = members;
  const client = first === undefined ? `key ${course}-…` : `${first.isKey ? 'key' : 'sso'} ${first.id}`;
  terminal.sentences(
    removes
      ? `The course ${course} and its ${formatCount(members.length, 'member')} were removed from the keys file.`
      : `The course ${course} has ended: its ${formatCount(members.length, 'key')} are refused. Their lines stay in the keys file: "prompt-relay course end ${course} --remove" removes them.`,
  );
  terminal.sentences(
    `The usage, the jobs and the conversations of each person stay as long as the service stores them. To delete those of one person: prompt-relay store purge --client '${client}'`,
  );
}
