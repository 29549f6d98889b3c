import { setNewest } from '../../shared/bounded-map.js';
import { type ClientText, holderOf } from '../../shared/client.js';
import type { Clock } from '../../shared/clock.js';
import { RelayError } from '../../shared/errors.js';
import { type JobRequest, type OptionalWish, optionalWishes, type Sampling } from '../../shared/job.js';
import { type Capabilities, plainLaunch, type Turn } from '../cli/contract/adapter.js';
import { type AddedField, addedFields, isDemand } from '../cli/contract/model-rules.js';
import { ignoredWishes } from '../cli/models.js';
import type { Route } from '../cli/route.js';

/** Maximum number of remembered fields; the oldest is evicted. */
const maxModels = 256;
const memoryMs = 60 * 60 * 1000;
/** Clients that are remembered for each field. */
const maxClients = 16;
/** Clients after whose refusals a field is omitted for all clients. */
const believedClients = 2;

type JobRoute = Pick<Route, 'adapterModel'> & {
  readonly cli: { readonly name: string; readonly program: { readonly extras: Capabilities | null } };
};

/** Names of the fields in a turn, by their names in an API that may refuse them. */
const fields = {
  temperature: 'temperature',
  top_p: 'topP',
  max_tokens: 'maxTokens',
  stop_sequences: 'stop',
  cache_control: 'cache',
} as const;
type SampledField = keyof typeof fields;

/** Stands for summaries of the model's thoughts, which OpenAI's API gives to verified organizations only. */
const thoughts = 'thoughts';
type RememberedField = SampledField | AddedField | typeof thoughts;
const refusesThoughts = /\breasoning[._]summary\b|\bto generate reasoning summaries\b/i;

/**
 * Owns the request fields that each model does not support: many clients always send a temperature, and newer models
 * reject it. docs/sdks.md promises an answer that lists the ignored fields; without these rules, every such job would fail,
 * or would be sent twice. Only a field that the API itself calls unsupported is remembered. A refusal concerns its client
 * alone until a second client has got it, because the words of an error may come from the request.
 */
export class SamplingRules {
  readonly #isOn: boolean;
  readonly #clock: Clock;
  /** Time when a field is tried again, monotonic, by model and field, and by the client whose request was refused. */
  readonly #unsupported = new Map<string, Map<string, number>>();

  /** `isOn`: whether the operator allows sampling parameters. */
  constructor(isOn: boolean, clock: Clock) {
    this.#isOn = isOn;
    this.#clock = clock;
  }

  /** Returns the turn without the fields that this model does not support. */
  fit(turn: Turn, route: JobRoute, extras: Capabilities, client: ClientText): Turn {
    const isRefused: IsRefused = (field) => this.#isUnsupported(field, route, client);
    return withoutAdditions(this.#fitSampling(turn, extras, isRefused), extras, isRefused);
  }

  #fitSampling(turn: Turn, extras: Capabilities, isRefused: IsRefused): Turn {
    if (!this.#isOn) return without(turn, 'temperature', 'top_p', 'max_tokens', 'stop_sequences');
    const { model, sampling: requested = {}, effort, thinking } = turn;
    const thinks = effort !== null || thinking !== undefined;
    const sampling = extras.fitSampling?.(requested, { model, thinks }) ?? requested;
    const refused = Object.keys(fields).filter((field) => isRefused(field as SampledField));
    const fitting = without({ ...turn, sampling }, ...(refused as SampledField[]));
    return isRefused(thoughts) ? withoutThoughts(fitting) : fitting;
  }

  /**
   * Returns the requested options that will have no effect. Options that the program refuses only later are not
   * included.
   */
  ignored(request: JobRequest, route: JobRoute): OptionalWish[] {
    const { extras } = route.cli.program;
    if (extras === null) return [];
    const { sampling: requested = {}, cache, thinking, effort } = request;
    const launch = { ...plainLaunch(route.adapterModel), effort };
    const more = { ...(cache && { cache }), ...(thinking && thinking !== 'progress' && { thinking }) };
    const turn = { ...launch, text: '', history: [], sampling: requested, ...more };
    const fitting = this.fit(turn, route, extras, request.client);
    const unsent = unsentWishes(request, fitting);
    return ignoredWishes(request, { ...extras, wishes: extras.wishes?.filter((wish) => !unsent.includes(wish)) ?? [] });
  }

  /**
   * Returns the turn without the fields that the API has refused, in which case no model has run; null if the turn
   * failed for another reason.
   */
  repeatable(error: unknown, turn: Turn, route: JobRoute, client: ClientText): Turn | null {
    if (!(error instanceof RelayError) || error.code !== 'cli_error') return null;
    if (turn.thinking === 'summarized' && refusesThoughts.test(error.message)) {
      this.#remember(thoughts, route, client);
      return withoutThoughts(turn);
    }
    const added = refusedAddition(error.message, turn);
    if (added !== undefined) {
      this.#remember(added, route, client);
      return { ...turn, withheld: [...(turn.withheld ?? []), added] };
    }
    const { extras } = route.cli.program;
    const sent = (Object.keys(fields) as SampledField[]).filter((field) => isSent(turn, field, extras));
    const found = sent.filter((field) => new RegExp(`\\b${field}\\b`).test(error.message));
    const named = found.includes('temperature')
      ? found.filter((field) => field !== 'temperature' || found.length === 1)
      : found;
    if (named.length === 0) return null;
    for (const field of named) if (isCalledUnsupported(field, error.message)) this.#remember(field, route, client);
    const max = Number(/\bmax_tokens: \d+ > (\d+)/.exec(error.message)?.[1]);
    const { maxTokens = 0 } = turn.sampling ?? {};
    if (max > 0 && max < maxTokens) return { ...turn, sampling: { ...turn.sampling, maxTokens: max } };
    return without(turn, ...named);
  }

  /** Whether requests of this client, or of several clients, were refused because of the field. */
  #isUnsupported(field: RememberedField, route: JobRoute, client: ClientText): boolean {
    const clients = this.#unsupported.get(keyOf(field, route));
    if (clients === undefined) return false;
    const nowMs = this.#clock.monotonicMs();
    const isOwn = (clients.get(holderOf(client)) ?? 0) > nowMs;
    return isOwn || [...clients.values()].filter((untilMs) => untilMs > nowMs).length >= believedClients;
  }

  #remember(field: RememberedField, route: JobRoute, client: ClientText): void {
    const key = keyOf(field, route);
    const clients = this.#unsupported.get(key) ?? new Map<string, number>();
    setNewest(clients, holderOf(client), this.#clock.monotonicMs() + memoryMs, maxClients);
    setNewest(this.#unsupported, key, clients, maxModels);
  }
}

/** Tells whether a field must not be sent. */
type IsRefused = (field: RememberedField) => boolean;

/** Adds the fields that the relay must not add for this model. */
function withoutAdditions(turn: Turn, { rulesOf }: Capabilities, isRefused: IsRefused): Turn {
  const withheld = addedFields.filter(isRefused);
  const isDemandRefused = turn.offer !== undefined && rulesOf?.(turn.model).acceptsDemand === false;
  if (isDemandRefused) withheld.push('tool_choice');
  return withheld.length === 0 ? turn : { ...turn, withheld };
}

function isSent(turn: Turn, field: SampledField, extras: Capabilities | null): boolean {
  const name = fields[field];
  if (name === 'cache') return turn.cache !== null && extras?.wishes?.includes('cache') === true;
  return name === 'stop' ? (turn.stop ?? []).length > 0 : turn.sampling?.[name] !== undefined;
}

/** Fields of the API that belong to a field of the relay. */
const additions: Readonly<Record<AddedField, string>> = {
  thinking: 'thinking(?:\\.\\w+)*|context_management(?:\\.\\w+)*',
  tool_choice: 'tool_choice(?:\\.\\w+)*',
};
const needsThoughts = /^['"`]?clear_thinking_\w+['"`]? strategy requires/;
const forbidsThoughts = /^thinking may not be enabled when tool_choice forces/i;

/** Words before the API's own in an error message. */
const introduction = /^the model(?:'s API refuses the request| CLI reports): (?:API Error: )?(?:\d{3} )?/;

/**
 * Returns the field added by the relay that the API refuses for this model; undefined if it refuses none. Only the first
 * words of the API count, and no quoted name, because a client can choose the rest.
 */
function refusedAddition(message: string, { offer, withheld = [] }: Turn): AddedField | undefined {
  const words = message.replace(introduction, '');
  const isRefused = (field: AddedField) => {
    const subject = `^['"\`]?(?:${additions[field]})['"\`]?(?: is| are|:)`;
    return new RegExp(`${subject}[^.'"\`]{0,40}\\b${refusedWords}`, 'i').test(words);
  };
  const added = addedFields.filter((field) => !withheld.includes(field));
  return added.find((field) => {
    if (field === 'tool_choice' && (offer === undefined || !isDemand(offer))) return false;
    return isRefused(field) || (field === 'thinking' ? needsThoughts : forbidsThoughts).test(words);
  });
}

const refusedWords = '(?:not supported|not compatible|unsupported|deprecated|not permitted|not allowed|not available)';

/**
 * Whether an error message calls the field unsupported. The field must be the subject of the sentence, so that client
 * text quoted by the API does not match. A condition in the sentence does not match, either.
 */
function isCalledUnsupported(field: SampledField, message: string): boolean {
  const name = `['"\`]?${field}['"\`]?`;
  const subject = new RegExp(`(?:^|[.:] |\\b\\d{3} )${name}(?: is| are|:)[^.]{0,40}\\b${refusedWords}([^.]*)`, 'i');
  const object = new RegExp(`unsupported parameter: ${name}|\\bdoes not support (?:the )?(?:parameter )?${name}`, 'i');
  if (/\bmaximum of \d+ blocks with cache_control\b/.test(message)) return field === 'cache_control';
  const condition = subject.exec(message)?.[1] ?? object.exec(message)?.[0];
  return condition !== undefined && !/\b(?:when|while|with thinking|unless|if|both|together|only)\b/i.test(condition);
}

function withoutThoughts({ thinking: _, ...turn }: Turn): Turn {
  return turn;
}

function without(turn: Turn, ...left: readonly SampledField[]): Turn {
  const { sampling, stop, cache, ...base } = turn;
  const names: readonly string[] = left.map((field) => fields[field]);
  const fitting = Object.fromEntries(Object.entries(sampling ?? {}).filter(([name]) => !names.includes(name)));
  return {
    ...base,
    ...(Object.keys(fitting).length > 0 && { sampling: fitting as Sampling }),
    ...(stop !== undefined && !names.includes('stop') && { stop }),
    ...(names.includes('cache') ? { cache: null } : cache !== undefined && { cache }),
  };
}

/** Returns the requested options that the turn was sent without. */
export function unsentWishes(request: Pick<JobRequest, 'sampling' | 'cache'>, turn: Turn): OptionalWish[] {
  return optionalWishes.filter((option) => {
    if (option === 'isParallel' || option === 'citations') return false;
    if (option === 'cache') return request.cache !== undefined && turn.cache === null;
    return request.sampling?.[option] !== undefined && turn.sampling?.[option] === undefined;
  });
}

function keyOf(field: RememberedField, { cli, adapterModel }: JobRoute): string {
  return `${cli.name} ${adapterModel ?? ''} ${field}`;
}
