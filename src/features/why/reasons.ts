import type { ModelCli } from '../../primary/cli/model-cli.js';
import type { Spender } from '../../primary/features/feature.js';
import type { JobTrace } from '../../primary/jobs/job-trace.js';
import type { ClientText } from '../../shared/client.js';
import type { JobEnd, JobRequest, PassReason, WaitReason } from '../../shared/job.js';
import { formatDuration } from '../../shared/text/format.js';

/** Number of jobs that are remembered, and sentences about each. */
const maxJobs = 2000;
const maxSentences = 12;

/** Route of a job, as its reasons name it. */
export interface NamedRoute {
  readonly cli: Pick<ModelCli, 'name' | 'account'>;
  readonly label: string | null;
  readonly accountReason?: string;
}

/** Request of a job, as far as its reasons need it. */
type NamedRequest = Pick<JobRequest, 'requestId' | 'model' | 'conversationId'> & Spender;

/** Choice of a route, with the routes that could not answer. */
export interface NamedChoice {
  readonly route: NamedRoute;
  readonly passed: readonly { readonly route: NamedRoute; readonly reason: PassReason }[];
}

/** Slots of the service at a moment: all, taken ones, and those that jobs of the client have. */
export interface SlotUse {
  readonly all: number;
  readonly taken: number;
  readonly byClient: number;
}

const waits: Readonly<Record<WaitReason, string>> = {
  slot: 'it was not its turn for a slot',
  client: 'its client had as many running jobs as it may have',
  cli: 'its model CLI or account had as many running jobs as it may have',
  conversation: 'an earlier turn of its conversation had not ended',
  account: 'the account of its model CLI was blocked',
  group: 'a group of its client had as many running jobs as it may have',
};

const passes: Readonly<Record<PassReason, string>> = {
  quota: 'its quota was used up',
  auth: 'its account was refused',
  overloaded: 'its API was overloaded',
  start: 'its program did not start',
};

/** Remembers for the newest jobs why each has its route, and why it waited. */
export class JobReasons {
  /** Sentences by client and request, the oldest job first. */
  readonly #sentences = new Map<string, string[]>();
  readonly #slotsOf: (client: ClientText) => SlotUse;
  readonly #precedenceOver: (job: Spender) => readonly string[];

  /** `precedenceOver`: returns sentences about jobs that go before a job that waits for a slot. */
  constructor(
    slotsOf: (client: ClientText) => SlotUse,
    precedenceOver: (job: Spender) => readonly string[] = () => [],
  ) {
    this.#slotsOf = slotsOf;
    this.#precedenceOver = precedenceOver;
  }

  reasonsOf(client: ClientText, requestId: string): readonly string[] {
    return this.#sentences.get(keyOf({ client, requestId })) ?? [];
  }

  /** Begins a job, and returns the observer of its steps. */
  beginJob(request: NamedRequest, choice: NamedChoice): JobTrace {
    const sentences: string[] = [];
    const key = keyOf(request);
    this.#sentences.delete(key);
    this.#sentences.set(key, sentences);
    const [oldest] = this.#sentences.keys();
    if (this.#sentences.size > maxJobs && oldest !== undefined) this.#sentences.delete(oldest);
    const add = (...added: readonly string[]) => {
      for (const each of added) if (sentences.length < maxSentences && !sentences.includes(each)) sentences.push(each);
    };
    add(...choice.passed.map(({ route, reason }) => `${nameOf(route)} was passed over, because ${passes[reason]}.`));
    let current = routeText(choice.route);
    add(`${current}, because ${ruleOf(request, choice)}.`);
    add(...accountRule(choice.route));
    const known = new Set<WaitReason>();
    return {
      reroute: (route) => {
        const text = routeText(route);
        // A background job chooses its route again when it starts, mostly the same one.
        if (text !== current)
          add(`${text} after another route could not answer, or a better one was free.`, ...accountRule(route));
        current = text;
      },
      waits: (position, reason) => {
        if (!known.has(reason)) add(`${waitText(position, reason, this.#slotsOf(request.client))}.`);
        known.add(reason);
        if (reason === 'slot') add(...this.#precedenceOver(request));
      },
      waited: (ms, end) => add(endText(ms, end)),
    };
  }
}

function keyOf({ client, requestId }: Pick<JobRequest, 'client' | 'requestId'>): string {
  return `${client}\n${requestId}`;
}

function nameOf({ cli, label }: NamedRoute): string {
  return label ?? cli.name;
}

function routeText({ cli, label }: NamedRoute): string {
  const account = cli.account.name === null ? '' : ` with the account ${cli.account.name}`;
  return `${cli.name}${account} answers it${label === null ? '' : ` as ${label}`}`;
}

/** Returns a sentence about why the account was chosen; none if the CLI has only one. */
function accountRule({ cli, accountReason }: NamedRoute): string[] {
  if (accountReason === undefined) return [];
  const { name } = cli.account;
  const account = name === null ? 'The login of the service' : `The account ${name}`;
  return [`${account} was chosen, because ${accountReason}.`];
}

/** Returns the rule that chose the route. */
function ruleOf({ model }: Pick<JobRequest, 'model'>, { passed }: NamedChoice): string {
  if (passed.length > 0) return 'it is the next model that may answer';
  return model === null ? 'the request names no model, and this is the default of its client' : 'the request names it';
}

function waitText(position: number, reason: WaitReason, { all, taken, byClient }: SlotUse): string {
  const slots = reason === 'slot' ? ` (${taken} of ${all} slots were taken, ${byClient} of them by its client)` : '';
  return `It waited at place ${position}, because ${waits[reason]}${slots}`;
}

function endText(ms: number, end: JobEnd | null): string {
  const time = ms < 1000 ? 'less than a second' : formatDuration(ms);
  if (end === null) return `It got its slot after ${time}.`;
  return end.outcome === 'ok' ? `It waited ${time}.` : `It ended after ${time} without a slot: ${end.failure.code}.`;
}
