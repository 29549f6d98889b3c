import { z } from 'zod';
import { type KeyOptions, scopes } from './api-keys.js';
import {
  dayText,
  readCount,
  readDay,
  readGroup,
  readModels,
  readPrevious,
  readRate,
  readScopes,
} from './key-values.js';

/** Flag of the command `keys`. A `boolean` has no value. */
interface OptionFlag {
  readonly type: 'string' | 'boolean';
  readonly placeholder?: string;
  readonly description: string;
}

/** Option in the bodies of requests and answers. */
interface HttpOption {
  readonly body: z.ZodType;
  readonly view: z.ZodType;
  viewOf(options: KeyOptions): unknown;
  /** Whether the options allow no more than the options of the maker of the key. */
  isWithin(options: KeyOptions, maker: KeyOptions): boolean;
}

interface OptionUse {
  /** Whether the line of a group may have the option, or no other line. */
  readonly isForGroups?: true | 'only';
  /** Whether only the line of a key or of people gives it: no group gives it to its members, and no person to the own keys. */
  readonly isForOne?: true;
  /** Whether lines with the option are refused if a model CLI does not report what a job costs. */
  readonly needsCosts?: true;
  /** Whether the option can also be set for one model, under the name of the model, a colon and its own name. */
  readonly isByModel?: true;
}

/** Option of a key. The parsers, the command, the bodies and the description of the API read it. */
export interface KeyOption extends OptionUse {
  /** Parses the text of the option; null means that it has no text. The message of an error does not repeat the text. */
  read(text: string | null): Partial<KeyOptions>;
  /** Returns the text of the option: true if it has no value, null if it is not set. */
  text(options: KeyOptions, withDigest: boolean): string | true | null;
  /** Flag of the command that sets the option for a new key; null if there is none. */
  readonly flag: OptionFlag | null;
  /** Form of the option over HTTP; null if requests cannot set the option. */
  readonly http: HttpOption | null;
}

/** Option of a key that belongs to a feature. The core knows only its text. */
export interface FeatureKeyOption extends OptionUse, Pick<KeyOption, 'flag'> {
  /** Returns the text in the form to store. Throws if the text is wrong; the message does not repeat it. */
  read(text: string | null): string;
  /** Null if requests cannot set the option. `isWithin` compares texts; null means that the option is not set. */
  readonly http: {
    readonly description: string;
    /** Whether the option is an array there, of words that its text joins by `+`. */
    readonly isList?: true;
    isWithin(text: string | null, maker: string | null): boolean;
  } | null;
  /** Whether only lines for people may have it. */
  readonly isForPeople?: true;
  /** Row in the documents: the option with an example of its text, and the meaning. */
  readonly document: readonly [example: string, meaning: string];
}

type Within = HttpOption['isWithin'];
type Text = (options: KeyOptions) => string | null;

/** Returns the schema of a value that null removes. */
function removable<S extends z.ZodType>(schema: S, description: string) {
  return schema.nullable().optional().meta({ description });
}

const text = z.string().max(4096);
const count = z.int().nonnegative();

/** Returns the HTTP part of an option that is a text there, too. */
function httpText(description: string, viewOf: Text, isWithin: Within) {
  return { body: removable(text, description), view: z.string().nullable(), viewOf, isWithin } as const;
}

function httpCount(description: string, viewOf: (options: KeyOptions) => number | null, isWithin: Within) {
  return { body: removable(count, description), view: z.int().nullable(), viewOf, isWithin } as const;
}

function httpList(description: string, listOf: (options: KeyOptions) => readonly string[] | null, isWithin: Within) {
  const viewOf = (options: KeyOptions) => listOf(options)?.slice() ?? null;
  return { body: removable(z.array(text).min(1), description), view: z.array(z.string()).nullable(), viewOf, isWithin };
}

const rateText: Text = ({ rate }) => rate && `${rate.maxRequests}/${rate.windowMs / 1000}`;
const expiresText: Text = ({ expiresAt }) => (expiresAt === null ? null : dayText(expiresAt));

/** Options of keys by name, in the order in which the service shows them. */
export const keyOptions = {
  scopes: {
    read: (value) => ({ scopes: readScopes(value ?? '') }),
    text: (options) => options.scopes.join('+'),
    flag: { type: 'string', placeholder: '<a+b>', description: 'ask, chat, admin, metrics; default: ask+chat' },
    http: {
      body: z.array(z.enum(scopes)).min(1).optional().meta({ description: 'What the key may do.' }),
      view: z.array(z.enum(scopes)),
      viewOf: (options) => [...options.scopes],
      isWithin: (options, maker) => options.scopes.every((scope) => maker.scopes.includes(scope)),
    },
  },
  rate: {
    read: (value) => ({ rate: readRate(value ?? '') }),
    text: rateText,
    flag: { type: 'string', placeholder: '<n/seconds>', description: 'requests in a window, such as 60/60' },
    http: httpText('Requests in a window of seconds, such as `60/60`.', rateText, isRateWithin),
  },
  concurrent: {
    read: (value) => ({ maxConcurrent: readCount(value ?? '', 1, 1024) }),
    text: ({ maxConcurrent }) => maxConcurrent?.toString() ?? null,
    flag: { type: 'string', placeholder: '<n>', description: 'jobs at once' },
    http: httpCount(
      'Limit of running jobs.',
      ({ maxConcurrent }) => maxConcurrent,
      (options, maker) => isAtMost(options.maxConcurrent, maker.maxConcurrent),
    ),
  },
  queue: {
    read: (value) => ({ maxQueued: readCount(value ?? '', 0, 1_000_000) }),
    text: ({ maxQueued }) => maxQueued?.toString() ?? null,
    flag: { type: 'string', placeholder: '<n>', description: 'jobs waiting' },
    http: httpCount(
      'Limit of waiting jobs.',
      ({ maxQueued }) => maxQueued,
      (options, maker) => isAtMost(options.maxQueued, maker.maxQueued),
    ),
  },
  weight: {
    read: (value) => ({ weight: readCount(value ?? '', 1, 100) }),
    text: ({ weight }) => weight?.toString() ?? null,
    flag: { type: 'string', placeholder: '<n>', description: 'jobs per round of the queue, such as 2' },
    http: httpCount(
      'Turns in each round of the queue.',
      ({ weight }) => weight,
      (options, maker) => (options.weight ?? 1) <= (maker.weight ?? 1),
    ),
  },
  models: {
    read: (value) => ({ models: readModels(value ?? '') }),
    text: ({ models }) => models?.join('+') ?? null,
    flag: { type: 'string', placeholder: '<a+b>', description: 'models that its requests may name' },
    http: httpList('The only models that the key may name.', ({ models }) => models, areModelsWithin),
    isForGroups: true,
  },
  group: {
    read: (value) => ({ group: readGroup(value ?? '') }),
    text: ({ group }) => group,
    flag: { type: 'string', placeholder: '<name>', description: 'shares the budget of this group' },
    http: httpText(
      'Group whose budget the key shares.',
      ({ group }) => group,
      (options, maker) => options.group === maker.group,
    ),
  },
  subclients: {
    read: (value) => {
      if (value !== null) throw new Error('takes no value');
      return { hasSubclients: true };
    },
    text: ({ hasSubclients }) => hasSubclients || null,
    flag: { type: 'boolean', description: 'the key holder may name sub-clients' },
    http: {
      body: z.boolean().optional().meta({ description: 'Whether the holder may name sub-clients.' }),
      view: z.boolean(),
      viewOf: ({ hasSubclients }) => hasSubclients,
      isWithin: (options, maker) => !options.hasSubclients || maker.hasSubclients,
    },
  },
  expires: {
    read: (value) => ({ expiresAt: readDay(value ?? '') }),
    text: expiresText,
    flag: { type: 'string', placeholder: '<day>', description: 'refused from this day on (UTC), such as 2027-01-31' },
    http: httpText('Day (UTC) from which the key is refused.', expiresText, (options, maker) =>
      isAtMost(options.expiresAt, maker.expiresAt),
    ),
    isForGroups: true,
  },
  previous: {
    read: (value) => ({ previous: readPrevious(value ?? '') }),
    text: ({ previous }, withDigest) =>
      previous && `${withDigest ? previous.digest : '…'}/${dayText(previous.expiresAt)}`,
    ...{ flag: null, http: null },
  },
} as const satisfies Readonly<Record<string, KeyOption>>;

/** Returns an option of a feature in the form of an option of the core. */
export function featureOption(name: string, { read, flag, http, document: _, ...use }: FeatureKeyOption): KeyOption {
  const textOf: Text = ({ featureOptions }) => featureOptions[name] ?? null;
  const isWithin: Within = (options, maker) => http?.isWithin(textOf(options), textOf(maker)) ?? true;
  const httpOf = ({ description, isList }: NonNullable<FeatureKeyOption['http']>) =>
    isList
      ? httpList(description, (options) => textOf(options)?.split('+') ?? null, isWithin)
      : httpText(description, textOf, isWithin);
  return {
    read: (text) => ({ featureOptions: { [name]: read(text) } }),
    text: textOf,
    ...{ flag, http: http && httpOf(http) },
    ...use,
  };
}

type Table = typeof keyOptions;
type HttpName = { [N in keyof Table]: Table[N]['http'] extends null ? never : N }[keyof Table];
type HttpFields<Part extends 'body' | 'view'> = {
  readonly [N in HttpName]: NonNullable<Table[N]['http']>[Part];
};

/** Options of the core in the bodies of requests, in the spelling of the keys file. null removes an option. */
export const optionFields = fieldsOf(Object.entries(keyOptions), 'body') as HttpFields<'body'>;

/** Options of the core in answers. */
export const viewFields = fieldsOf(Object.entries(keyOptions), 'view') as HttpFields<'view'>;

/** Returns the schemas of the options that requests can set: in their bodies, or in answers. */
export function fieldsOf(
  options: readonly (readonly [name: string, option: KeyOption])[],
  part: 'body' | 'view',
): Readonly<Record<string, z.ZodType>> {
  return Object.fromEntries(options.flatMap(([name, { http }]) => (http === null ? [] : [[name, http[part]]])));
}

/** Compares two limits; null means unlimited. */
function isAtMost(limit: number | null, max: number | null): boolean {
  return max === null || (limit !== null && limit <= max);
}

function isRateWithin({ rate }: KeyOptions, { rate: max }: KeyOptions): boolean {
  return max === null || (rate !== null && rate.maxRequests <= max.maxRequests && rate.windowMs >= max.windowMs);
}

function areModelsWithin({ models }: KeyOptions, { models: allowed }: KeyOptions): boolean {
  return allowed === null || (models?.every((model) => allowed.includes(model)) ?? false);
}
