import { randomBytes } from 'node:crypto';
import { periods } from '../../shared/api/limit-use.js';
import { digestOf, type GroupLine, isRefused, type KeyOptions } from '../../shared/config/api-keys.js';
import { groupWarnings } from '../../shared/config/group-warnings.js';
import { dayQuery, dayText } from '../../shared/config/key-values.js';
import { readKeysFile, refuseCosts } from '../../shared/config/keys-file.js';
import { modelNamePattern } from '../../shared/config/values.js';
import { formatCount } from '../../shared/text/format.js';
import type { Paint } from '../../shared/text/paint.js';
import { fileFault } from '../../shared/text/system-error.js';
import { alignColumns } from '../base/columns.js';
import {
  addressFlags,
  type Command,
  type CommandArguments,
  type CommandContext,
  type Flag,
  jsonFlag,
} from '../base/command.js';
import { CommandError, exitCodes, usageError } from '../base/errors.js';
import { printUse } from '../base/file-in-use.js';
import { withLines } from '../base/line-file.js';
import type { Terminal } from '../base/terminal.js';
import { keyActions, keyOptions } from '../keys-file/key-options.js';
import {
  type BudgetChange,
  editKeysFile,
  importedLines,
  namesWithSameKey,
  withBudget,
  withDigest,
  withNewKey,
  withoutKey,
} from '../keys-file/keys-file-edit.js';

/** Options of a new key, with the names that the keys file uses. */
const optionFlags: Readonly<Record<string, Flag>> = Object.fromEntries(
  keyOptions.entries.flatMap(([name, { flag }]) => (flag === null ? [] : [[name, flag]])),
);

const rotateFlags = {
  'old-until': { type: 'string', placeholder: '<day>', description: 'rotate: the old key works until this day (UTC)' },
} as const satisfies Record<string, Flag>;

const budgetFlags = {
  model: { type: 'string', placeholder: '<name>', description: 'budget: only the jobs of this model count' },
} as const satisfies Record<string, Flag>;

const ownWords = ['add', 'revoke', 'rotate', 'budget', 'import', 'list', 'check', 'new'];
const words = [...ownWords, ...keyActions.map(({ name }) => name)];

/** Flags of the actions of features. */
const actionFlags: Readonly<Record<string, Flag>> = Object.assign({}, ...keyActions.map(({ flags }) => flags));

/** Command that makes API keys, and lists, checks and edits keys files, without a service. */
export const keys: Command = {
  name: 'keys',
  synopsis: [
    'add <name> | revoke <name> | rotate <name> | budget <name> | import <from> | list | check | new <name> [file]',
    ...keyActions.map(({ name, synopsis }) => `${name} ${synopsis}`),
  ].join(' | '),
  summary: 'create API keys, and edit, list or check a keys file',
  flags: { ...optionFlags, ...rotateFlags, ...budgetFlags, ...actionFlags, ...jsonFlag, url: addressFlags.url },
  maxPositionals: 3,
  words,
  notes: [
    'The last argument is the file; default: MODEL_API_KEYS_FILE. A running service reads a changed file within a second. After an edit and after "check", the last line says whether the service uses the file.',
    '"add" adds a key with the options of the flags. "revoke" removes a key. "rotate" replaces the value of a key, which keeps its options and its client; the old value becomes invalid at once, or with --old-until on that day. "budget" sets the tokens or the cost of a key, of a group (@biology) or of all clients (@*); "off" removes a limit. "import" adds the lines of another keys file, or hashes keys in clear text, one "key" or "name key" per line; "-" is stdin. "new" prints a key and its line, and needs no file.',
    'An edit replaces the file atomically and preserves its owner, mode and comments. An edit never adds a fault; the faults of other lines are printed. A new key is printed once, to stdout; all other output goes to stderr.',
    ...keyActions.map(({ note }) => note),
  ],
  examples: [
    'prompt-relay keys add ada --rate 60/60 /etc/prompt-relay/keys',
    'prompt-relay keys rotate ada --old-until 2027-07-01 /etc/prompt-relay/keys',
    'prompt-relay keys revoke ada /etc/prompt-relay/keys',
    'prompt-relay keys budget @biology --cost 200/month /etc/prompt-relay/keys',
    'prompt-relay keys budget ada --model opus --cost 50/month /etc/prompt-relay/keys',
    'prompt-relay keys list /etc/prompt-relay/keys',
    ...keyActions.flatMap(({ examples }) => examples),
  ],
  run: async (args, context) => {
    const [action = '', ...rest] = args.positionals;
    const featureAction = keyActions.find(({ name }) => name === action);
    const act = Object.hasOwn(actions, action) ? actions[action] : featureAction?.run;
    if (act === undefined)
      throw usageError('keys', `the action must be ${words.slice(0, -1).join(', ')} or ${words.at(-1)}`);
    const unexpected = rest[editors.includes(action) ? 2 : 1];
    if (unexpected !== undefined) throw usageError('keys', `${action}: unexpected argument ${unexpected}`);
    if (args.value('old-until') !== undefined && action !== 'rotate')
      throw usageError('keys', `${action}: --old-until is only for rotate`);
    if (args.value('model') !== undefined && action !== 'budget')
      throw usageError('keys', `${action}: --model is only for budget`);
    const used = optionsFor[action] ?? [];
    const unused = Object.keys(optionFlags).find((name) => !used.includes(name) && isGiven(name, args));
    if (unused !== undefined) throw usageError('keys', `${action}: --${unused} has no meaning here`);
    const foreign = Object.keys(actionFlags).find(
      (name) => !(name in (featureAction?.flags ?? {})) && isGiven(name, args),
    );
    if (foreign !== undefined) throw usageError('keys', `${action}: --${foreign} has no meaning here`);
    const code = await act(rest[0], args, context);
    const isEditor = editors.includes(action);
    if (isEditor || action === 'check')
      await printUse(keysFile, context.keysFilePath(rest[isEditor ? 1 : 0]), args, context);
    return code;
  },
};

const keysFile = { name: 'keys_file', variable: 'MODEL_API_KEYS_FILE', event: 'keys_rejected' } as const;

const budgetOptions = ['tokens', 'cost'] as const;

/** Options of a line that an action has a use for; none for the other actions. */
const optionsFor: Readonly<Record<string, readonly string[]>> = {
  ...Object.fromEntries(['add', 'new', 'import'].map((action) => [action, Object.keys(optionFlags)])),
  budget: budgetOptions,
};

function isGiven(flag: string, args: CommandArguments): boolean {
  return args.has(flag) || args.value(flag) !== undefined;
}

const badName = 'the name must be 1 to 64 letters, digits and . _ -';

type Action = (subject: string | undefined, args: CommandArguments, context: CommandContext) => Promise<number>;

const actions: Readonly<Record<string, Action>> = {
  new: async (name, args, context) => {
    const { terminal } = context;
    const { key, line } = newKey('new', name, args, context.clock.now());
    if (args.has('json')) await terminal.writeJson({ name, key, line });
    else await terminal.writeLines([key, line]);
    terminal.message(
      'The first line is the key. Save it: it will not be shown again. The second line is for the keys file.',
    );
    return exitCodes.ok;
  },
  add: async (name, args, context) => {
    const { key, line } = newKey('add', name, args, context.clock.now());
    const path = await edit(args, context, (text) => withNewKey(text, String(name), line));
    return showKey(String(name), key, `The key of ${name} is in ${path}.`, args, context.terminal);
  },
  revoke: async (name, args, context) => {
    if (name === undefined) throw usageError('keys', 'revoke: name the holder of the key');
    let twins: readonly string[] = [];
    const path = await edit(args, context, (text) => {
      const after = withoutKey(text, name);
      twins = namesWithSameKey(text, after, name);
      return after;
    });
    if (args.has('json')) await context.terminal.writeJson({ name, revoked: true });
    context.terminal.sentences(`The key of ${name} was removed from ${path}.`);
    context.terminal.sentences(
      `The data of ${name} remain, for the next key with this name: prompt-relay store purge --client 'key ${name}' removes them.`,
    );
    if (twins.length > 0)
      context.terminal.sentences(`The same key still works, because it is also in the line of ${twins.join(', ')}.`);
    return exitCodes.ok;
  },
  rotate: async (name, args, context) => {
    if (name === undefined) throw usageError('keys', 'rotate: name the holder of the key');
    const [key, until] = [randomKey(), args.value('old-until')];
    if (until !== undefined && !dayQuery.safeParse(until).success)
      throw usageError('keys', 'rotate: --old-until: must be a day such as 2027-01-31');
    if (until !== undefined && Date.parse(until) <= context.clock.now())
      throw usageError('keys', `rotate: --old-until ${until} is over`);
    const path = await edit(args, context, (text) => withDigest(text, name, digestOf(key), until));
    const old = until === undefined ? 'The old key no longer works.' : `The old key works until ${until} (UTC).`;
    return showKey(name, key, `The new key of ${name} is in ${path}. ${old}`, args, context.terminal);
  },
  budget: async (subject, args, context) => {
    if (subject === undefined)
      throw usageError('keys', 'budget: name a key, @group for a group, or @* for all clients');
    const change = budgetChange(args);
    if (Object.keys(change).length === 0)
      throw usageError('keys', 'budget: set --tokens, --cost or both; "off" removes a budget');
    const path = await edit(args, context, (text) => withBudget(text, subject, change));
    const texts = Object.entries(change).map(([name, value]) =>
      value === null ? `no limit of ${name}` : `${name}=${value}`,
    );
    if (args.has('json')) await context.terminal.writeJson({ subject, ...change });
    context.terminal.sentences(`${subject} has ${texts.join(' and ')} in ${path}.`);
    return exitCodes.ok;
  },
  import: async (from, args, context) => {
    if (from === undefined) throw usageError('keys', 'import: name the file to import, or - for stdin');
    const lines = await linesFrom(from, args, context);
    const path = await edit(args, context, (text) => withLines(text, lines));
    if (args.has('json')) await context.terminal.writeJson({ imported: lines.length });
    context.terminal.sentences(`${formatCount(lines.length, 'key')} added to ${path}.`);
    return exitCodes.ok;
  },
  list: async (file, args, context) => {
    const { keys: read, personLines: lines, groupLines: all, faults } = await readFor(file, context);
    const [keys, personLines] = [read.filter(isValid), lines.filter(isValid)];
    const budgets = all.filter(({ isClosed }) => isClosed !== true);
    const found = [...keys, ...personLines.map((line) => ({ ...line, name: `sso:${line.name}` }))];
    const { terminal, clock } = context;
    if (args.has('json')) await terminal.writeJson({ keys: found.map(keyJson), budgets: budgets.map(groupJson) });
    else
      await terminal.writeLines([
        ...renderKeys(found, clock.now(), terminal.paint),
        ...budgets.map((line) => `@${line.name}  ${keyOptions.groupTexts(line).join(' ')}`),
      ]);
    return showFaults(faults, context.terminal);
  },
  check: async (file, args, context) => {
    const { keys: read, personLines, groupLines, faults } = await readFor(file, context);
    const [found, valid] = [read.filter(isValid), personLines.filter(isValid)];
    const warnings = groupWarnings({ keys: found, personLines: valid, groupLines });
    if (args.has('json'))
      await context.terminal.writeJson({ keys: found.length, people: valid.length, faults, warnings });
    else if (faults.length === 0)
      await context.terminal.writeLine(
        `no faults, ${formatCount(found.length, 'key')}${valid.length > 0 ? `, ${formatCount(valid.length, 'line')} for people` : ''}`,
      );
    showWarnings(warnings, context.terminal);
    return showFaults(faults, context.terminal);
  },
};

/** Reads a keys file like the service, which cannot obey a budget in dollars if a model CLI reports no costs. */
async function readFor(file: string | undefined, { readKeysFile: read, reportsCosts }: CommandContext) {
  const content = readKeysFile(await read(file), keyOptions);
  const { faults } = refuseCosts(content, keyOptions);
  const hasCosts = faults.length > content.faults.length;
  return hasCosts && (await reportsCosts()) === false ? refuseCosts(content, keyOptions) : content;
}

function isValid(options: KeyOptions): boolean {
  return !isRefused(options);
}

const editors = ['add', 'revoke', 'rotate', 'budget', 'import'];

function randomKey(): string {
  return `pr_${randomBytes(24).toString('base64url')}`;
}

function newKey(action: string, name: string | undefined, args: CommandArguments, now: number) {
  if (name === undefined) throw usageError('keys', `${action}: name the holder of the key`);
  const key = randomKey();
  const line = [name, 'sha256', digestOf(key), ...optionsOf(args)].join(':');
  const { keys: made, faults } = readKeysFile(line, keyOptions);
  const fault = faults[0] ?? (made[0]?.name === name ? undefined : badName);
  if (fault !== undefined) throw usageError('keys', `${action}: ${fault.replace(/^line 1: /, '')}`);
  const expiresAt = made[0]?.expiresAt ?? null;
  if (expiresAt !== null && expiresAt <= now)
    throw usageError('keys', `${action}: --expires ${args.value('expires')} is over`);
  return { key, line };
}

/**
 * Prints a message about a new key to stderr, then the key to stdout. The message comes first, because a closed stdout
 * ends the command, although the keys file already has the key.
 */
async function showKey(name: string, key: string, message: string, args: CommandArguments, terminal: Terminal) {
  terminal.sentences(`${message} Save the key: it will not be shown again.`);
  if (args.has('json')) await terminal.writeJson({ name, key });
  else await terminal.writeLine(key);
  return exitCodes.ok;
}

/** Edits the keys file and resolves with its path. Only `add` and `import` create a missing file. */
async function edit(args: CommandArguments, context: CommandContext, change: (text: string) => string) {
  const [action = '', , file] = args.positionals;
  const path = context.keysFilePath(file);
  let edited = '';
  const faults = await editKeysFile(path, context.clock, action === 'add' || action === 'import', (text) => {
    edited = change(text);
    return edited;
  });
  showWarnings(groupWarnings(readKeysFile(edited, keyOptions)), context.terminal);
  showFaults(faults, context.terminal);
  return path;
}

function showWarnings(warnings: readonly string[], terminal: Terminal): void {
  for (const warning of warnings) terminal.message(`${terminal.messagePaint.yellow('warning')}  ${warning}`);
}

async function linesFrom(from: string, args: CommandArguments, { terminal, files }: CommandContext): Promise<string[]> {
  try {
    return importedLines(from === '-' ? await terminal.readStdin() : String(await files.read(from)), optionsOf(args));
  } catch (error) {
    throw new CommandError(exitCodes.config, `keys: import: ${fileFault(from, error as NodeJS.ErrnoException)}`);
  }
}

function showFaults(faults: readonly string[], terminal: Terminal): number {
  for (const fault of faults) terminal.message(`${terminal.messagePaint.red('fault')}  ${fault}`);
  return faults.length === 0 ? exitCodes.ok : exitCodes.config;
}

/** Returns the limits that the flags set or, with `off`, remove. */
function budgetChange(args: CommandArguments): BudgetChange {
  const model = args.value('model');
  if (model !== undefined && !modelNamePattern.test(model))
    throw usageError('keys', 'budget: --model: must be a model');
  const start = model === undefined ? '' : `${model}:`;
  const changes = budgetOptions.flatMap((name) => {
    const value = args.value(name);
    return value === undefined ? [] : [[`${start}${name}`, value === 'off' ? null : value]];
  });
  return Object.fromEntries(changes);
}

/** Returns the options of the flags as one part of a line, in an array; an empty array if no flag is set. */
function optionsOf(args: CommandArguments): string[] {
  const givenFlags = Object.entries(optionFlags).flatMap(([name, { type }]) => {
    if (type === 'boolean') return args.has(name) ? [name] : [];
    const value = args.value(name);
    return value === undefined ? [] : [`${name}=${value}`];
  });
  return givenFlags.length === 0 ? [] : [givenFlags.join(',')];
}

/** Returns a key for the JSON output, without digests. */
function keyJson(key: KeyOptions & { readonly name: string }) {
  const { tokens, cost, ...view }: Readonly<Record<string, unknown>> = keyOptions.viewOf(key);
  return {
    name: key.name,
    ...view,
    rate: key.rate && { requests: key.rate.maxRequests, seconds: key.rate.windowMs / 1000 },
    ...amountsJson(key),
    own_keys: Number(key.featureOptions.own_keys ?? 0) || null,
    previous_expires: key.previous && dayText(key.previous.expiresAt),
  };
}

function groupJson(line: GroupLine) {
  return { name: line.name, ...amountsJson(line), options: keyOptions.groupTexts(line) };
}

/** Returns the amounts of the budget by period. */
function amountsJson({ featureOptions }: Pick<KeyOptions, 'featureOptions'>) {
  const amounts = budgetOptions.flatMap((name) => {
    const [max, period] = featureOptions[name]?.split('/') ?? [];
    return periods.map((each) => [`${name}_per_${each}`, each === period ? Number(max) : null]);
  });
  return Object.fromEntries(amounts);
}

/** Formats one line for each key, without digests. The name is in the first column. */
function renderKeys(keys: readonly (KeyOptions & { readonly name: string })[], now: number, paint: Paint): string[] {
  const rows = keys.map((key) => [key.name, key.scopes.join('+'), limitsOf(key).join(' ')]);
  return alignColumns(rows).map((line, index) => {
    const expiresAt = keys[index]?.expiresAt ?? null;
    return expiresAt !== null && expiresAt <= now ? `${line} ${paint.red('expired')}` : line;
  });
}

/** Returns the limits of a key in the format of the keys file. */
function limitsOf(key: KeyOptions): string[] {
  const { scopes: _, ...texts } = keyOptions.textsOf(key);
  return Object.entries(texts).map(([name, text]) => (text === true ? name : `${name}=${text}`));
}
