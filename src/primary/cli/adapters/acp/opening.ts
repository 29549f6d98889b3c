import { z } from 'zod';
import { cliError, type RelayError } from '../../../../shared/errors.js';
import type { StdinReply, Turn, TurnFailed } from '../../contract/adapter.js';
import { type FailureTable, failedTurn, printable, quotaOfModel, turnFailed, wordsOfApi } from '../common/failure.js';
import { type RpcAnswer, type RpcError, rpcRequest } from '../common/json-rpc.js';
import type { McpServer } from './agent-tools.js';
import { type AcpRequest, type ModeRequest, modeRequest } from './choices.js';
import {
  type AuthMethod,
  type Initialized,
  initialize,
  initialized,
  newSession,
  protocolVersion,
  type SessionMade,
  sessionMade,
} from './lines.js';
import type { GivenVariables } from './presets.js';

/** Why there is no session. `asked`: the turn for which the agent was started with a model; else null. */
export type OpeningFailure = (asked: Turn | null) => TurnFailed;

export type OpeningStep =
  | StdinReply
  | { readonly type: 'open'; readonly session: SessionMade }
  | { readonly type: 'closed'; readonly failure: OpeningFailure };

/** What the agent has yet to answer. */
type Awaited =
  | { readonly name: 'initialize' | 'session' | 'login' }
  | { readonly name: 'mode'; readonly session: SessionMade; readonly request: ModeRequest };

export interface OpeningSettings {
  /** Absolute. */
  readonly workingDirectory: string;
  /** What the program sees of the service's environment. */
  readonly given: GivenVariables;
  /** The session mode to choose where the agent offers it; null: the strictest one. */
  readonly mode: string | null;
}

/** Owns the opening of a session: from the first request until the agent takes prompts. */
export class AcpOpening {
  readonly #settings: OpeningSettings;
  #awaited: Awaited = { name: 'initialize' };
  #lastId = -1;
  #agent: Initialized | null = null;
  readonly login: AcpLogin;

  constructor(settings: OpeningSettings) {
    this.#settings = settings;
    this.login = new AcpLogin(settings.given);
  }

  get lastId(): number {
    return this.#lastId;
  }

  /** What the agent says of itself; null before it has. */
  get agent(): Initialized | null {
    return this.#agent;
  }

  begin(): string {
    return this.#request(...initialize);
  }

  /** Another session in a process that has one. `lastId`: of the requests since then. */
  another(lastId: number, servers: readonly McpServer[]): string {
    this.#lastId = lastId;
    this.#awaited = { name: 'session' };
    return this.#request(...newSession(this.#settings.workingDirectory, servers));
  }

  /** What follows from an answer; null where it answers nothing that was asked. */
  take(answer: RpcAnswer): OpeningStep | null {
    const isUnreadable = answer.type === 'error' && answer.id === null; // the agent could not even read the id
    if (answer.id !== this.#lastId && !isUnreadable) return null;
    return answer.type === 'error' ? this.#refused(answer.error) : this.#answered(answer.result);
  }

  #answered(result: unknown): OpeningStep {
    switch (this.#awaited.name) {
      case 'initialize':
        return this.#initialized(result);
      case 'login':
        return this.#askForSession();
      case 'session':
        return this.#made(result);
      case 'mode':
        return { type: 'open', session: this.#awaited.session };
    }
  }

  #initialized(result: unknown): OpeningStep {
    const { data } = initialized.safeParse(result);
    if (data === undefined) return closed(turnFailed('other', 'the model CLI says nothing of its protocol'));
    if (data.protocolVersion !== protocolVersion) return closed(otherVersion(data.protocolVersion));
    this.#agent = data;
    this.login.offered(data.authMethods);
    return this.#askForSession();
  }

  #askForSession(): OpeningStep {
    return this.#ask({ name: 'session' }, ...newSession(this.#settings.workingDirectory));
  }

  #made(result: unknown): OpeningStep {
    const { data: session } = sessionMade.safeParse(result);
    if (session === undefined) return closed(turnFailed('other', 'the model CLI opened no session'));
    const request = modeRequest(session, this.#settings.mode);
    if (request === null) return { type: 'open', session };
    return this.#ask({ name: 'mode', session, request }, request.method, request.params);
  }

  #refused(error: RpcError): OpeningStep {
    if (this.#awaited.name === 'mode') return this.#modeRefused(this.#awaited);
    const login = error.code === unauthenticated ? this.login.take() : null;
    if (login !== null) return this.#ask({ name: 'login' }, 'authenticate', login);
    return { type: 'closed', failure: (asked) => failedBy(error, 'opening', asked, this.login.ways) };
  }

  /** A mode that an agent offers and does not take might be all that keeps it from its tools. */
  #modeRefused({ session, request }: Extract<Awaited, { readonly name: 'mode' }>): OpeningStep {
    if (request.isCurrent) return { type: 'open', session };
    return closed(turnFailed('other', `the model CLI does not take its own mode ${request.mode}`));
  }

  #ask(awaited: Awaited, method: string, params: AcpRequest['params']): OpeningStep {
    this.#awaited = awaited;
    return { type: 'reply', text: this.#request(method, params) };
  }

  #request(method: string, params: AcpRequest['params']): string {
    return rpcRequest(++this.#lastId, method, params);
  }
}

function closed(failed: TurnFailed): OpeningStep {
  return { type: 'closed', failure: () => failed };
}

const maxLength = 300;

/** Owns how one agent may be logged in: by variables that it sees, and only once. */
export class AcpLogin {
  readonly #given: GivenVariables;
  #methods: readonly AuthMethod[] = [];
  #isUsed = false;

  /** `given`: what the program sees of the service's environment. */
  constructor(given: GivenVariables) {
    this.#given = given;
  }

  /** The agent offers these. */
  offered(methods: readonly AuthMethod[]): void {
    this.#methods = methods;
  }

  /** The parameters of `authenticate`, for the first method whose variables are set; null without one, or after the first use. */
  take(): { readonly methodId: string } | null {
    const method = this.#isUsed ? undefined : this.#methods.find((each) => this.#isUsable(each));
    this.#isUsed = true;
    return method === undefined ? null : { methodId: method.id };
  }

  /** What the operator can do, in the agent's own words; empty where it offers nothing. */
  get ways(): string {
    const ways = this.#methods.map(({ id, name, vars }) => {
      const variables = vars.length === 0 ? '' : ` (MODEL_API_CLI_ENV=${vars.map((variable) => variable.name).join()})`;
      return `${name || id}${variables}`;
    });
    return ways.length === 0 ? '' : printable(`; ways to log in: ${ways.join('; ')}`).slice(0, maxLength);
  }

  #isUsable({ type, vars }: AuthMethod): boolean {
    return (
      type === 'env_var' &&
      vars.length > 0 &&
      vars.every(({ name, optional }) => optional === true || this.#given[name])
    );
  }
}

function otherVersion(version: number): TurnFailed {
  const message = `the model CLI speaks version ${version} of the Agent Client Protocol, not ${protocolVersion}`;
  return turnFailed('other', message);
}

/** The protocol's own code: authentication required. */
export const unauthenticated = -32000;

/** JSON-RPC has no codes for the rest: agents pass on the HTTP status of their model's API, as the code or beside it. */
const table: FailureTable = {
  codes: [['code', unauthenticated, 'auth', 'account']],
  words: [
    [/\b429\b|rate.?limit|quota|RESOURCE_EXHAUSTED|too many requests|credit balance|billing/i, 'quota'],
    [/prompt is too long|context.(length|window)|(maximum|exceeds).{0,40}tokens/i, 'prompt_too_long'],
    [/\b401\b|\b403\b|unauthori[sz]ed|unauthenticated|api.?key|\blog.?in\b|authentication/i, 'auth'],
    [/overloaded|\b503\b|\b529\b|UNAVAILABLE/i, 'overloaded'],
    [
      /model.{0,80}(not found|not supported|does not exist|unknown)|(not found|unknown|invalid).{0,40}model/i,
      'model_unknown',
    ],
  ],
};

/**
 * What the agent was at when it reported an error. `opening`: the session; with a turn, its model is in the arguments of
 * the agent. `choosing`: the model of the turn. `asked`: the turn itself.
 */
export type AcpStep = 'opening' | 'choosing' | 'asked';

/**
 * An answer that is an error ends the turn. `asked` is null where the agent has received nothing of a client. `ways`
 * says how to log in, where that is missing.
 */
export function failedBy({ code, message, data }: RpcError, step: AcpStep, asked: Turn | null, ways = ''): TurnFailed {
  const isOfModel = step !== 'asked' && asked !== null && asked.model !== null;
  const failed = failedTurn(table, {
    codes: [
      ['code', code],
      ['status', code],
      ['status', statusOf(data)],
    ],
    words: wordsOf(message, data),
    asked,
    uncoded: isOfModel ? 'model_unknown' : undefined,
    isOfRequest: isOfRequest(code, step, asked?.model ?? null),
    quota: quotaOfModel,
  });
  return failed.reason === 'auth' ? { ...failed, message: failed.message + ways } : failed;
}

/**
 * Agents also say that they need a login because of what a request says or names. With the name of a provider before it,
 * as in `openai/gpt-5`, a model may have an account of its own.
 */
function isOfRequest(code: number, step: AcpStep, model: string | null): boolean {
  if (code === unauthenticated) return step !== 'opening' || model !== null;
  return step === 'choosing' || (model?.includes('/') ?? false);
}

export function errorOf(failed: TurnFailed): RelayError {
  return cliError(failed.reason, failed.message, failed);
}

/** Some agents say `Internal error` and put what matters beside it. */
function wordsOf(message: string, data: unknown): string {
  const beside = /^(internal error|invalid params)\.?$/i.test(message.trim())
    ? detailed.safeParse(data).data
    : undefined;
  return wordsOfApi(beside ?? message);
}

const details = z.object({ details: z.string() }).transform((data) => data.details);
const saying = z.object({ message: z.string() }).transform((data) => data.message);
const detailed = z.union([z.string(), details, saying]);

const numbered = z.object({ status: z.number().optional(), statusCode: z.number().optional() });

/** The HTTP status beside an error, where an agent adds it. */
function statusOf(data: unknown): number | null {
  const found = numbered.safeParse(data).data;
  return found?.status ?? found?.statusCode ?? null;
}
