import { randomBytes } from 'node:crypto';
import { type ApiKey, digestOf } from '../../shared/config/api-keys.js';
import { readKeysFile } from '../../shared/config/keys-file.js';
import { alignColumns } from '../../shared/text/format.js';
import type { Paint } from '../../shared/text/paint.js';
import { type Command, type CommandArguments, type CommandContext, type Flag, jsonFlag } from '../base/command.js';
import { exitCodes, usageError } from '../base/errors.js';
import type { Terminal } from '../base/terminal.js';

/** The options of a new key, as the keys file writes them. */
const optionFlags = {
  scopes: { type: 'string', placeholder: '<a+b>', description: 'ask, chat, admin, metrics; default: ask+chat' },
  rate: { type: 'string', placeholder: '<n/seconds>', description: 'requests in a window, such as 60/60' },
  concurrent: { type: 'string', placeholder: '<n>', description: 'jobs at once' },
  queue: { type: 'string', placeholder: '<n>', description: 'jobs waiting' },
  weight: { type: 'string', placeholder: '<n>', description: 'turns in each round of the queue, such as 2' },
  models: { type: 'string', placeholder: '<a+b>', description: 'the only models that it may name' },
  tokens: { type: 'string', placeholder: '<n/day>', description: 'tokens on a day, such as 1000000/day' },
  cost: { type: 'string', placeholder: '<n/day>', description: 'US dollars on a day, such as 5/day' },
  subclients: { type: 'boolean', description: 'its holder may name clients of its own' },
  expires: { type: 'string', placeholder: '<day>', description: 'refused from this day on (UTC), such as 2027-01-31' },
} as const satisfies Record<string, Flag>;

/** Makes API keys, and lists or checks keys files. Needs no service. */
export const keys: Command = {
  name: 'keys',
  synopsis: 'new <name> | list [file] | check [file]',
  summary: 'make an API key, or look at a keys file',
  flags: { ...optionFlags, ...jsonFlag },
  maxPositionals: 2,
  words: ['new', 'list', 'check'],
  notes: ['Where no file is named, it is that of MODEL_API_KEYS_FILE.'],
  examples: [
    'prompt-relay keys new ada --scopes ask+chat --rate 60/60',
    'prompt-relay keys list /etc/prompt-relay/keys',
    'prompt-relay keys check /etc/prompt-relay/keys',
  ],
  run: (args, context) => {
    const [action = '', subject] = args.positionals;
    const act = Object.hasOwn(actions, action) ? actions[action] : undefined;
    if (act === undefined) throw usageError('keys', 'say new, list or check');
    return act(subject, args, context);
  },
};

const badName = 'the name must be 1 to 64 letters, digits and . _ -';

type Action = (subject: string | undefined, args: CommandArguments, context: CommandContext) => Promise<number>;

const actions: Readonly<Record<string, Action>> = {
  new: async (name, args, { terminal }) => {
    if (name === undefined) throw usageError('keys', 'new: name the holder of the key');
    const key = `pr_${randomBytes(24).toString('base64url')}`;
    const line = [name, 'sha256', digestOf(key), ...optionsOf(args)].join(':');
    const {
      keys: [made],
      faults,
    } = readKeysFile(line);
    const fault = faults[0] ?? (made?.name === name ? undefined : badName);
    if (fault !== undefined) throw usageError('keys', `new: ${fault.replace(/^line 1: /, '')}`);
    if (args.has('json')) await terminal.writeJson({ name, key, line });
    else await terminal.writeLines([key, line]);
    terminal.message('The first line is the key: it is shown this once. The second is for the keys file.');
    return exitCodes.ok;
  },
  list: async (file, args, context) => {
    const { keys: found, faults } = readKeysFile(await context.readKeysFile(file));
    const shown = found.map(({ digest: _, ...key }) => key);
    if (args.has('json')) await context.terminal.writeJson({ keys: shown.map(jsonOf) });
    else await context.terminal.writeLines(renderKeys(shown, context.clock.now(), context.terminal.paint));
    return showFaults(faults, context.terminal);
  },
  check: async (file, args, context) => {
    const { keys: found, faults } = readKeysFile(await context.readKeysFile(file));
    if (args.has('json')) await context.terminal.writeJson({ keys: found.length, faults });
    else if (faults.length === 0) await context.terminal.writeLine(`no faults, ${found.length} keys`);
    return showFaults(faults, context.terminal);
  },
};

function showFaults(faults: readonly string[], terminal: Terminal): number {
  for (const fault of faults) terminal.message(`${terminal.messagePaint.red('fault')}  ${fault}`);
  return faults.length === 0 ? exitCodes.ok : exitCodes.config;
}

/** Empty where none is given. */
function optionsOf(args: CommandArguments): string[] {
  const given = Object.entries(optionFlags).flatMap(([name, { type }]) => {
    if (type === 'boolean') return args.has(name) ? [name] : [];
    const value = args.value(name);
    return value === undefined ? [] : [`${name}=${value}`];
  });
  return given.length === 0 ? [] : [given.join(',')];
}

function jsonOf(key: Omit<ApiKey, 'digest'>) {
  return {
    name: key.name,
    scopes: key.scopes,
    rate: key.rate && { requests: key.rate.maxRequests, seconds: key.rate.windowMs / 1000 },
    concurrent: key.maxConcurrent,
    queue: key.maxQueued,
    weight: key.weight,
    models: key.models,
    tokens_per_day: key.tokensPerDay,
    cost_per_day: key.costPerDay,
    subclients: key.hasSubclients,
    expires: key.expiresAt === null ? null : new Date(key.expiresAt).toISOString().slice(0, 10),
  };
}

/** One line for each key, its name first. */
function renderKeys(keys: readonly Omit<ApiKey, 'digest'>[], now: number, paint: Paint): string[] {
  const rows = keys.map((key) => [key.name, key.scopes.join('+'), limitsOf(key).join(' ')]);
  return alignColumns(rows).map((line, index) => {
    const expiresAt = keys[index]?.expiresAt ?? null;
    return expiresAt !== null && expiresAt <= now ? `${line} ${paint.red('expired')}` : line;
  });
}

/** As the keys file writes them. */
function limitsOf({
  rate,
  maxConcurrent,
  maxQueued,
  weight,
  models,
  tokensPerDay,
  costPerDay,
  hasSubclients,
  expiresAt,
}: Omit<ApiKey, 'digest'>): string[] {
  return [
    ...(rate === null ? [] : [`rate=${rate.maxRequests}/${rate.windowMs / 1000}`]),
    ...(maxConcurrent === null ? [] : [`concurrent=${maxConcurrent}`]),
    ...(maxQueued === null ? [] : [`queue=${maxQueued}`]),
    ...(weight === null ? [] : [`weight=${weight}`]),
    ...(models === null ? [] : [`models=${models.join('+')}`]),
    ...(tokensPerDay === null ? [] : [`tokens=${tokensPerDay}/day`]),
    ...(costPerDay === null ? [] : [`cost=${costPerDay}/day`]),
    ...(hasSubclients ? ['subclients'] : []),
    ...(expiresAt === null ? [] : [`expires=${new Date(expiresAt).toISOString().slice(0, 10)}`]),
  ];
}
